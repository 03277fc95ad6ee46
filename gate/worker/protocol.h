// Control messages between kgate and kgate-worker: JSON lines over a socket pair, at most 64 KiB each. The worker is
// untrusted once a kernel has run: kgate parses defensively, and anything that is not a known event in a legal order is
// a finding ("garbage on the channel").
//
//   kgate → worker   hello {version, library, ordinal, plan, record_bytes, readback_bytes, cupti, collect}
//   worker → kgate   ready {version, pid}         driver library loaded, nothing initialised: probes attach now
//   kgate → worker   start {}
//   worker → kgate   device {...}
//   worker → kgate   loaded {arm label: ns, ...}
//   worker → kgate   placed {wanted, exact}       buffers with a recorded address, and those that lie there
//   worker → kgate   canary {launches, syncs, begin, end}  made between begin and end (CLOCK_MONOTONIC ns), nothing
//   else kgate → worker   go {} worker → kgate   progress {round, request?}   one a round; numeric: one a request as
//   well, before its round's worker → kgate   done {collected, health}     the end worker → kgate   fault {stage, arm,
//   request, launch, code, name, detail, kind, line, statement}  any time; then done
//
// Descriptors in the worker: 3 control socket, 4 record memfd, 5 readback memfd (numeric).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "gpu/driver.h"
#include "support/error.h"
#include "trace/collector.h"

namespace kgate::worker {

constexpr int kProtocolVersion = 2;
constexpr int kControlFd = 3, kRecordFd = 4, kReadbackFd = 5;
constexpr size_t kMaxMessage = 64 * 1024;

struct Hello {
  std::string library;  // driver library path
  int ordinal = 0;
  std::string plan;  // directory of write_plan()
  uint64_t record_bytes = 0, readback_bytes = 0;
  std::string cupti;  // path; empty: no device-side collection
  Collect collect{};  // which records
};

struct FaultEvent {
  std::string stage;          // "init", "load", "bind", "memory", "canary", "restore", "launch", "sync", "readback"
  uint32_t arm = 0xffffffff;  // none: the workload's own modules, or nothing of either arm
  uint32_t request = 0xffffffff, launch = 0xffffffff;  // indices in the workload; none: not known
  int code = 0;                                        // CUresult
  std::string name;                                    // "CUDA_ERROR_ILLEGAL_ADDRESS"
  std::string detail;                                  // one line
  std::string kind;   // virtual GPU's fault kind ("out_of_bounds", "unsupported", ...), else empty
  uint32_t line = 0;  // PTX line, virtual GPU only
  std::string statement;
};

struct Message {
  enum class Type { hello, ready, start, device, loaded, placed, canary, go, progress, fault, done } type = Type::ready;
  Hello hello;                   // hello
  int pid = 0;                   // ready
  gpu::DeviceProperties device;  // device
  std::map<std::string, double>
      numbers;             // loaded (arm label → ns), canary, progress (round, request); all finite, not negative
  FaultEvent fault;        // fault
  CollectorHealth health;  // done
  bool collected = false;  // done: health is meaningful
};

const char* message_type_name(Message::Type type);
std::string encode(const Message& message);       // one line, with '\n'; long texts are cut
Result<Message> decode(const std::string& line);  // strict: unknown types, missing fields, wrong types are failures

// Line-wise socket I/O with a deadline. Failure kinds are told apart because they are different findings.
enum class ChannelState { message, timeout, closed, garbage };
class Channel {
 public:
  // Does not own `fd`. A negative timeout waits for ever; a partial line survives a timeout.
  explicit Channel(int fd) : fd_(fd) {}
  bool send(const Message& message);
  ChannelState receive(Message* message, int timeout_ms, std::string* garbage = nullptr);

 private:
  int fd_;
  std::string buffer_;
};

}  // namespace kgate::worker
