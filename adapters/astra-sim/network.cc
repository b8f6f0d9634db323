#include "network.hh"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <tuple>

namespace netloom_astra {

namespace {

std::string named(int tag, int source, int destination) {
    return "tag " + std::to_string(tag) + " from rank " + std::to_string(source) + " to rank " + std::to_string(destination);
}

/* Lines of a report that are written out. */
constexpr std::size_t MOST_LINES = 50;

}  // namespace

std::size_t Network::KeyHash::operator()(const Key& key) const {
    std::uint64_t hash = static_cast<std::uint32_t>(key.tag);
    for (const int part : {key.source, key.destination})
        hash = (hash ^ static_cast<std::uint32_t>(part)) * 0x9e3779b97f4a7c15u ^ hash >> 29;
    return static_cast<std::size_t>(hash ^ hash >> 32);
}

Network::Pair& Network::Channel::at(std::uint64_t number) {
    while (number - first >= pairs.size())
        pairs.emplace_back();
    return pairs[number - first];
}

Network::Network(const Options& options) : send_done(options.send_done) {
    const char* scenario = options.scenario.c_str();
    simulation = options.is_text ? netloom_open(scenario) : netloom_open_file(scenario);
    if (!simulation)
        throw Error(netloom_error());
    const auto check = [this](int result, const std::string& what) {
        if (result == 0)
            return;
        const std::string why = netloom_error();
        netloom_close(simulation);
        throw Error(what + ": " + why);
    };
    if (send_done == SendDone::Acked)
        check(netloom_report_acknowledged(simulation), "--send-done=acked (`arrival` does without ACKs)");
    check(netloom_set_reaction(simulation, options.reaction_ps), "--reaction");
    if (options.threads > 1)
        check(netloom_set_threads(simulation, options.threads), "--threads");
}

void Network::fail(const std::string& why) {
    if (failure.empty())
        failure = why;
    throw Error(failure);
}

std::uint64_t Network::picoseconds(std::uint64_t ns) {
    if (ns > NETLOOM_FOREVER / 1000 - 1)
        fail("an event for " + std::to_string(ns) + " ns: expected a time of at most 213 simulated days");
    return ns * 1000;
}

Network::~Network() { netloom_close(simulation); }

int Network::hosts() const { return static_cast<int>(netloom_hosts(simulation)); }

void Network::push(std::uint64_t ns, Handler handler, void* argument, std::int64_t message, std::uint32_t kind) {
    picoseconds(ns);
    events.push(Event{ns, sequence++, handler, argument, message, kind});
}

void Network::schedule(std::uint64_t delta_ns, Handler handler, void* argument) {
    if (delta_ns > NETLOOM_FOREVER - now)
        fail("an event in " + std::to_string(delta_ns) + " ns: expected a time of at most 213 simulated days");
    push(now + delta_ns, handler, argument, -1, 0);
}

void Network::check_sizes(const Key& key, std::uint64_t number, const Pair& pair) {
    if (pair.is_sent && pair.is_posted && pair.sent_bytes != pair.posted_bytes)
        fail("message " + std::to_string(number + 1) + " with " + named(key.tag, key.source, key.destination) + " has " +
                    std::to_string(pair.sent_bytes) + " bytes, the receive expects " + std::to_string(pair.posted_bytes));
}

void Network::send(int source, int destination, int tag, std::uint64_t bytes, Handler handler, void* argument) {
    const Key key{tag, source, destination};
    std::size_t place = messages.size();
    if (free_messages.empty()) {
        messages.emplace_back();
    } else {
        place = free_messages.back();
        free_messages.pop_back();
    }
    const std::uint64_t due = picoseconds(now);
    const std::uint64_t start = std::max(due, netloom_earliest_start(simulation));
    if (start > due) {
        delayed += 1;
        longest_delay = std::max(longest_delay, start - due);
    }
    if (netloom_start_at(simulation, static_cast<std::uint32_t>(source), static_cast<std::uint32_t>(destination), bytes, place, start, 0) != 0)
        fail("a message with " + named(tag, source, destination) + ": " + netloom_error());
    Channel& channel = channels[key];
    const std::uint64_t number = channel.sent++;
    Pair& pair = channel.at(number);
    pair.is_sent = true;
    pair.sent_bytes = bytes;
    pair.sent_ns = now;
    check_sizes(key, number, pair);
    messages[place] = Message{key, number, handler, argument, send_done == SendDone::Acked ? 2 : 1};
    underway += 1;
}

void Network::receive(int destination, int source, int tag, std::uint64_t bytes, Handler handler, void* argument) {
    const Key key{tag, source, destination};
    Channel& channel = channels[key];
    const std::uint64_t number = channel.posted++;
    Pair& pair = channel.at(number);
    pair.is_posted = true;
    pair.posted_bytes = bytes;
    pair.posted_ns = now;
    pair.handler = handler;
    pair.argument = argument;
    check_sizes(key, number, pair);
    if (pair.has_arrived) {
        push(now, handler, argument, -1, 0);
        close_if_over(key);
    }
}

/* Forgets what is over. */
void Network::close_if_over(const Key& key) {
    const auto found = channels.find(key);
    Channel& channel = found->second;
    while (!channel.pairs.empty() && channel.pairs.front().is_over()) {
        channel.pairs.pop_front();
        channel.first += 1;
    }
    /* With tags by the million, channels that are used once would fill the memory; nothing depends on how often one was used. */
    if (channel.pairs.empty())
        channels.erase(found);
}

void Network::arrive(const Key& key, std::uint64_t number) {
    Pair& pair = channels.at(key).at(number);
    pair.has_arrived = true;
    if (!pair.is_posted)
        return;
    const Handler handler = pair.handler;
    void* const argument = pair.argument;
    close_if_over(key);
    if (handler)
        handler(argument);
}

void Network::handle(const Event& event) {
    if (event.message < 0) {
        if (event.handler)
            event.handler(event.argument);
        return;
    }
    const auto place = static_cast<std::size_t>(event.message);
    const Message message = messages[place];
    if (--messages[place].events == 0) {
        free_messages.push_back(place);
        underway -= 1;
    }
    const bool has_arrived = event.kind == NETLOOM_ARRIVED;
    const bool is_sent = send_done == SendDone::Arrival || !has_arrived;
    if (is_sent && message.handler)
        message.handler(message.argument);
    if (has_arrived)
        arrive(message.key, message.number);
}

void Network::run() {
    if (!failure.empty())
        throw Error(failure);
    while (!events.empty() || underway > 0) {
        const std::uint64_t until = events.empty() ? NETLOOM_FOREVER : picoseconds(events.top().ns);
        netloom_event found;
        const int result = netloom_next_event(simulation, until, &found);
        if (result < 0)
            fail(std::string("the network: ") + netloom_error());
        if (result == 1) {
            const std::uint64_t ns = found.time_ps / 1000 + (found.time_ps % 1000 != 0);
            push(std::max(ns, now), nullptr, nullptr, static_cast<std::int64_t>(found.tag), found.kind);
            continue;
        }
        if (events.empty())
            break;
        now = events.top().ns;
        while (!events.empty() && events.top().ns == now) {
            const Event event = events.top();
            events.pop();
            handle(event);
            if (!failure.empty())
                throw Error(failure);
        }
    }
}

std::size_t Network::report_waiting(std::ostream& out) const {
    struct Line {
        Key key;
        std::uint64_t number;
        Pair pair;
    };
    std::vector<Line> waiting, unwanted;
    for (const auto& [key, channel] : channels) {
        for (std::size_t i = 0; i < channel.pairs.size(); i++) {
            const Pair& pair = channel.pairs[i];
            if (pair.is_posted && !pair.has_arrived)
                waiting.push_back({key, channel.first + i, pair});
            else if (pair.is_sent && !pair.is_posted)
                unwanted.push_back({key, channel.first + i, pair});
        }
    }
    const auto order = [](const Line& a, const Line& b) {
        return std::tie(a.key.destination, a.key.source, a.key.tag, a.number) < std::tie(b.key.destination, b.key.source, b.key.tag, b.number);
    };
    std::sort(waiting.begin(), waiting.end(), order);
    std::sort(unwanted.begin(), unwanted.end(), order);
    const auto rest = [&out](std::size_t count) {
        if (count > MOST_LINES)
            out << "  and " << count - MOST_LINES << " more\n";
    };
    if (!waiting.empty())
        out << waiting.size() << " receives wait at " << now << " ns:\n";
    for (std::size_t i = 0; i < std::min(waiting.size(), MOST_LINES); i++) {
        const auto& [key, number, pair] = waiting[i];
        out << "  rank " << key.destination << " waits for " << pair.posted_bytes << " bytes from rank " << key.source << " with tag " << key.tag
            << " since " << pair.posted_ns << " ns: ";
        if (pair.is_sent)
            out << "sent at " << pair.sent_ns << " ns, not arrived\n";
        else
            out << "never sent\n";
    }
    rest(waiting.size());
    if (!unwanted.empty())
        out << unwanted.size() << " messages that no rank receives:\n";
    for (std::size_t i = 0; i < std::min(unwanted.size(), MOST_LINES); i++) {
        const auto& [key, number, pair] = unwanted[i];
        out << "  rank " << key.source << " sent " << pair.sent_bytes << " bytes to rank " << key.destination << " with tag " << key.tag << " at "
            << pair.sent_ns << " ns\n";
    }
    rest(unwanted.size());
    return waiting.size();
}

void Network::finish(const std::string& folder) {
    if (netloom_finish(simulation, folder.empty() ? nullptr : folder.c_str()) != 0)
        fail(std::string("the outcome: ") + netloom_error());
}

}  // namespace netloom_astra
