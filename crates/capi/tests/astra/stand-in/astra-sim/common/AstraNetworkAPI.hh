/* A stand-in for ASTRA-sim's header of this name, in our own words: what a network has to offer, for tests of the adapter. */
#ifndef STAND_IN_NETWORK_API_HH
#define STAND_IN_NETWORK_API_HH

#include "astra-sim/system/Common.hh"

namespace AstraSim {

class AstraNetworkAPI {
  public:
    explicit AstraNetworkAPI(int own) : rank(own) {}
    virtual ~AstraNetworkAPI() = default;

    virtual int sim_send(void*, std::uint64_t, int, int, int, sim_request*, void (*)(void*), void*) = 0;
    virtual int sim_recv(void*, std::uint64_t, int, int, int, sim_request*, void (*)(void*), void*) = 0;
    virtual void sim_schedule(timespec_t, void (*)(void*), void*) = 0;
    virtual timespec_t sim_get_time() = 0;
    virtual int sim_comm_get_rank() { return rank; }
    virtual int sim_comm_set_rank(int other) { return rank = other; }
    virtual double get_BW_at_dimension(int) { return -1; }
    virtual void sim_notify_finished() {}

    int rank;
};

}  // namespace AstraSim

#endif
