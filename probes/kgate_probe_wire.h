// What kgate and kgate-probe say to each other, on a SOCK_SEQPACKET pair: one request with one descriptor (the
// library), one reply with three (ring buffer, counters, hits), then nothing until one of them ends. Fixed sizes, so
// that neither side computes with a length that the other sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "probes/host_event.h"
#include "support/fd.h"

namespace kgate::probe {

constexpr uint32_t kMagic = 0x4b475052, kVersion = 1;
constexpr int kChannel = 3;  // kgate-probe's end

enum class Mode : uint32_t { automatic, session, multi, perf };

struct Target {
  uint64_t offset;  // in the library's file
  uint64_t cookie;  // below KGATE_MAX_SYMBOLS: index of its hits and of its events
};

struct Request {
  uint32_t magic = kMagic, version = kVersion;
  uint32_t process = 0;  // in the pid namespace of both
  Mode mode = Mode::automatic;
  uint32_t scheduler = 0;  // 1: off-CPU events too
  uint32_t targets = 0;    // of the array below
  Target target[KGATE_MAX_SYMBOLS] = {};
};

enum ReplyDescriptor { kRing, kCounters, kHits, kReplyDescriptors };

struct Reply {
  uint32_t magic = kMagic, version = kVersion;
  uint32_t ok = 0;
  Mode mode = Mode::automatic;  // the one in use
  double ns_per_hit = 0;
  char what[512] = {}, where[256] = {}, hint[1024] = {};  // when not ok
};

// Cuts what is too long; always ends with a zero.
void put_text(std::span<char> field, const std::string& text);
std::string get_text(std::span<const char> field);

// One packet of exactly these bytes; false when the other side has gone.
bool send_packet(int channel, std::span<const std::byte> bytes, std::span<const int> descriptors);
// Waits for one packet. Empty: it arrived whole, with as many descriptors as are in `descriptors`. Else what is wrong
// ("closed", "a packet of 7 bytes", ...), and whatever came is closed again.
std::string receive_packet(int channel, std::span<std::byte> bytes, std::vector<Fd>* descriptors);

}  // namespace kgate::probe
