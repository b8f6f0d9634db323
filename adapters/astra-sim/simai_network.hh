/*
 * The network of SimAI, whose interface is that of ASTRA-sim 1 with the tags of its flows (aliyun/SimAI, astra-sim-alibabacloud/astra-sim/system/AstraNetworkAPI.hh at cef83f9).
 *
 * `netloom_astra::SimAiNetwork` is what SimAI's `Sys` sees of a `netloom_astra::Network` at a rank. What it does beyond `RankNetwork`, as SimAI's ns-3 front end does:
 * - A receive has the tag `flowTag.tag_id` of its event; the argument `tag` is not used.
 * - Before its handler is called the event gets the flow tag of the message that has come, from which the collective finds the flows after it. A send's event gets that of its own message.
 * - A receive of a tag for which one waits already is left out.
 * - A flow is handed to the network `send_latency_ns` after sim_send, and a flow of no bytes has one.
 * With a `Network` whose reaction time is not above that latency nothing is put off.
 */
#ifndef NETLOOM_SIMAI_NETWORK_HH
#define NETLOOM_SIMAI_NETWORK_HH

#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "astra-sim/system/AstraNetworkAPI.hh"
#include "astra-sim/system/RecvPacketEventHadndlerData.hh"
#include "astra-sim/system/SendPacketEventHandlerData.hh"
#include "network.hh"

namespace netloom_astra {

/* What the ranks of a run share: the network, and the tags of flows that are under way. One for all ranks. */
class SimAiFlows {
  public:
    SimAiFlows(Network& network, std::uint64_t send_latency_ns) : network(network), send_latency(send_latency_ns) {}
    SimAiFlows(const SimAiFlows&) = delete;
    SimAiFlows& operator=(const SimAiFlows&) = delete;

    void send(int source, int destination, int tag, std::uint64_t bytes, const AstraSim::ncclFlowTag& flow, Handler handler, void* argument) {
        flows[{tag, source, destination}].tags.push_back(flow);
        Sending* sending = new Sending{this, source, destination, tag, bytes == 0 ? 1 : bytes, flow, handler, argument};
        network.schedule(send_latency, start, sending);
    }

    void receive(int destination, int source, int tag, std::uint64_t bytes, Handler handler, void* argument) {
        Channel& channel = flows[{tag, source, destination}];
        if (channel.is_awaited)
            return;
        channel.is_awaited = true;
        network.receive(destination, source, tag, bytes == 0 ? 1 : bytes, received, new Receiving{this, source, destination, tag, handler, argument});
    }

    Network& network;

  private:
    /* Flows of one tag, source and destination: those whose receives have not been called, in order. */
    struct Channel {
        std::deque<AstraSim::ncclFlowTag> tags;
        bool is_awaited = false;
    };
    struct Sending {
        SimAiFlows* flows;
        int source, destination, tag;
        std::uint64_t bytes;
        AstraSim::ncclFlowTag flow;
        Handler handler;
        void* argument;
    };
    struct Receiving {
        SimAiFlows* flows;
        int source, destination, tag;
        Handler handler;
        void* argument;
    };

    static void start(void* argument) {
        Sending* sending = static_cast<Sending*>(argument);
        sending->flows->network.send(sending->source, sending->destination, sending->tag, sending->bytes, sent, sending);
    }
    static void sent(void* argument) {
        const std::unique_ptr<Sending> sending(static_cast<Sending*>(argument));
        if (!sending->argument)
            return;
        static_cast<AstraSim::SendPacketEventHandlerData*>(sending->argument)->flowTag = sending->flow;
        sending->handler(sending->argument);
    }
    static void received(void* argument) {
        const std::unique_ptr<Receiving> receiving(static_cast<Receiving*>(argument));
        Channel& channel = receiving->flows->flows[{receiving->tag, receiving->source, receiving->destination}];
        const AstraSim::ncclFlowTag flow = channel.tags.front();
        channel.tags.pop_front();
        channel.is_awaited = false;
        if (channel.tags.empty())
            receiving->flows->flows.erase({receiving->tag, receiving->source, receiving->destination});
        static_cast<AstraSim::RecvPacketEventHadndlerData*>(receiving->argument)->flowTag = flow;
        receiving->handler(receiving->argument);
    }

    std::uint64_t send_latency;
    std::map<std::tuple<int, int, int>, Channel> flows;
};

/* A node of SimAI (a GPU, or an NVSwitch with AS_NVLS_ENABLE=1), on the host with its number. */
class SimAiNetwork : public AstraSim::AstraNetworkAPI {
  public:
    SimAiNetwork(int rank, SimAiFlows& flows) : AstraNetworkAPI(rank), flows(flows) {}

    int sim_comm_size(AstraSim::sim_comm, int*) override { return 0; }
    int sim_finish() override {
        flows.network.note_finished();
        return 0;
    }
    double sim_time_resolution() override { return 0; }
    int sim_init(AstraSim::AstraMemoryAPI*) override { return 0; }

    AstraSim::timespec_t sim_get_time() override {
        AstraSim::timespec_t time;
        time.time_res = AstraSim::NS;
        time.time_val = static_cast<double>(flows.network.now_ns());
        return time;
    }
    /* As in the ns-3 front end the time is in nanoseconds, whatever its unit says. */
    void sim_schedule(AstraSim::timespec_t delta, void (*fun_ptr)(void* fun_arg), void* fun_arg) override {
        if (!(delta.time_val >= 0) || delta.time_val > 9e15)
            flows.network.fail("sim_schedule of node " + std::to_string(rank) + ": expected a time from 0 to 9e15 ns");
        flows.network.schedule(static_cast<std::uint64_t>(std::ceil(delta.time_val)), fun_ptr, fun_arg);
    }
    int sim_send(void*, std::uint64_t count, int, int dst, int tag, AstraSim::sim_request* request, void (*msg_handler)(void* fun_arg),
                 void* fun_arg) override {
        flows.send(rank, dst, tag, count, request->flowTag, msg_handler, fun_arg);
        return 0;
    }
    int sim_recv(void*, std::uint64_t count, int, int src, int, AstraSim::sim_request*, void (*msg_handler)(void* fun_arg), void* fun_arg) override {
        const int tag = static_cast<AstraSim::RecvPacketEventHadndlerData*>(fun_arg)->flowTag.tag_id;
        flows.receive(rank, src, tag, count, msg_handler, fun_arg);
        return 0;
    }

  private:
    SimAiFlows& flows;
};

}  // namespace netloom_astra

#endif
