// One workload thread's share of a round: waits until each call is due, makes it, and writes down when. Between the
// first and the last call of a round nothing is allocated, locked (on a real GPU) or touched for the first time.
//
// When is a call due? At max(arrival of its request, return of this thread's previous call + the recorded host gap,
// return of its `after` calls). A call that the arm leaves out leaves its host gap to the next one: the program around
// the kernel still does that work.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "gpu/driver.h"
#include "replay/sizing.h"
#include "trace/writer.h"
#include "worker/arms.h"
#include "worker/buffers.h"
#include "worker/faults.h"
#include "workload/workload.h"

namespace kgate::worker {

class CounterSampler;
class LiveSampler;

// What the threads of a worker share. Streams and events are made once and used by both arms.
struct Shared {
  Shared(gpu::Driver& driver, const Workload& workload, const ReplayPlan& plan, DeviceBuffers& buffers);

  gpu::Driver& driver;
  const Workload& workload;
  const ReplayPlan& plan;
  DeviceBuffers& buffers;
  std::vector<gpu::CUstream> streams;
  std::vector<gpu::CUevent> events;
  std::mutex counting;                // virtual GPU only: a launch and the reading of its counts are one step
  std::atomic<bool> stop{false};      // some thread has failed
  CounterSampler* sampler = nullptr;  // counters mode
  LiveSampler* live = nullptr;        // live mode
  PreparedArm recorded;               // live mode: the launches as recorded

  // By arm and workload graph; empty where graphs are taken apart: numbers are compared launch by launch, and the
  // virtual GPU counts launches one by one.
  std::vector<std::vector<gpu::CUgraphExec>> graphs;

  // Host memory that uploads send, by payload: page-locked and pageable, each where some call needs it.
  struct HostData {
    const std::byte* pinned = nullptr;
    std::vector<std::byte> pageable;
  };
  std::vector<HostData> payloads;
  std::byte* pinned_sink = nullptr;  // destination of downloads into page-locked memory
  // Replayed allocations, which nothing uses.
  std::vector<gpu::CUdeviceptr> scratch;
  void free_scratch();  // those that a round left

  // Calls that another call waits for: how often each has returned in this round, and when last.
  struct Returned {
    std::atomic<uint64_t> times{0}, at{0};
  };
  std::vector<uint32_t> request_of;      // by call
  std::vector<bool> awaited;             // by call
  std::unique_ptr<Returned[]> returned;  // by call
  void begin_round();
};

struct RoundStart {
  const PreparedArm* arm = nullptr;
  uint32_t arm_index = 0, round = 0;
  uint64_t origin = 0;  // when the arrival clock begins
};

class Replayer {
 public:
  // Replays the requests of `thread`, or all of them (numeric mode, where one thread does everything in order).
  Replayer(Shared& shared, uint32_t thread);

  void play(const RoundStart& start);   // this thread's whole share; throws GpuError
  void begin(const RoundStart& start);  // or step by step; `start` outlives the round
  void begin(RoundStart&& start) = delete;
  void play_request(uint32_t request, uint64_t loop);
  // All calls of the workload once, in the order in which they were issued, whatever their thread. `after` is told of
  // each request that has ended.
  void play_in_order(const std::function<void(uint32_t request)>& after);

  RecordWriter::Stage& stage() { return stage_; }
  const Position& position() const { return position_; }  // where an exception came from
  // The launch that a fault at a synchronisation must come from: of the request so far, when it made only one and
  // nothing of earlier requests was in flight (numeric mode). Else none.
  uint32_t suspect() const { return follows_edges_ || launched_ != 1 ? kNone : last_launch_; }

 private:
  // A launch in its place: made by a call, or by a node of a graph that is taken apart.
  struct Site {
    uint32_t call, launch;
    uint32_t node = kNone;
  };
  wire::RequestRecord open_request(uint32_t request, uint64_t loop);
  void close_request(wire::RequestRecord& record);
  void play_call(uint32_t call, wire::RequestRecord& record, uint64_t loop);
  uint64_t wait_for(const Call& call, uint64_t arrival, uint64_t loop);
  uint64_t await_others(const Call& call, uint64_t loop);
  void launch_all(const Site& site, uint64_t due, wire::RequestRecord& record);
  void run_steps(const Site& site, const PreparedCall& prepared, uint64_t due, wire::RequestRecord& record);
  void launch(const Site& site, const PreparedCall& prepared, const PreparedStep& step, uint16_t item,
              const wire::RequestRecord& record);
  void launch_graph(uint32_t call, uint64_t due, wire::RequestRecord& record);
  void perform(const PreparedStep& step, gpu::CUstream stream);
  void perform(const Call& call);
  void perform(const GraphNode& node, gpu::CUstream stream);
  void upload(const Call& call, gpu::CUstream stream);
  void download(const Call& call, gpu::CUstream stream);
  void note(wire::RequestRecord& record, uint64_t due, uint64_t issue);
  gpu::CUdeviceptr at(uint32_t buffer, uint64_t offset) const {
    return shared_.buffers.address(buffer, start_->arm_index) + offset;
  }
  uint64_t paced(uint64_t ns) const {
    return shared_.plan.speed == 1 ? ns : static_cast<uint64_t>(static_cast<double>(ns) / shared_.plan.speed);
  }

  Shared& shared_;
  bool paced_, follows_edges_, is_virtual_;
  Span span_;
  std::vector<uint32_t> requests_;  // this thread's, in order
  std::vector<std::byte> scratch_;  // destination of downloads
  RecordWriter::Stage stage_;
  uint32_t os_thread_ = 0;
  const RoundStart* start_ = nullptr;
  uint64_t previous_return_ = 0, owed_gap_ = 0;
  bool request_begun_ = false;
  uint32_t launched_ = 0, last_launch_ = kNone;  // by the request so far
  Position position_;
};

}  // namespace kgate::worker
