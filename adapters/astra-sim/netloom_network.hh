/*
 * The network of ASTRA-sim 2.x: `netloom_astra::RankNetwork` is what it sees of a `netloom_astra::Network` at a rank.
 */
#ifndef NETLOOM_ASTRA_NETWORK_HH
#define NETLOOM_ASTRA_NETWORK_HH

#include <cmath>
#include <cstdint>
#include <string>

#include "astra-sim/common/AstraNetworkAPI.hh"
#include "network.hh"

namespace netloom_astra {

/* A rank, on the host with its number. */
class RankNetwork : public AstraSim::AstraNetworkAPI {
  public:
    RankNetwork(int rank, Network& network) : AstraNetworkAPI(rank), network(network) {}

    int sim_send(void* buffer, std::uint64_t count, int type, int dst, int tag, AstraSim::sim_request* request,
                 void (*msg_handler)(void* fun_arg), void* fun_arg) override;
    int sim_recv(void* buffer, std::uint64_t count, int type, int src, int tag, AstraSim::sim_request* request,
                 void (*msg_handler)(void* fun_arg), void* fun_arg) override;
    void sim_schedule(AstraSim::timespec_t delta, void (*fun_ptr)(void* fun_arg), void* fun_arg) override;
    AstraSim::timespec_t sim_get_time() override;
    void sim_notify_finished() override { network.note_finished(); }
    /* Refuses offline-greedy scheduling, which alone asks: a scenario has no bandwidth per logical dimension. */
    double get_BW_at_dimension(int dim) override;

  private:
    Network& network;
};

inline int RankNetwork::sim_send(void*, std::uint64_t count, int, int dst, int tag, AstraSim::sim_request*, void (*msg_handler)(void* fun_arg),
                                 void* fun_arg) {
    network.send(rank, dst, tag, count, msg_handler, fun_arg);
    return 0;
}

inline int RankNetwork::sim_recv(void*, std::uint64_t count, int, int src, int tag, AstraSim::sim_request*, void (*msg_handler)(void* fun_arg),
                                 void* fun_arg) {
    network.receive(rank, src, tag, count, msg_handler, fun_arg);
    return 0;
}

inline void RankNetwork::sim_schedule(AstraSim::timespec_t delta, void (*fun_ptr)(void* fun_arg), void* fun_arg) {
    long double ns = delta.time_val;
    switch (delta.time_res) {
        case AstraSim::SE: ns *= 1e9L; break;
        case AstraSim::MS: ns *= 1e6L; break;
        case AstraSim::US: ns *= 1e3L; break;
        case AstraSim::NS: break;
        case AstraSim::FS: ns /= 1e6L; break;
    }
    if (!(ns >= 0) || ns > 1e18L)
        network.fail("sim_schedule of rank " + std::to_string(rank) + ": expected a time from 0 to 10^18 ns");
    network.schedule(static_cast<std::uint64_t>(std::ceil(ns)), fun_ptr, fun_arg);
}

inline AstraSim::timespec_t RankNetwork::sim_get_time() {
    AstraSim::timespec_t time;
    time.time_res = AstraSim::NS;
    time.time_val = static_cast<long double>(network.now_ns());
    return time;
}

inline double RankNetwork::get_BW_at_dimension(int) {
    network.fail("inter-dimension-scheduling: expected another one than offline greedy,"
                 " which needs a bandwidth per logical dimension that a scenario does not have");
}

}  // namespace netloom_astra

#endif
