/*
 * A stand-in for ASTRA-sim's header of this name, in our own words, for tests of the adapter: a rank whose workload is a ring in which each rank passes
 * on what it gets, `endpoint` ns after it. The prefix of the workload says what goes wrong: `lost`: rank 3 does not send; `sizes`: it sends another size than
 * rank 4 expects, and the exception is caught here, as ASTRA-sim catches those of its events; `early`: answers come at once.
 */
#ifndef STAND_IN_SYS_HH
#define STAND_IN_SYS_HH

#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "astra-sim/common/AstraNetworkAPI.hh"
#include "remote_memory_backend/analytical/AnalyticalRemoteMemory.hh"

namespace AstraSim {

class Sys;

class Workload {
  public:
    Workload(Sys& own, std::string prefix, double scale) : sys(own), name(prefix), endpoint(name == "early" ? 0 : 10 * scale) {}
    void fire();

  private:
    void step();
    void pass_on();

    Sys& sys;
    std::string name;
    double endpoint;
    int steps = 0;
};

class Sys {
  public:
    Sys(int own, std::string workload_prefix, std::string groups, std::string system, Analytical::AnalyticalRemoteMemory* memory,
        AstraNetworkAPI* network_of_rank, std::vector<int> dimensions, std::vector<int> queues, double injection_scale, double comm_scale, bool rendezvous)
        : id(own), network(network_of_rank), workload(new Workload(*this, workload_prefix, injection_scale)) {
        for (const int dimension : dimensions)
            ranks *= dimension;
        if (own == 0)
            std::cout << groups << " " << system << " " << (memory != nullptr) << " " << dimensions.size() << " " << queues.size() << " " << queues[0] << " "
                      << comm_scale << " " << rendezvous << "\n";
    }
    ~Sys() { delete workload; }
    Sys(const Sys&) = delete;
    Sys& operator=(const Sys&) = delete;

    int id, ranks = 1;
    AstraNetworkAPI* network;
    Workload* workload;
};

inline void Workload::fire() {
    pass_on();
}

inline void Workload::pass_on() {
    const int next = (sys.id + 1) % sys.ranks, previous = (sys.id + sys.ranks - 1) % sys.ranks;
    const std::uint64_t size = name == "sizes" && sys.id == 3 ? 5000 : 10000;
    try {
        if (name != "lost" || sys.id != 3)
            sys.network->sim_send(nullptr, size, 0, next, 7, nullptr, nullptr, nullptr);
        sys.network->sim_recv(
            nullptr, 10000, 0, previous, 7, nullptr, [](void* workload) { static_cast<Workload*>(workload)->step(); }, this);
    } catch (const std::exception&) {
        std::cout << "caught\n";
    }
}

inline void Workload::step() {
    const auto then = [](void* argument) {
        Workload& workload = *static_cast<Workload*>(argument);
        if (++workload.steps < workload.sys.ranks - 1)
            return workload.pass_on();
        std::cout << "sys[" << workload.sys.id << "] finished, " << static_cast<std::uint64_t>(workload.sys.network->sim_get_time().time_val) << " cycles\n";
        workload.sys.network->sim_notify_finished();
    };
    sys.network->sim_schedule({NS, endpoint}, then, this);
}

}  // namespace AstraSim

#endif
