/* What a network backend of SimAI sees of it, in this project's words: names, types and the order of fields are SimAI's. */
#ifndef STAND_IN_SIMAI_NETWORK_API_HH
#define STAND_IN_SIMAI_NETWORK_API_HH

#include <cstdint>
#include <string>
#include <vector>

namespace AstraSim {

class AstraMemoryAPI;

struct sim_comm {
    std::string comm_name;
};

enum time_type_e { SE, MS, US, NS, FS };

struct timespec_t {
    time_type_e time_res;
    double time_val;
};

enum req_type_e { UINT8, BFLOAT16, FP32 };

struct ncclFlowTag {
    int channel_id = -1, chunk_id = -1, current_flow_id = -1, child_flow_id = -1, sender_node = -1, receiver_node = -1;
    std::uint64_t flow_size = 0;
    void* pQps = nullptr;
    int tag_id = -1;
    std::vector<int> tree_flow_list;
    bool nvls_on = false;
};

struct sim_request {
    std::uint32_t srcRank, dstRank, tag;
    req_type_e reqType;
    std::uint64_t reqCount;
    std::uint32_t vnet, layerNum;
    ncclFlowTag flowTag;
};

class MetaData {
  public:
    timespec_t timestamp;
};

class AstraNetworkAPI {
  public:
    enum class BackendType { NotSpecified, Garnet, NS3, Analytical };
    explicit AstraNetworkAPI(int rank) : rank(rank) {}
    virtual ~AstraNetworkAPI() = default;
    virtual BackendType get_backend_type() { return BackendType::NotSpecified; }
    virtual int sim_comm_size(sim_comm comm, int* size) = 0;
    virtual int sim_finish() = 0;
    virtual double sim_time_resolution() = 0;
    virtual int sim_init(AstraMemoryAPI* MEM) = 0;
    virtual timespec_t sim_get_time() = 0;
    virtual void sim_schedule(timespec_t delta, void (*fun_ptr)(void* fun_arg), void* fun_arg) = 0;
    virtual int sim_send(void* buffer, std::uint64_t count, int type, int dst, int tag, sim_request* request, void (*msg_handler)(void* fun_arg),
                         void* fun_arg) = 0;
    virtual int sim_recv(void* buffer, std::uint64_t count, int type, int src, int tag, sim_request* request, void (*msg_handler)(void* fun_arg),
                         void* fun_arg) = 0;
    virtual double get_BW_at_dimension(int) { return -1; }

  protected:
    int rank;
};

/* The base of events. */
class BasicEventHandlerData {
  public:
    virtual ~BasicEventHandlerData() = default;
    int channel_id = -1;
};

}  // namespace AstraSim

#endif
