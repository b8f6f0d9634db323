/* See AstraNetworkAPI.hh. */
#ifndef STAND_IN_SendPacketEventHandlerData
#define STAND_IN_SendPacketEventHandlerData

#include "AstraNetworkAPI.hh"

namespace AstraSim {

class SendPacketEventHandlerData : public BasicEventHandlerData, public MetaData {
  public:
    ncclFlowTag flowTag;
    /* Of the stand-in: what is called. */
    void (*then)(SendPacketEventHandlerData*) = nullptr;
};

}  // namespace AstraSim

#endif
