/* Drives the adapter for SimAI as its collectives do: a flow that has come says by its tag which flows are next. argv: a test. */
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "simai_network.hh"

using AstraSim::RecvPacketEventHadndlerData;
using AstraSim::SendPacketEventHandlerData;

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            std::cerr << "line " << __LINE__ << ": " << #condition << "\n";                  \
            std::exit(1);                                                                    \
        }                                                                                    \
    } while (0)

namespace {

constexpr std::uint64_t LATENCY = 6000;

struct Nodes {
    explicit Nodes(int count)
        : network({"[topology]\nkind = \"crossbar\"\nhosts = " + std::to_string(count) + "\n", true, LATENCY * 1000, 1, netloom_astra::SendDone::Acked}),
          flows(network, LATENCY) {
        for (int node = 0; node < count; node++)
            apis.push_back(std::make_unique<netloom_astra::SimAiNetwork>(node, flows));
    }
    void send(int src, int dst, int id, std::vector<int> next, void (*then)(SendPacketEventHandlerData*)) {
        AstraSim::sim_request request = {};
        request.flowTag.current_flow_id = id;
        request.flowTag.tag_id = id;
        request.flowTag.sender_node = src;
        request.flowTag.receiver_node = dst;
        request.flowTag.tree_flow_list = std::move(next);
        SendPacketEventHandlerData* event = new SendPacketEventHandlerData;
        event->then = then;
        apis[src]->sim_send(nullptr, 100000, 0, dst, id, &request, [](void* event) {
            const std::unique_ptr<SendPacketEventHandlerData> sent(static_cast<SendPacketEventHandlerData*>(event));
            sent->then(sent.get());
        }, event);
    }
    void receive(int dst, int src, int id, void (*then)(RecvPacketEventHadndlerData*)) {
        AstraSim::sim_request request = {};
        RecvPacketEventHadndlerData* event = new RecvPacketEventHadndlerData;
        event->flowTag.tag_id = id;
        event->then = then;
        /* The tag beside it is another one, as with SimAI. */
        apis[dst]->sim_recv(nullptr, 100000, 0, src, 77, &request, [](void* event) {
            const std::unique_ptr<RecvPacketEventHadndlerData> received(static_cast<RecvPacketEventHadndlerData*>(event));
            received->then(received.get());
        }, event);
    }
    std::uint64_t now() { return static_cast<std::uint64_t>(apis[0]->sim_get_time().time_val); }

    netloom_astra::Network network;
    netloom_astra::SimAiFlows flows;
    std::vector<std::unique_ptr<netloom_astra::SimAiNetwork>> apis;
};

Nodes* nodes;
int sent_flows, received_flows;

void note_sent(SendPacketEventHandlerData* event) {
    CHECK(event->flowTag.current_flow_id >= 0);
    sent_flows++;
}

/* Goes on with the flow that the tag of the one that has come names, from where that has come to. */
void go_on(RecvPacketEventHadndlerData* event) {
    const AstraSim::ncclFlowTag& flow = event->flowTag;
    CHECK(flow.current_flow_id == received_flows);
    received_flows++;
    for (const int next : flow.tree_flow_list) {
        const int here = flow.receiver_node, there = (here + 1) % 4;
        nodes->receive(there, here, next, go_on);
        nodes->send(here, there, next, next < 7 ? std::vector<int>{next + 1} : std::vector<int>{}, note_sent);
    }
}

/* Eight flows around a ring of four, each the child of the one before it. */
void ring() {
    Nodes all(4);
    nodes = &all;
    all.receive(1, 0, 0, go_on);
    all.send(0, 1, 0, {1}, note_sent);
    all.network.run();
    CHECK(sent_flows == 8 && received_flows == 8);
    /* Each waits for the latency of a send and for its bytes. */
    CHECK(all.now() > 8 * LATENCY);
    std::ostringstream report;
    CHECK(all.network.report_waiting(report) == 0);
}

std::vector<int> order;

/* Flows that come before their receives keep their tags; a second receive of a tag is left out while the first waits. */
void early() {
    Nodes all(2);
    nodes = &all;
    all.send(0, 1, 5, {9}, note_sent);
    all.send(0, 1, 6, {8}, note_sent);
    all.apis[1]->sim_schedule({AstraSim::NS, 1e6}, [](void*) {
        const auto note = [](RecvPacketEventHadndlerData* event) { order.push_back(event->flowTag.tree_flow_list.at(0)); };
        nodes->receive(1, 0, 6, note);
        nodes->receive(1, 0, 5, note);
        nodes->receive(1, 0, 4, note);
        nodes->receive(1, 0, 4, note);
        nodes->send(0, 1, 4, {7}, note_sent);
    }, nullptr);
    all.network.run();
    CHECK((order == std::vector<int>{8, 9, 7}));
    CHECK(sent_flows == 3);
}

}  // namespace

int main(int, char** argv) {
    const std::string test = argv[1];
    if (test == "ring")
        ring();
    else if (test == "early")
        early();
    else
        return 2;
    return 0;
}
