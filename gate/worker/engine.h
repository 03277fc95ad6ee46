// Runs a plan's rounds: restore, start the threads, wait, synchronise, hand over the records.
//
// Threads are made once and parked between rounds: a thread that is created inside a round, or touches memory there for
// the first time, stalls the requests behind it, and with a thousand requests that one stall is the p99.
#pragma once

#include <barrier>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "trace/collector.h"
#include "trace/writer.h"
#include "worker/replayer.h"

namespace kgate::worker {

// A fault that was already described where it happened, on its way out.
struct ThreadFault : std::exception {
  FaultEvent event;
  explicit ThreadFault(FaultEvent event) : event(std::move(event)) {}
  const char* what() const noexcept override { return event.detail.c_str(); }
};

struct EngineOutput {
  RecordWriter& writer;
  CuptiCollector* collector = nullptr;  // null: no device-side collection
  std::function<void(uint32_t round, std::optional<uint32_t> request)> progress;
  std::span<std::byte> readback;  // numeric; as readback_layout() says
};

// Each returns after the last round, or throws ThreadFault with the first fault of any thread.
void run_timing(Shared& shared, const std::vector<PreparedArm>& arms, const EngineOutput& output);
void run_numeric(Shared& shared, const std::vector<PreparedArm>& arms, const EngineOutput& output);

}  // namespace kgate::worker
