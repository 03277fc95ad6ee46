// The gate itself: one candidate from file to verdict. `kgate check` and the corpus runner are thin around it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "gpu/driver.h"
#include "judge/verdict.h"

namespace kgate {

struct GateRequest {
  std::filesystem::path contract;  // empty: `entry` says what is judged, a workload brings the launches
  std::filesystem::path candidate;
  std::string entry;                              // empty: the binding's or the contract's kernel
  std::optional<std::filesystem::path> workload;  // overrides the contract's
  std::optional<std::filesystem::path> baseline;  // overrides the contract's
  std::string device = "auto";
  Scope scope = Scope::full;
  std::string require_tier;                  // "T0": a lower one is exit 5; empty: any
  std::optional<uint64_t> seed;              // default: derived from the candidate's hash
  std::optional<uint32_t> warmup, requests;  // a round; defaults by device
  uint32_t max_pairs = 24;
  bool counters = false;      // the counters pass as well
  double speed = 1;           // arrivals and host gaps are divided by it
  std::filesystem::path out;  // folder for trace.db; created
  std::string command;        // what repeats this run
  std::function<void(double fraction, const std::string& what)> on_progress;
};

// Throws Error for what is wrong with the input or the machine; everything about the candidate is in the verdict.
Verdict run_gate(const GateRequest& request);

}  // namespace kgate
