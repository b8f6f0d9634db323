/* A stand-in for ASTRA-sim's header of this name, for tests of the adapter. */
#ifndef STAND_IN_REMOTE_MEMORY_HH
#define STAND_IN_REMOTE_MEMORY_HH

#include <string>

namespace Analytical {

struct AnalyticalRemoteMemory {
    explicit AnalyticalRemoteMemory(std::string) {}
};

}  // namespace Analytical

#endif
