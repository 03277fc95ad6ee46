// A small workload that uses every feature: all call kinds, contents, relocations, edges between threads.
#pragma once

#include "support/hash.h"
#include "workload/workload.h"

namespace kgate::test {

inline Workload sample_workload() {
  Workload w;
  w.name = "sample";
  w.arrivals = Arrivals::external;
  w.period_ns = 3000;
  w.threads = 2;
  w.streams.resize(2);
  w.events = 1;
  w.blocking_sync = true;
  const std::string image = ".version 8.0\n.target sm_75\n// not looked at by the workload reader\n";
  w.modules = {{"softmax.ptx", image, sha256(image)}};
  w.kernels = {{0, "softmax_rows", {{0, 8}, {8, 8}, {16, 4}}, 20}};
  w.buffers = {
      {"out", 4096, 256, 0, true, ContentPoison{0xee}},
      {"x", 4096, 256, 0x7f0000000000, true, ContentRandom{"f32", -2, 3, 0xfedcba9876543210}},
      {"ids", 40, 8, 0, false, ContentBytes{std::string("\0\1\2\3 recorded", 13)}},
      {"scratch", 1 << 20, 4096, 0, true, ContentZeros{}},
  };
  LaunchSpec launch;
  launch.kernel = 0;
  launch.grid = {4, 1, 1};
  launch.block = {128, 1, 1};
  launch.cluster = {2, 1, 1};
  launch.shared = 1024;
  launch.params.assign(20, std::byte{0});
  launch.params[16] = std::byte{0xff};
  launch.relocations = {{0, 0, 0}, {8, 1, 1024}};
  w.launches = {launch};
  const auto call = [](CallKind kind, uint32_t thread) {
    Call c;
    c.kind = kind;
    c.thread = c.stream = thread;
    c.host_gap_ns = 500;
    return c;
  };
  Call c = call(CallKind::upload, 0);
  c.dst = 1, c.dst_offset = 16, c.bytes = 64;
  w.calls.push_back(c);
  c = call(CallKind::launch, 0);
  c.launch = 0;
  w.calls.push_back(c);
  c = call(CallKind::event_record, 0);
  c.event = 0;
  w.calls.push_back(c);
  w.calls.push_back(call(CallKind::stream_sync, 0));
  c = call(CallKind::event_wait, 1);
  c.event = 0, c.after = {0, 2};
  w.calls.push_back(c);
  c = call(CallKind::memset, 1);
  c.dst = 3, c.bytes = 1 << 20, c.value = 7;
  w.calls.push_back(c);
  c = call(CallKind::copy, 1);
  c.dst = 3, c.src = 1, c.dst_offset = 8, c.src_offset = 4, c.bytes = 100;
  w.calls.push_back(c);
  c = call(CallKind::download, 1);
  c.src = 0, c.bytes = 4096;
  w.calls.push_back(c);
  c = call(CallKind::event_sync, 1);
  c.event = 0;
  w.calls.push_back(c);
  w.calls.push_back(call(CallKind::context_sync, 1));
  w.requests = {{100, 0, {0, 1, 2, 3}}, {2500, 1, {4, 5, 6, 7, 8, 9}}};
  return w;
}

}  // namespace kgate::test
