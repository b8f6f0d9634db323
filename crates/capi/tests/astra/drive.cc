/* Drives the adapter for ASTRA-sim as ASTRA-sim does: each rank has a network interface, and everything happens in handlers. argv: a test, and what it needs. */
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "netloom_network.hh"

using netloom_astra::Network;
using netloom_astra::RankNetwork;
using netloom_astra::SendDone;

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            std::cerr << "line " << __LINE__ << ": " << #condition << "\n";                  \
            std::exit(1);                                                                    \
        }                                                                                    \
    } while (0)

namespace {

/* Handlers as functions, which last as long as the program. */
void call(void* argument) {
    if (argument)
        (*static_cast<std::function<void()>*>(argument))();
}

void* keep(std::function<void()> function) {
    static std::vector<std::unique_ptr<std::function<void()>>> kept;
    kept.push_back(std::make_unique<std::function<void()>>(std::move(function)));
    return kept.back().get();
}

struct Ranks {
    explicit Ranks(const std::string& scenario, std::uint64_t reaction_ps = 10000, SendDone send_done = SendDone::Acked, unsigned threads = 1)
        : network({scenario, true, reaction_ps, threads, send_done}) {
        for (int rank = 0; rank < network.hosts(); rank++)
            apis.push_back(std::make_unique<RankNetwork>(rank, network));
    }
    void send(int src, int dst, int tag, std::uint64_t bytes, std::function<void()> done = nullptr) {
        /* Native collectives give NULL for what they send. */
        apis[src]->sim_send(nullptr, bytes, 0, dst, tag, nullptr, call, done ? keep(std::move(done)) : nullptr);
    }
    void receive(int dst, int src, int tag, std::uint64_t bytes, std::function<void()> done) {
        apis[dst]->sim_recv(nullptr, bytes, 0, src, tag, nullptr, call, keep(std::move(done)));
    }
    void after(int rank, long double ns, std::function<void()> then) {
        apis[rank]->sim_schedule({AstraSim::NS, ns}, call, keep(std::move(then)));
    }
    std::uint64_t now() { return static_cast<std::uint64_t>(apis[0]->sim_get_time().time_val); }
    int size() const { return static_cast<int>(apis.size()); }
    std::string report() {
        std::ostringstream out;
        network.report_waiting(out);
        return out.str();
    }

    Network network;
    std::vector<std::unique_ptr<AstraSim::AstraNetworkAPI>> apis;
};

const std::string SMALL = "[topology]\nkind = \"fat-tree\"\nk = 4\n";

std::string tree(int k) { return "[topology]\nkind = \"fat-tree\"\nk = " + std::to_string(k) + "\n"; }

/* When ranks were done: the sum, so that one number compares whole runs, and the last. */
struct Result {
    std::uint64_t sum = 0, last = 0;
    int count = 0;
    void note(std::uint64_t at) {
        sum = sum * 31 + at;
        last = std::max(last, at);
        count += 1;
    }
    bool operator==(const Result& other) const { return sum == other.sum && last == other.last && count == other.count; }
};

/* Every rank passes on what it gets: `steps` messages per rank, one after the other, with the same tag. */
Result ring(Ranks& ranks, int count, int steps, std::uint64_t bytes) {
    Result result;
    std::vector<int> done(count);
    std::function<void(int)> step = [&](int rank) {
        if (done[rank] == steps) {
            result.note(ranks.now() * 4096 + rank);
            return;
        }
        ranks.send(rank, (rank + 1) % count, 5, bytes);
        ranks.receive(rank, (rank + count - 1) % count, 5, bytes, [&, rank] {
            done[rank] += 1;
            ranks.after(rank, 10, [&, rank] { step(rank); });
        });
    };
    for (int rank = 0; rank < count; rank++)
        step(rank);
    ranks.network.run();
    CHECK(result.count == count && ranks.report().empty() && ranks.network.delayed_sends() == 0);
    ranks.network.finish("");
    return result;
}

/* In round r every rank exchanges `bytes` with the rank whose number differs in bit r. */
Result recursive_doubling(Ranks& ranks, std::uint64_t bytes) {
    Result result;
    const int count = ranks.size();
    std::function<void(int, int)> round = [&](int rank, int number) {
        const int peer = rank ^ (1 << number);
        if (peer >= count) {
            result.note(ranks.now() * 4096 + rank);
            return;
        }
        ranks.receive(rank, peer, number, bytes, [&, rank, number] { ranks.after(rank, 10, [&, rank, number] { round(rank, number + 1); }); });
        ranks.send(rank, peer, number, bytes);
    };
    for (int rank = 0; rank < count; rank++)
        round(rank, 0);
    ranks.network.run();
    CHECK(result.count == count && ranks.report().empty());
    ranks.network.finish("");
    return result;
}

/* Whole runs are the same with and without a reaction time, and on two threads. */
void collectives() {
    const auto same = [](const std::function<Result(Ranks&)>& go, const std::string& scenario) {
        Ranks at_once(scenario, 0), cut(scenario), longer(scenario, 10000, SendDone::Acked, 2);
        const Result expected = go(at_once);
        CHECK(expected.last > 0);
        CHECK(go(cut) == expected);
        CHECK(go(longer) == expected);
    };
    same([](Ranks& ranks) { return ring(ranks, 16, 15, 20000); }, SMALL);
    same([](Ranks& ranks) { return recursive_doubling(ranks, 30000); }, SMALL);
}

void large() {
    Ranks some(tree(8));
    CHECK(some.size() == 128);
    const Result ring_of_64 = ring(some, 64, 2 * 63, 16384);
    Ranks many(tree(16));
    CHECK(many.size() == 1024);
    const Result doubling = recursive_doubling(many, 4096);
    std::cout << ring_of_64.last / 4096 << " " << doubling.last / 4096 << "\n";
}

/* Messages and receives meet, whichever is first, in the order of their tag, source and destination. */
void matching() {
    Ranks ranks(SMALL);
    std::vector<std::string> log;
    const auto note = [&](const std::string& what) { return [&, what] { log.push_back(what + "@" + std::to_string(ranks.now())); }; };
    const auto place = [&](const std::string& what) {
        const auto found = std::find_if(log.begin(), log.end(), [&](const std::string& line) { return line.rfind(what + "@", 0) == 0; });
        CHECK(found != log.end());
        return found - log.begin();
    };
    const auto at = [&](const std::string& what) {
        const std::string& line = log[static_cast<std::size_t>(place(what))];
        return std::stoull(line.substr(line.find('@') + 1));
    };
    /* An early receive; nothing is called from inside. */
    bool is_inside = true;
    ranks.receive(9, 0, 1, 1000, [&] {
        CHECK(!is_inside);
        note("early")();
    });
    ranks.send(0, 9, 1, 1000, note("sent"));
    /* The same tag again and again, and the other way, with another tag and from another source at the same time. */
    for (int i = 0; i < 3; i++)
        ranks.receive(9, 0, 2, 1000 * (i + 1), note("same" + std::to_string(i)));
    for (int i = 0; i < 3; i++)
        ranks.send(0, 9, 2, 1000 * (i + 1));
    ranks.send(9, 0, 2, 77);
    ranks.receive(0, 9, 2, 77, note("back"));
    ranks.send(1, 9, 2, 88);
    ranks.receive(9, 1, 2, 88, note("other"));
    /* A late receive, posted when the message has been there for long, and inside another receive's handler. */
    ranks.send(3, 4, 3, 1000);
    ranks.after(4, 50000, [&] {
        is_inside = true;
        ranks.receive(4, 3, 3, 1000, [&] {
            CHECK(!is_inside && ranks.now() == 50000);
            note("late")();
            is_inside = true;
            ranks.send(4, 4, 9, 10, note("self-sent"));
            ranks.receive(4, 4, 9, 10, [&] {
                CHECK(!is_inside);
                note("self")();
            });
            is_inside = false;
        });
        is_inside = false;
    });
    /* No bytes, and events of one instant in the order in which they were asked for. */
    ranks.send(5, 6, 4, 0);
    ranks.receive(6, 5, 4, 0, note("nothing"));
    for (int i = 0; i < 3; i++)
        ranks.after(i, 60000, note("third" + std::to_string(i)));
    ranks.apis[0]->sim_schedule({AstraSim::US, 61}, call, keep(note("us")));
    is_inside = false;
    ranks.network.run();
    CHECK(ranks.report().empty());
    CHECK(log.size() == 15);
    CHECK(at("early") > 0 && at("early") < at("sent"));
    CHECK(place("same0") < place("same1") && place("same1") < place("same2"));
    CHECK(at("back") > 0 && at("other") > 0 && at("nothing") > 0 && at("nothing") < at("early") + 2000);
    /* What answers at once leaves when the reaction time is over, which is counted. */
    CHECK(at("self") >= 50000 && at("self") <= 50010 && at("self-sent") == at("self"));
    CHECK(place("third0") < place("third1") && place("third1") < place("third2") && at("third2") == 60000 && at("us") == 61000);
    ranks.network.finish("");
}

/* A send is done at the last ACK, or at the arrival. */
void send_done() {
    std::vector<std::uint64_t> arrived, sent;
    for (const SendDone done : {SendDone::Acked, SendDone::Arrival}) {
        Ranks ranks(SMALL, 10000, done);
        ranks.send(0, 9, 1, 100000, [&] { sent.push_back(ranks.now()); });
        ranks.receive(9, 0, 1, 100000, [&] { arrived.push_back(ranks.now()); });
        ranks.network.run();
        ranks.network.finish("");
    }
    CHECK(arrived.size() == 2 && sent.size() == 2);
    CHECK(arrived[0] == arrived[1] && sent[0] > arrived[0] && sent[1] == arrived[1]);
    std::cout << arrived[0] << " " << sent[0] << "\n";
}

void answers_at_once() {
    const auto answered = [](std::uint64_t reaction_ps, std::uint64_t& delayed) {
        Ranks ranks(SMALL, reaction_ps);
        std::uint64_t end = 0;
        ranks.send(0, 9, 1, 1000);
        ranks.receive(9, 0, 1, 1000, [&] { ranks.send(9, 0, 2, 1000); });
        ranks.receive(0, 9, 2, 1000, [&] { end = ranks.now(); });
        ranks.network.run();
        delayed = ranks.network.delayed_sends();
        CHECK(ranks.network.longest_delay_ps() <= reaction_ps);
        return end;
    };
    std::uint64_t none = 0, some = 0;
    const std::uint64_t at_once = answered(0, none), later = answered(10000, some);
    CHECK(none == 0 && some == 1);
    CHECK(later > at_once && later <= at_once + 10);
}

void five_gib() {
    const std::uint64_t bytes = 5ull << 30;
    Ranks ranks("[topology]\nkind = \"crossbar\"\nhosts = 2\n[transport]\nmtu = 9000\n");
    std::uint64_t end = 0;
    ranks.send(0, 1, 1, bytes);
    ranks.receive(1, 0, 1, bytes, [&] { end = ranks.now(); });
    ranks.network.run();
    CHECK(end > 0);
    ranks.network.finish("");
    std::cout << end << "\n";
}

void hang() {
    Ranks ranks(SMALL);
    ranks.receive(2, 1, 500000007, 1048576, [] {});
    ranks.send(1, 3, 8, 99);
    ranks.after(3, 700, [&] { ranks.receive(3, 0, 9, 5, [] {}); });
    ranks.network.run();
    const std::string report = ranks.report();
    CHECK(ranks.now() >= 700);
    CHECK(report ==
          "2 receives wait at " + std::to_string(ranks.now()) + " ns:\n  rank 2 waits for 1048576 bytes from rank 1 with tag 500000007 since 0 ns: never sent\n"
              "  rank 3 waits for 5 bytes from rank 0 with tag 9 since 700 ns: never sent\n"
              "1 messages that no rank receives:\n  rank 1 sent 99 bytes to rank 3 with tag 8 at 0 ns\n" ||
          (std::cerr << report, false));
}

void refusals() {
    const auto refused = [](const std::function<void()>& what, const std::string& words) {
        try {
            what();
        } catch (const netloom_astra::Error& error) {
            const std::string message = error.what();
            if (message.find(words) == std::string::npos)
                std::cerr << message << "\n";
            CHECK(message.find(words) != std::string::npos);
            return;
        }
        std::cerr << words << "\n";
        CHECK(false);
    };
    refused([] { Ranks ranks("[topology]\nkind = \"fat-tre\"\n"); }, "did you mean `fat-tree`?");
    refused([] { Ranks ranks(SMALL, 0, SendDone::Acked, 2); }, "--threads: threads: expected 1 without a reaction time");
    refused([] { Ranks ranks(SMALL + "[transport]\nmtu = 1500\nreliability = \"none\"\ncongestion = \"none\"\n"); }, "--send-done=acked");
    refused(
        [] {
            Ranks ranks(SMALL);
            ranks.send(0, 1, 6, 10);
            ranks.receive(1, 0, 6, 11, [] {});
        },
        "message 1 with tag 6 from rank 0 to rank 1 has 10 bytes, the receive expects 11");
    refused(
        [] {
            Ranks ranks(SMALL);
            ranks.send(0, 16, 6, 10);
        },
        "tag 6 from rank 0 to rank 16: dst: expected a host from 0 to 15");
    refused(
        [] {
            Ranks ranks(SMALL);
            ranks.after(0, -1, [] {});
        },
        "expected a time from 0");
    refused(
        [] {
            Ranks ranks(SMALL);
            ranks.apis[0]->get_BW_at_dimension(0);
        },
        "offline greedy");
}

}  // namespace

int main(int argc, char** argv) {
    CHECK(argc == 2);
    const std::string test = argv[1];
    try {
        if (test == "collectives") collectives();
        else if (test == "large") large();
        else if (test == "matching") matching();
        else if (test == "send-done") send_done();
        else if (test == "answers-at-once") answers_at_once();
        else if (test == "five-gib") five_gib();
        else if (test == "hang") hang();
        else if (test == "refusals") refusals();
        else CHECK(false);
    } catch (const std::exception& error) {
        std::cerr << "uncaught: " << error.what() << "\n";
        return 1;
    }
    return 0;
}
