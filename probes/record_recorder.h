// The recorder of one process: CUPTI's callbacks come in, records go out (workload/recording.h).
//
// A call is recorded at its exit, with the sequence number and the time of its entry. Between the two it counts as
// open. Where the slice begins or ends, the thread that finds that out holds all others at the entries of their next
// calls, waits until no call is open that could change memory, and reads memory; then everything goes on. A call that
// only waits for the device is not waited for.
//
// The application never fails because of the recorder: what cannot be recorded becomes a note.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "gpu/cupti_callback_abi.h"
#include "probes/record_copies.h"
#include "probes/record_driver.h"
#include "probes/record_memory.h"
#include "probes/record_modules.h"
#include "probes/record_options.h"
#include "probes/record_output.h"
#include "probes/record_thread.h"

namespace kgate::record {

enum class Slice : uint32_t { before, inside, after };

// Marks calls of the recorder's own.
class Inside {
 public:
  explicit Inside(Thread& thread) : thread_(thread), before_(std::exchange(thread.inside, true)) {}
  ~Inside() { thread_.inside = before_; }

 private:
  Thread& thread_;
  const bool before_;
};

class Recorder {
 public:
  Recorder(Options options, std::unique_ptr<Output> output, const DriverCalls& driver);

  Output& output() { return *output_; }
  Threads& threads() { return threads_; }
  // CUPTI does not show this call. Before anything is recorded.
  void cannot_watch(const char* call) { unwatched_.emplace_back(call); }
  bool recording() const { return slice_ != Slice::after; }

  // Callbacks of CUPTI, in the application's threads.
  void on_driver_call(uint32_t cbid, const gpu::CUpti_CallbackData& data);
  void on_context_created(gpu::CUcontext context);
  void on_context_destroyed(gpu::CUcontext context);
  void on_module(const gpu::CUpti_ModuleResourceData& module);

  // NVTX. `name` is not kept.
  void on_range_push(const std::string& name);
  void on_range_pop();
  void on_range_start(const std::string& name, uint64_t id);
  void on_range_end(uint64_t id);

  // From a thread of the recorder's own, at exit: ends the slice if it lasts, and closes the files.
  void finish();

  // Changes while finish() gets on.
  uint64_t progress() const { return progress_; }

 private:
  struct Launch;  // record_launches.cpp
  friend class GraphReader;

  // ---- calls: record_calls.cpp
  void enter(Thread& thread, uint32_t cbid, const gpu::CUpti_CallbackData& data);
  void exit(Thread& thread, uint32_t cbid, const gpu::CUpti_CallbackData& data);
  void enter_work(Thread& thread, uint32_t cbid, const gpu::CUpti_CallbackData& data);
  void exit_context(Thread& thread, uint32_t cbid, const gpu::CUpti_CallbackData& data, int result);
  recording::Head head(const Thread& thread, recording::Kind kind, int result) const;
  void note_device(Thread& thread, gpu::CUcontext context);
  void check_context(Thread& thread, gpu::CUcontext context);

  // ---- streams and events: record_streams.cpp
  void exit_event_or_stream(Thread& thread, uint32_t cbid, const gpu::CUpti_CallbackData& data, int result);
  bool exit_stream_life(Thread& thread, uint32_t cbid, const gpu::CUpti_CallbackData& data, int result);
  bool exit_wait(Thread& thread, uint32_t cbid, const gpu::CUpti_CallbackData& data, int result);
  void host_sync(Thread& thread);  // one has returned
  bool is_capturing(Thread& thread, uint64_t stream);
  template <typename Record>
  void put_on_stream(Thread& thread, recording::Kind kind, int result, uint64_t stream);
  void put_event(Thread& thread, recording::Kind kind, int result, gpu::CUevent event, uint64_t stream);

  // ---- launches and graphs: record_launches.cpp, record_graph.cpp
  void enter_launch(Thread& thread, uint32_t cbid, const gpu::CUpti_CallbackData& data);
  void exit_launch(Thread& thread, uint32_t cbid, const gpu::CUpti_CallbackData& data, int result);
  uint32_t pack_params(Thread& thread, const Function& function, void* const* params, void* const* extra);
  void exit_graph(Thread& thread, uint32_t cbid, const gpu::CUpti_CallbackData& data, int result);
  void read_graph(Thread& thread, gpu::CUgraphExec exec, gpu::CUgraph graph);
  void graph_changed(gpu::CUgraphExec exec, const char* call);
  void check_graph(Thread& thread, gpu::CUgraphExec exec);

  // ---- copies and fills: record_copies.cpp
  void enter_copy(Thread& thread, const Copy& copy);
  void exit_copy(Thread& thread, const Copy& copy, int result);
  void exit_fill(Thread& thread, const Fill& fill, int result);
  recording::Side side_of(Thread& thread, unsigned kind, uint64_t address);
  void take_payload(Thread& thread, const Copy& copy);

  // ---- memory: record_allocations.cpp
  void enter_free(Thread& thread, uint32_t cbid, const gpu::CUpti_CallbackData& data);
  void exit_memory(Thread& thread, uint32_t cbid, const gpu::CUpti_CallbackData& data, int result);
  void put_alloc(Thread& thread, const Allocation& allocation, uint64_t stream, int result, bool existing = false);
  void note_memory(Thread& thread, const Allocation& allocation);

  // ---- modules: record_code.cpp
  void enter_code(Thread& thread, uint32_t cbid, const gpu::CUpti_CallbackData& data);
  void exit_code(Thread& thread, uint32_t cbid, const gpu::CUpti_CallbackData& data, int result);

  // ---- the slice: record_slice.cpp
  void hold(Thread& thread, uint32_t busy);  // waits while the slice begins or ends
  bool claim(Thread& thread);                // holds all others; false: another thread does
  void release();
  void wait_for_open_calls(Thread& thread);
  bool begin_is_due(const Thread& thread) const;
  bool end_is_due() const;
  void begin_slice(Thread& thread);
  void end_slice(Thread& thread);
  // If it lasts and nobody else does. `whole`: not while a capture lets no memory be read.
  void end_slice_now(Thread& thread, bool whole = false);
  void synchronise();
  void snapshot(const Allocation& allocation, bool at_end, std::vector<std::byte>& piece, uint64_t& lost);
  void request_ended(Thread& thread);

  // Each text once. `refused`: a slice that holds it cannot be replayed; outside of the slice nobody minds.
  void note(Thread& thread, const std::string& text, bool refused = true);

  void put_range(Thread& thread, recording::Kind kind, const std::string& name, uint64_t id);
  bool keeps_range(const std::string& name) const;

  const Options options_;
  const std::unique_ptr<Output> output_;
  const DriverCalls driver_;
  std::atomic<uint64_t> sequence_{1};
  std::atomic<uint64_t> progress_{0};
  Threads threads_;
  MemoryMap memory_;
  Modules modules_;

  std::atomic<Slice> slice_{Slice::before};
  std::atomic<uint32_t> held_{0};  // 1: calls wait at their entries
  std::atomic<uint64_t> first_launch_{0}, slice_began_{0}, requests_{0}, payload_bytes_{0};
  std::atomic<uint32_t> captures_{0};  // active
  std::vector<std::string> unwatched_;
  std::atomic<uint64_t> attributes_noted_{0};  // a bit a launch attribute that is left out
  bool too_large_ = false;                     // no snapshots

  std::mutex mutex_;  // of what follows; not held over a call to the driver
  std::set<std::string> said_;
  std::set<std::string> lasting_;  // refusals of what still exists when the slice begins
  std::set<gpu::CUcontext> contexts_;
  std::atomic<gpu::CUcontext> context_{nullptr};  // the first that works
  std::atomic<bool> device_noted_{false};
  std::unordered_map<int, uint32_t> retained_;                             // primary contexts, by device
  std::unordered_set<uint64_t> capturing_;                                 // streams
  std::unordered_map<uint64_t, std::vector<std::string>> graph_refusals_;  // by executable graph
  std::atomic<uint32_t> graphs_refused_{0};
  std::unordered_map<uint64_t, std::pair<uint64_t, std::string>> variables_;  // of modules: size, name by address
  std::unordered_set<uint64_t> started_ranges_;                               // those that are requests
};

}  // namespace kgate::record
