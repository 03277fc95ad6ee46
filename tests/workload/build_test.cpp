#include "workload/build.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <set>

#include "support/fd.h"
#include "workload/content.h"
#include "workload/kgw.h"

namespace kgate {
namespace {

constexpr const char* kPtx = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry scale(.param .u64 out, .param .u64 x, .param .u32 n, .param .f32 factor, .param .u8 flag)
{
  ret;
}
.visible .entry nothing() .reqntid 32, 1, 1
{
  ret;
}
)";

constexpr const char* kGood = R"YAML(kgate_workload: 1
name: good
seed: 3
requests: 10
threads: 2
arrivals: {process: poisson, rate: 1000/s}
blocking_sync: true
modules: {m: m.ptx}
let: {n: 8, twice: n * 2}
vary: {size: {values: [n, twice], weights: [3, 1]}}
buffers:
  x: {tensor: "f32[twice, 2]", init: {uniform: [-1, 1]}, constant: true}
  out: {tensor: "f32[twice]", per_thread: true, init: poison}
  table: {tensor: "i16[4]", init: {values: [1, -2, twice]}}
request:
  - memset: {to: out, value: 3, bytes: 16, gap: 2us}
  - launch: {kernel: m.scale, grid: ["cdiv(size, 4)", 1, 1], block: [32, 1, 1], shared: 64, args: [out, x + 4 * n, size, 1e-3f, 1]}
  - event_record: {event: done}
  - event_wait: {event: done, stream: 1}
  - repeat: {times: 2, index: i, calls: [{launch: {kernel: m.scale, grid: [1, 1, 1], block: [1, 1, 1], stream: 1,
             args: [null, x, i, {f32: 2}, {u8: 255}]}}]}
  - copy: {to: out, from: x + 16, bytes: 16}
  - download: {from: out}
  - sync: context
)YAML";

class Build : public testing::Test {
 protected:
  Build() { put("m.ptx", kPtx); }
  void put(const std::string& name, const std::string& text) { std::ofstream(folder_.path() / name) << text; }

  Workload build(const std::string& yaml) {
    put("w.yaml", yaml);
    return build_workload(folder_.path() / "w.yaml");
  }
  // The problems without the folder: "w.yaml:3:1: ..." a line.
  std::string problems(const std::string& yaml) {
    try {
      build(yaml);
      return "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::bad_input);
      std::string text = error.what();
      const std::string prefix = folder_.path().string() + "/";
      for (size_t at; (at = text.find(prefix)) != std::string::npos;) text.erase(at, prefix.size());
      return text;
    }
  }
  // The good workload with one text replaced by another.
  std::string problems_with(const std::string& old_text, const std::string& new_text) {
    std::string yaml = kGood;
    const size_t at = yaml.find(old_text);
    EXPECT_NE(at, std::string::npos) << old_text;
    return problems(yaml.replace(at, old_text.size(), new_text));
  }

  TempDir folder_{"kgate-test"};
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(Build, a_request_becomes_calls_on_the_streams_of_its_thread) {
  const Workload w = build(kGood);
  EXPECT_EQ(w.name, "good");
  EXPECT_EQ(w.arrivals, Arrivals::external);
  EXPECT_TRUE(w.blocking_sync);
  EXPECT_EQ(w.requests.size(), 10u);
  EXPECT_EQ(w.streams.size(), 4u);
  EXPECT_EQ(w.events, 2u);
  EXPECT_GT(w.period_ns, w.requests.back().arrival_ns);
  const Request& second = w.requests[1];
  EXPECT_EQ(second.thread, 1u);
  ASSERT_EQ(second.calls.size(), 9u);
  const Call* calls = &w.calls[second.calls.front()];
  EXPECT_EQ(calls[0].kind, CallKind::memset);
  EXPECT_EQ(calls[0].host_gap_ns, 2000u);
  EXPECT_EQ(w.buffers[calls[0].dst].name, "out[1]");
  EXPECT_EQ(calls[1].stream, 2u);
  EXPECT_EQ(calls[2].event, 1u);
  EXPECT_EQ(calls[3].kind, CallKind::event_wait);
  EXPECT_EQ(calls[3].stream, 3u);
  EXPECT_EQ(calls[6].src_offset, 16u);
  EXPECT_EQ(calls[7].bytes, 64u);
  EXPECT_EQ(calls[8].kind, CallKind::context_sync);
}

TEST_F(Build, arguments_are_packed_as_the_kernel_declares) {
  const Workload w = build(kGood);
  const LaunchSpec& launch = w.launches[w.calls[1].launch];
  EXPECT_EQ(w.kernels[launch.kernel].entry, "scale");
  ASSERT_EQ(launch.params.size(), 25u);
  ASSERT_EQ(launch.relocations.size(), 2u);
  EXPECT_EQ(launch.relocations[1].param_offset, 8u);
  EXPECT_EQ(w.buffers[launch.relocations[1].buffer].name, "x");
  EXPECT_EQ(launch.relocations[1].delta, 32);
  int32_t n = 0;
  float factor = 0;
  std::memcpy(&n, launch.params.data() + 16, 4);
  std::memcpy(&factor, launch.params.data() + 20, 4);
  EXPECT_TRUE(n == 8 || n == 16);
  EXPECT_EQ(launch.grid.x, static_cast<uint32_t>(n) / 4);
  EXPECT_EQ(factor, 1e-3f);
  EXPECT_EQ(launch.params[24], std::byte{1});
  const LaunchSpec& repeated = w.launches[w.calls[5].launch];
  EXPECT_EQ(repeated.relocations.size(), 1u);
  EXPECT_EQ(repeated.params[16], std::byte{1});
  EXPECT_EQ(repeated.params[24], std::byte{255});
}

TEST_F(Build, equal_launches_are_shared_and_varied_ones_are_not) {
  const Workload w = build(kGood);
  // For each thread two sizes at most; the repeated ones do not name `out` and are the same in both.
  EXPECT_LE(w.launches.size(), 2u * 2 + 2);
  std::set<uint32_t> sizes;
  for (const Call& call : w.calls)
    if (call.kind == CallKind::launch && w.launches[call.launch].shared == 64)
      sizes.insert(w.launches[call.launch].grid.x);
  EXPECT_EQ(sizes, (std::set<uint32_t>{2, 4}));
}

TEST_F(Build, buffers_have_size_content_and_a_seed_of_their_own) {
  const Workload w = build(kGood);
  ASSERT_EQ(w.buffers.size(), 4u);
  EXPECT_EQ(w.buffers[0].bytes, 128u);
  EXPECT_FALSE(w.buffers[0].written);
  EXPECT_TRUE(w.buffers[1].written);
  EXPECT_EQ(std::get<ContentBytes>(w.buffers[3].content).bytes, std::string("\x01\0\xfe\xff\x10\0", 6));
  EXPECT_NE(std::get<ContentRandom>(w.buffers[0].content).seed, 0u);
}

TEST_F(Build, the_same_file_gives_the_same_hash_and_the_seed_another) {
  const std::string hash = build(kGood).sha256;
  EXPECT_EQ(build(kGood).sha256, hash);
  EXPECT_EQ(build(std::string("# a comment\n") + kGood).sha256, hash);
  std::string other = kGood;
  EXPECT_NE(build(other.replace(other.find("seed: 3"), 7, "seed: 4")).sha256, hash);
}

TEST_F(Build, all_problems_are_listed_with_their_places) {
  const std::string text = problems(R"YAML(kgate_workload: 1
requests: 4
arivals: closed
modules: {m: m.ptx}
let: {n: 8}
buffers:
  x: {tensor: "f23[n]"}
  y: {tensor: "f32[m]"}
request:
  - launch: {kernel: m.scal, grid: [n, 1, 1], block: [32, 1, 1], args: []}
  - launch: {kernel: m.scale, grid: [n, 1], block: [2048, 1, 1], args: [xx, x, n, 1e-3, 1]}
  - lanch: {}
  - sync: {stream: 0}
)YAML");
  EXPECT_HAS(text, "w.yaml:3:1: arivals: unknown key in the workload; did you mean 'arrivals'?");
  EXPECT_HAS(text, "the workload has no 'arrivals'");
  EXPECT_HAS(text, "w.yaml:7:");
  EXPECT_HAS(text, "f23");
  EXPECT_HAS(text, "w.yaml:8:");
  EXPECT_HAS(text, "unknown name 'm'");
  EXPECT_HAS(text, "unknown kernel 'm.scal'; did you mean 'm.scale'?");
  EXPECT_HAS(text, "w.yaml:11:");
  EXPECT_HAS(text, "expected three extents");
  EXPECT_HAS(text, "at most 1024 threads");
  EXPECT_HAS(text, "unknown name 'xx'");
  EXPECT_HAS(text, "a real number needs its type; write {f32: 1e-3} or 1e-3f");
  EXPECT_HAS(text, "w.yaml:12:5:");
  EXPECT_HAS(text, "unknown call 'lanch'; did you mean 'launch'?");
}

TEST_F(Build, arguments_that_do_not_fit_are_refused) {
  const std::string args = "args: [out, x + 4 * n, size, 1e-3f, 1]";
  const auto with = [&](const std::string& other) { return problems_with(args, "args: " + other); };
  EXPECT_HAS(with("[out, x]"), "2 arguments; scale takes 5 (of 8, 8, 4, 4, 1 bytes)");
  EXPECT_HAS(with("[out, x + 128, size, 1e-3f, 1]"), "128 is out of range: 0 to 127");
  EXPECT_HAS(with("[out, x - 4, size, 1e-3f, 1]"), "expected '+'");
  EXPECT_HAS(with("[out, x + , size, 1e-3f, 1]"), "w.yaml:17:");
  EXPECT_HAS(with("[out, x, x, 1e-3f, 1]"), "a pointer has 8 bytes; the parameter n has 4");
  EXPECT_HAS(with("[out, x, size, {f64: 1}, 1]"), "the value has 8 bytes; the parameter factor has 4");
  EXPECT_HAS(with("[out, x, size, 1e39f, 1]"), "does not fit f32");
  EXPECT_HAS(with("[out, x, size, 1e-3f, 256]"), "256 is out of range: -128 to 255");
  EXPECT_HAS(with("[out, x, null, 1e-3f, 1]"), "a null pointer has 8 bytes");
  EXPECT_HAS(with("[out, x, size, {hex: \"0g\"}, 1]"), "hexadecimal");
  EXPECT_HAS(with("[out, x, size, {f33: 1}, 1]"), "expected one typed value");
  EXPECT_HAS(with("[out, x, 1 / 0, 1e-3f, 1]"), "w.yaml:17:");
  EXPECT_HAS(with("[out, x, [1], 1e-3f, 1]"), "expected an argument");
  EXPECT_HAS(with("[out, x, siz, 1e-3f, 1]"), "unknown name 'siz'; did you mean 'size'?");
}

TEST_F(Build, calls_that_cannot_work_are_refused) {
  EXPECT_HAS(problems_with("sync: context", "download: {from: out}"), "does not wait for the GPU");
  EXPECT_HAS(problems_with("to: out, value", "to: x, value"), "marked constant");
  EXPECT_HAS(problems_with("from: x + 16, bytes: 16", "from: x + 16, bytes: 128"), "out of range: 1 to 64");
  EXPECT_HAS(problems_with("from: x + 16, bytes: 16", "from: out + 8, bytes: 16"), "overlapping");
  EXPECT_HAS(problems_with("to: out, from", "to: oud, from"), "unknown buffer 'oud'; did you mean 'out'?");
  EXPECT_HAS(problems_with("event_wait: {event: done", "event_wait: {event: dine"), "was not recorded before");
  EXPECT_HAS(problems_with("value: 3", "value: 256"), "out of range: 0 to 255");
  EXPECT_HAS(problems_with("times: 2", "times: 65537"), "out of range");
  EXPECT_HAS(problems_with("index: i", "index: n"), "is not a new name");
  EXPECT_HAS(problems_with("stream: 1}", "stream: 64}"), "out of range: 0 to 63");
  EXPECT_HAS(problems_with("gap: 2us", "gap: 2"), "w.yaml:16:");
  EXPECT_HAS(problems_with("shared: 64", "shared: 64, cluster: [3, 1, 1]"), "not a multiple of the cluster");
  EXPECT_HAS(problems_with("kernel: m.scale", "kernel: m.nothing"), "arguments; nothing takes 0");
  EXPECT_HAS(problems_with("kernel: m.scale, grid: [1, 1, 1], block: [1, 1, 1]",
                           "kernel: m.nothing, grid: [1, 1, 1], block: [64, 1, 1]"),
             "requires a block of [32, 1, 1]");
}

TEST_F(Build, the_frame_is_checked) {
  EXPECT_HAS(problems_with("kgate_workload: 1", "kgate_workload: 2"), "format 2 is unknown");
  EXPECT_HAS(problems_with("threads: 2", "threads: 0"), "is not between 1 and 64");
  EXPECT_HAS(problems_with("requests: 10\n", ""), "has no 'requests'");
  EXPECT_HAS(problems_with("requests: 10", "requests: 1000000"), "more than 2097152 calls");
  EXPECT_HAS(problems_with("m: m.ptx", "m: missing.ptx"), "missing.ptx");
  EXPECT_HAS(problems_with("let: {n: 8", "let: {x: 8, n: 8"), "'x' is a constant too");
  EXPECT_HAS(problems_with("twice: n * 2", "twice: m * 2"), "unknown name 'm'");
  EXPECT_HAS(problems_with("process: poisson", "process: poison"), "did you mean 'poisson'?");
  EXPECT_HAS(problems_with("rate: 1000/s", "rate: 1000"), "w.yaml:6:");
  EXPECT_HAS(
      problems_with("{process: poisson, rate: 1000/s}", "{process: bursty, rate: 1000/s, burst: 6, burst_rate: 800/s}"),
      "leaves no pause between bursts");
  EXPECT_HAS(problems_with("weights: [3, 1]", "weights: [3]"), "expected a list of 2 weights");
  EXPECT_HAS(problems_with("weights: [3, 1]", "weights: [0, 0]"), "do not add up");
  EXPECT_HAS(problems_with("weights: [3, 1]", "weights: [1, -1]"), "not negative");
  EXPECT_HAS(problems_with("uniform: [-1, 1]", "uniform: [1, -1]"), "is not a range of f32");
  EXPECT_HAS(problems_with("values: [1, -2, twice]", "values: [1, 2, 3, 4, 5]"), "10 bytes do not fit a buffer of 8");
  EXPECT_HAS(problems_with("values: [1, -2, twice]", "values: [40000]"), "40000 is out of range: -32768 to 32767");
  EXPECT_HAS(problems_with("\"f32[twice, 2]\"", "\"f32[0]\""), "0 is out of range");
  EXPECT_HAS(problems_with("\"f32[twice, 2]\"", "\"f32[1099511627776, 1099511627776]\""), "more than 1 TiB");
}

TEST_F(Build, hostile_texts_are_refused) {
  for (const std::string& text :
       {std::string(), std::string("\0\1\2", 3), std::string("- 1"), std::string("x"), std::string("[[[["),
        std::string("kgate_workload: 1\narrivals: [1]\nrequest: 7\n"), std::string(5000, '[')})
    EXPECT_NE(problems(text), "accepted");
  const std::string good = kGood;
  for (size_t length = 0; length + 20 < good.size(); length += 13)
    EXPECT_NE(problems(good.substr(0, length)), "accepted") << length;
  // Nested repetition multiplies: it stops at the cap instead of filling the memory.
  std::string bomb = "{launch: {kernel: m.nothing, grid: [1, 1, 1], block: [32, 1, 1], args: []}}";
  for (int i = 0; i < 6; ++i) bomb = "{repeat: {times: 60000, calls: [" + bomb + "]}}";
  EXPECT_HAS(
      problems("kgate_workload: 1\nrequests: 1\narrivals: closed\nmodules: {m: m.ptx}\nrequest: [" + bomb + "]\n"),
      "more than 65536 calls");
  std::string empty = "{repeat: {times: 0, calls: [{sync: context}]}}";
  for (int i = 0; i < 6; ++i) empty = "{repeat: {times: 60000, calls: [" + empty + "]}}";
  EXPECT_HAS(problems("kgate_workload: 1\nrequests: 1\narrivals: closed\nrequest: [" + empty + "]\n"),
             "more than 65536");
}

TEST_F(Build, csv_arrivals_and_sizes_follow_the_file) {
  put("a.csv", "t,tokens\n5.0,100\n1.0,7\n2.5,64\n");
  std::string yaml = kGood;
  yaml.replace(yaml.find("requests: 10\n"), 13, "");
  yaml.replace(yaml.find("{process: poisson, rate: 1000/s}"), 32,
               "{process: csv, file: a.csv, column: t, time_unit: ms, speed: 2}");
  yaml.replace(yaml.find("{values: [n, twice], weights: [3, 1]}"), 37,
               "{column: tokens, multiple_of: 4, min: 4, max: 40}");
  const Workload w = build(yaml);
  ASSERT_EQ(w.requests.size(), 3u);
  EXPECT_EQ(w.requests[1].arrival_ns, 750'000u);
  EXPECT_EQ(w.requests[2].arrival_ns, 2'000'000u);
  EXPECT_EQ(w.period_ns, 3'000'000u);
  std::vector<uint32_t> grids;
  for (const Request& request : w.requests) grids.push_back(w.launches[w.calls[request.calls[1]].launch].grid.x);
  EXPECT_EQ(grids, (std::vector<uint32_t>{2, 10, 10}));

  put("a.csv", "t,tokens\n5.0,100\nsoon,7\n");
  EXPECT_HAS(problems(yaml), "a.csv: line 3: \"soon\" is not a number");
  put("a.csv", "t,tokens\n5.0,100\n");
  EXPECT_HAS(problems(yaml), "at least two");
  put("a.csv", "time,tokens\n5.0,100\n6.0,1\n");
  EXPECT_HAS(problems(yaml), "no column 't'");
  put("a.csv", "t,tokens\n5.0,100\n6.0,-1\n");
  EXPECT_HAS(problems(yaml), "line 3: \"-1\" is not a size");
}

TEST_F(Build, a_workload_is_loaded_by_its_content) {
  const Workload built = build(kGood);
  write_kgw(built, folder_.path() / "w.kgw");
  EXPECT_EQ(load_workload(folder_.path() / "w.kgw").sha256, built.sha256);
  EXPECT_EQ(load_workload(folder_.path() / "w.yaml").sha256, built.sha256);
  put("text.kgw", kGood);
  try {
    load_workload(folder_.path() / "text.kgw");
    FAIL();
  } catch (const Error& error) {
    EXPECT_HAS(std::string(error.what()), "not a workload file");
  }
  EXPECT_THROW(load_workload(folder_.path() / "missing.yaml"), Error);
  EXPECT_THROW(load_workload(folder_.path()), Error);
}

TEST_F(Build, the_description_says_what_is_in_it) {
  const Workload w = build(kGood);
  const std::string text = describe_workload(w), json = workload_json(w);
  for (const char* part : {"good", "10 of 9 calls", "2 threads", "4 non_blocking", "scale", "grid 2x1x1", "m.ptx"})
    EXPECT_HAS(text, part);
  for (const char* part : {"\"requests\": 10", "\"launch_classes\"", "\"entry\": \"scale\"", "\"external\""})
    EXPECT_HAS(json, part);
}

}  // namespace
}  // namespace kgate
