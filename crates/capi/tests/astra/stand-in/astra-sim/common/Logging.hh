/* A stand-in for ASTRA-sim's header of this name, for tests of the adapter. */
#ifndef STAND_IN_LOGGING_HH
#define STAND_IN_LOGGING_HH

#include <string>

namespace AstraSim {

struct LoggerFactory {
    static void init(const std::string&, const std::string&) {}
    static void shutdown() {}
};

}  // namespace AstraSim

#endif
