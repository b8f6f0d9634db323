/*
 * A network for simulators of AI training on libnetloom, whatever their interface: `netloom_network.hh` has that of ASTRA-sim 2.x, `simai_network.hh` that of SimAI.
 *
 * `netloom_astra::Network` is one simulated network with the events of all ranks. It is used by one thread. Errors are exceptions (`netloom_astra::Error`) that say what is wrong in words.
 *
 * Rules, where ASTRA-sim's other backends differ from each other:
 * - The k-th receive of a rank from a source with a tag gets the k-th message that the source sends to it with that tag, whichever is first.
 * - A handler is never called from inside sim_send or sim_recv, but from the event list, at the same instant if there is nothing to wait for.
 * - Handlers are called at whole nanoseconds, the unit of the interface: at the first one at or after what they tell of.
 * - A receive is done when the last byte has arrived, a send when the last ACK is back (`SendDone`).
 */
#ifndef NETLOOM_NETWORK_HH
#define NETLOOM_NETWORK_HH

#include <cstdint>
#include <deque>
#include <functional>
#include <iosfwd>
#include <queue>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "netloom.h"

namespace netloom_astra {

struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/* When a send is done. */
enum class SendDone {
    Acked,  /* the last ACK has come back */
    Arrival /* the last byte has arrived, as in the analytical backends */
};

struct Options {
    /* A scenario file of netloom, or with `is_text` its text. */
    std::string scenario;
    bool is_text = false;
    /* ASTRA-sim takes at least this long to answer an arrival with a message: its endpoint delay, 10 ns unless configured otherwise. 0: it may answer at once. */
    std::uint64_t reaction_ps = 10000;
    unsigned threads = 1;
    SendDone send_done = SendDone::Acked;
};

using Handler = void (*)(void* argument);

class Network {
  public:
    explicit Network(const Options& options);
    ~Network();
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;

    int hosts() const;
    std::uint64_t now_ns() const { return now; }

    void schedule(std::uint64_t delta_ns, Handler handler, void* argument);
    void send(int source, int destination, int tag, std::uint64_t bytes, Handler handler, void* argument);
    void receive(int destination, int source, int tag, std::uint64_t bytes, Handler handler, void* argument);
    /* The workload of one more rank is done. */
    void note_finished() { finished += 1; }
    int finished_ranks() const { return finished; }

    /* Runs until nothing that ASTRA-sim waits for can happen any more. */
    void run();

    /* Writes who waits for what; returns the number of receives that wait. Messages that no rank has received are named, too. */
    std::size_t report_waiting(std::ostream& out) const;

    /* Messages that were to leave before the reaction time was over and left at its end, and by how much at most. */
    std::uint64_t delayed_sends() const { return delayed; }
    std::uint64_t longest_delay_ps() const { return longest_delay; }

    /* Ends the run; writes what happened, flow by flow and link by link, to a new folder unless its name is empty. */
    void finish(const std::string& folder);

    /* Ends the run with an error, even where ASTRA-sim, which calls what calls this, catches the exception. */
    [[noreturn]] void fail(const std::string& why);

  private:
    struct Key {
        int tag, source, destination;
        bool operator==(const Key& other) const {
            return tag == other.tag && source == other.source && destination == other.destination;
        }
    };
    struct KeyHash {
        std::size_t operator()(const Key& key) const;
    };
    /* A message and its receive, of which one may be missing yet. */
    struct Pair {
        bool is_sent = false, has_arrived = false, is_posted = false;
        std::uint64_t sent_bytes = 0, posted_bytes = 0, sent_ns = 0, posted_ns = 0;
        Handler handler = nullptr;
        void* argument = nullptr;
        bool is_over() const { return has_arrived && is_posted; }
    };
    /* All with the same tag, source and destination that are not over, in order. */
    struct Channel {
        std::deque<Pair> pairs;
        std::uint64_t first = 0, sent = 0, posted = 0;
        Pair& at(std::uint64_t number);
    };
    struct Message {
        Key key;
        std::uint64_t number;
        Handler handler;
        void* argument;
        int events;
    };
    struct Event {
        std::uint64_t ns, sequence;
        Handler handler;
        void* argument;
        /* Of a message that has arrived or been acknowledged: its place, else -1. */
        std::int64_t message;
        std::uint32_t kind;
        bool operator>(const Event& other) const {
            return ns != other.ns ? ns > other.ns : sequence > other.sequence;
        }
    };

    void push(std::uint64_t ns, Handler handler, void* argument, std::int64_t message, std::uint32_t kind);
    void handle(const Event& event);
    void arrive(const Key& key, std::uint64_t number);
    void close_if_over(const Key& key);
    void check_sizes(const Key& key, std::uint64_t number, const Pair& pair);
    std::uint64_t picoseconds(std::uint64_t ns);

    netloom_simulation* simulation = nullptr;
    std::string failure;
    SendDone send_done;
    std::uint64_t now = 0, sequence = 0;
    std::priority_queue<Event, std::vector<Event>, std::greater<Event>> events;
    std::unordered_map<Key, Channel, KeyHash> channels;
    std::vector<Message> messages;
    std::vector<std::size_t> free_messages;
    std::size_t underway = 0;
    int finished = 0;
    std::uint64_t delayed = 0, longest_delay = 0;
};

}  // namespace netloom_astra

#endif
