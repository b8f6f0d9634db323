/* See AstraNetworkAPI.hh. */
#ifndef STAND_IN_RecvPacketEventHadndlerData
#define STAND_IN_RecvPacketEventHadndlerData

#include "AstraNetworkAPI.hh"

namespace AstraSim {

class RecvPacketEventHadndlerData : public BasicEventHandlerData, public MetaData {
  public:
    ncclFlowTag flowTag;
    /* Of the stand-in: what is called. */
    void (*then)(RecvPacketEventHadndlerData*) = nullptr;
};

}  // namespace AstraSim

#endif
