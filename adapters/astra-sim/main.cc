/* ASTRA-sim with a network of netloom: the options of its other backends, with a scenario of netloom as the network. */
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "astra-sim/common/Logging.hh"
#include "astra-sim/system/Sys.hh"
#include "netloom_network.hh"
#include "remote_memory_backend/analytical/AnalyticalRemoteMemory.hh"

namespace {

using netloom_astra::Error;

/* Option, default ("-": must be given), what it means. */
struct Known {
    const char* name;
    const char* value;
    const char* help;
};

const Known OPTIONS[] = {
    {"workload-configuration", "-", "prefix of the execution traces: PREFIX.0.et, PREFIX.1.et, ..."},
    {"system-configuration", "-", "system, JSON"},
    {"network-configuration", "-", "scenario of netloom, TOML"},
    {"remote-memory-configuration", "-", "remote memory, JSON"},
    {"logical-topology-configuration", "", "logical dimensions, JSON: {\"logical-dims\": [\"8\", \"2\"]}; one of all hosts unless given"},
    {"comm-group-configuration", "empty", "communicator groups, JSON"},
    {"logging-configuration", "empty", "logging"},
    {"logging-folder", "log", "where logs go"},
    {"num-queues-per-dim", "1", "queues per logical dimension"},
    {"comm-scale", "1", "factor of communication"},
    {"injection-scale", "1", "factor of the endpoint delay"},
    {"rendezvous-protocol", "false", "true: messages wait for their receives"},
    {"reaction", "10ns", "ASTRA-sim answers an arrival this long after it at the earliest: whole ns, us or ms; 0ns: at once, at several times the cost"},
    {"send-done", "acked", "when a send counts as done: acked (last ACK is back) or arrival (last byte has arrived)"},
    {"threads", "1", "threads of the network; more than one with a reaction time of a link's latency or more"},
    {"outcome", "", "new folder for flows, links and the summary, which `netloom report` and `netloom show` read"},
};

using Values = std::map<std::string, std::string>;

void print_help() {
    std::cout << "ASTRA-sim with a network of netloom " << netloom_version() << "\n\n";
    for (const Known& known : OPTIONS) {
        std::cout << "  --" << known.name << "=...\n      " << known.help;
        if (known.value[0] != '-' && known.value[0] != '\0')
            std::cout << " [" << known.value << "]";
        std::cout << "\n";
    }
}

Values parse(int argc, char** argv) {
    Values values;
    for (int i = 1; i < argc; i++) {
        std::string name = argv[i], value;
        if (name.rfind("--", 0) != 0)
            throw Error(name + ": expected an option such as --system-configuration=FILE");
        name.erase(0, 2);
        const auto equals = name.find('=');
        if (equals != std::string::npos) {
            value = name.substr(equals + 1);
            name.erase(equals);
        } else if (i + 1 < argc) {
            value = argv[++i];
        } else {
            throw Error("--" + name + ": expected a value");
        }
        bool is_known = false;
        for (const Known& known : OPTIONS)
            is_known = is_known || name == known.name;
        if (!is_known)
            throw Error("--" + name + ": there is no such option; --help lists them");
        values[name] = value;
    }
    for (const Known& known : OPTIONS) {
        if (values.count(known.name))
            continue;
        if (std::string(known.value) == "-")
            throw Error(std::string("--") + known.name + ": is to be given: " + known.help);
        values[known.name] = known.value;
    }
    return values;
}

std::uint64_t whole(const std::string& text, const std::string& what, std::uint64_t most) {
    std::size_t end = 0;
    std::uint64_t number = 0;
    const bool is_number = !text.empty() && text.size() <= 18 && std::isdigit(static_cast<unsigned char>(text[0]));
    if (is_number)
        number = std::stoull(text, &end);
    if (!is_number || end != text.size() || number > most)
        throw Error(what + ": expected a whole number from 0 to " + std::to_string(most) + ", found `" + text + "`");
    return number;
}

double factor(const Values& values, const std::string& name) {
    const std::string& text = values.at(name);
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(number >= 0))
        throw Error("--" + name + ": expected a number, found `" + text + "`");
    return number;
}

std::string choice(const Values& values, const std::string& name, const std::string& one, const std::string& other) {
    const std::string& text = values.at(name);
    if (text != one && text != other)
        throw Error("--" + name + ": expected " + one + " or " + other + ", found `" + text + "`");
    return text;
}

std::uint64_t reaction(const std::string& text) {
    const auto unit = text.find_first_not_of("0123456789");
    const std::map<std::string, std::uint64_t> units = {{"ns", 1000}, {"us", 1000000}, {"ms", 1000000000}};
    const auto found = unit == std::string::npos ? units.end() : units.find(text.substr(unit));
    if (found == units.end())
        throw Error("--reaction: expected a whole number of ns, us or ms such as 10ns, found `" + text + "`");
    return whole(text.substr(0, unit), "--reaction", 1000000000) * found->second;
}

/* The numbers of {"logical-dims": ["8", "2"]}, with quotes or without. */
std::vector<int> logical_dimensions(const std::string& path) {
    std::ifstream file(path);
    if (!file)
        throw Error(path + ": cannot be read");
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const std::string expected = path + ": expected {\"logical-dims\": [\"8\", \"2\"]}";
    const auto name = text.find("\"logical-dims\"");
    const auto open = name == std::string::npos ? name : text.find('[', name);
    const auto close = open == std::string::npos ? open : text.find(']', open);
    if (close == std::string::npos)
        throw Error(expected);
    std::vector<int> dimensions;
    std::string item;
    for (auto i = open + 1; i <= close; i++) {
        const char letter = text[i];
        if (letter == ',' || letter == ']') {
            dimensions.push_back(static_cast<int>(whole(item, expected, 1 << 30)));
            if (dimensions.back() == 0)
                throw Error(expected + ", found 0");
            item.clear();
        } else if (letter != '"' && !std::isspace(static_cast<unsigned char>(letter))) {
            item += letter;
        }
    }
    return dimensions;
}

/* The run; its exit code. */
int run(const Values& values) {
    netloom_astra::Options options;
    options.scenario = values.at("network-configuration");
    options.reaction_ps = reaction(values.at("reaction"));
    options.threads = static_cast<unsigned>(whole(values.at("threads"), "--threads", 1024));
    const bool is_acked = choice(values, "send-done", "acked", "arrival") == "acked";
    options.send_done = is_acked ? netloom_astra::SendDone::Acked : netloom_astra::SendDone::Arrival;
    const bool rendezvous = choice(values, "rendezvous-protocol", "true", "false") == "true";
    const int queues = static_cast<int>(whole(values.at("num-queues-per-dim"), "--num-queues-per-dim", 1 << 20));
    netloom_astra::Network network(options);

    std::vector<int> dimensions = {network.hosts()};
    const std::string& logical = values.at("logical-topology-configuration");
    if (!logical.empty())
        dimensions = logical_dimensions(logical);
    std::uint64_t ranks = 1;
    for (const int dimension : dimensions) {
        ranks *= static_cast<std::uint64_t>(dimension);
        if (ranks > static_cast<std::uint64_t>(network.hosts()))
            throw Error(logical + ": the product of the dimensions is more than the " + std::to_string(network.hosts()) + " hosts of " + options.scenario);
    }

    AstraSim::LoggerFactory::init(values.at("logging-configuration"), values.at("logging-folder"));
    Analytical::AnalyticalRemoteMemory memory(values.at("remote-memory-configuration"));
    std::vector<std::unique_ptr<netloom_astra::RankNetwork>> networks;
    std::vector<std::unique_ptr<AstraSim::Sys>> systems;
    for (int rank = 0; rank < static_cast<int>(ranks); rank++) {
        networks.push_back(std::make_unique<netloom_astra::RankNetwork>(rank, network));
        systems.push_back(std::make_unique<AstraSim::Sys>(
            rank, values.at("workload-configuration"), values.at("comm-group-configuration"), values.at("system-configuration"), &memory,
            networks.back().get(), dimensions, std::vector<int>(dimensions.size(), queues), factor(values, "injection-scale"),
            factor(values, "comm-scale"), rendezvous));
    }
    for (const auto& system : systems)
        system->workload->fire();
    network.run();

    if (network.delayed_sends() > 0)
        std::cerr << network.delayed_sends() << " messages were to leave less than --reaction=" << values.at("reaction")
                  << " after an arrival, and left up to " << network.longest_delay_ps() << " ps later; --reaction=0ns sends them at once\n";
    const std::size_t waiting = network.report_waiting(std::cerr);
    const int missing = static_cast<int>(ranks) - network.finished_ranks();
    if (missing > 0)
        std::cerr << missing << " of " << ranks << " ranks have not finished\n";
    network.finish(values.at("outcome"));
    systems.clear();
    AstraSim::LoggerFactory::shutdown();
    return missing > 0 || waiting > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 2 && std::string(argv[1]) == "--help") {
        print_help();
        return 0;
    }
    try {
        return run(parse(argc, argv));
    } catch (const std::exception& error) {
        std::cerr << "error: " << error.what() << "\n";
        return 2;
    }
}
