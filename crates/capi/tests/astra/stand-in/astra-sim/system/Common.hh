/* A stand-in for ASTRA-sim's header of this name, in our own words: the types of the network interface, for tests of the adapter. */
#ifndef STAND_IN_COMMON_HH
#define STAND_IN_COMMON_HH

#include <cstdint>

namespace AstraSim {

enum time_type_e { SE = 0, MS, US, NS, FS };

struct timespec_t {
    time_type_e time_res;
    long double time_val;
};

struct sim_request {
    std::uint32_t srcRank, dstRank, tag;
};

}  // namespace AstraSim

#endif
