// The timeline as a viewer would read it: JSON, slices of a track nest, every arrow leads from a launch call to a
// kernel.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "../trace/stream.h"
#include "report/report.h"
#include "support/fd.h"

namespace kgate {
namespace {

using nlohmann::json;
using test::Stream;

class Perfetto : public ::testing::Test {
 protected:
  TempDir dir_;
  std::unique_ptr<TraceStore> store_ =
      TraceStore::create(dir_.path() / "t.db", {"T0", {{"device", "H\"200\""}}}, test::one_kernel(3));

  json timeline(const Stream& stream, const std::vector<HostEvent>& host = {}, const TimelineCut& cut = {}) {
    CollectorHealth collector;
    store_->add_block(stream.bytes(), host, {}, nullptr, &collector);
    store_->finish();
    counts_ = write_perfetto(*store_, cut, dir_.path() / "t.json");
    return json::parse(read_file(dir_.path() / "t.json").value_or_throw(Exit::internal));
  }
  TimelineCounts counts_;
};

uint64_t ns(const json& micros) { return static_cast<uint64_t>(micros.get<double>() * 1000 + 0.5); }

// What every timeline must hold. Returns the slices by name.
std::multimap<std::string, json> check(const json& timeline) {
  std::multimap<std::string, json> slices;
  using Track = std::pair<int, int>;
  std::map<Track, std::vector<json>> tracks;
  std::map<uint64_t, std::vector<json>> flows;
  std::map<Track, std::string> names;
  for (const auto& event : timeline["traceEvents"]) {
    Track track{event["pid"].get<int>(), event.value("tid", 0)};
    if (event["ph"] == "X") {
      tracks[track].push_back(event);
      slices.emplace(event["name"], event);
    } else if (event["ph"] == "M") {
      if (event["name"] == "thread_name") names[track] = event["args"]["name"];
    } else {
      flows[event["id"].get<uint64_t>()].push_back(event);
    }
  }
  for (auto& [track, list] : tracks) {
    EXPECT_TRUE(names.contains(track)) << "a track without a name";
    std::vector<uint64_t> open;
    uint64_t reached = 0;
    for (const auto& slice : list) {  // in the file by begin, longer ones first
      uint64_t begin = ns(slice["ts"]), end = begin + ns(slice["dur"]);
      EXPECT_GE(begin, reached) << names[track];
      reached = begin;
      while (!open.empty() && open.back() <= begin) open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(end, open.back()) << names[track] << ": " << slice;
        EXPECT_EQ(names[track].rfind("device stream", 0), std::string::npos) << "kernels on one track overlap";
      }
      open.push_back(end);
    }
  }
  auto stands = [&](const json& flow, const char* category) {
    for (const auto& slice : tracks[{flow["pid"].get<int>(), flow["tid"].get<int>()}])
      if (slice["cat"] == category && ns(slice["ts"]) == ns(flow["ts"])) return true;
    return false;
  };
  for (auto& [id, ends] : flows) {
    EXPECT_EQ(ends.size(), 2u);
    if (ends.size() != 2) continue;
    EXPECT_EQ(ends[0]["ph"], "s");
    EXPECT_EQ(ends[1]["ph"], "f");
    EXPECT_EQ(ends[1]["bp"], "e");
    EXPECT_TRUE(stands(ends[0], "launch")) << ends[0];
    EXPECT_TRUE(stands(ends[1], "kernel")) << ends[1];
  }
  return slices;
}

Stream two_rounds() {
  Stream s;
  s.name(1, "k").name(2, "v2").round(0, 0, 10'000, 90'000).round(1, 1, 200'000, 290'000);
  for (uint32_t i = 0; i < 4; ++i) s.whole(0, i, 20'000 + 10'000 * i, 10 + i, 1000 + i);
  s.whole(1, 0, 210'000, 50, 2000);
  s.api(210'100, 212'500, 60, 7, gpu::CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize);
  wire::MemoryRecord copy{};
  copy.start = 212'100, copy.end = 212'300, copy.bytes = 4096, copy.correlation = 61, copy.stream = 1,
  copy.copy_kind = 1;
  s.add(wire::Kind::memory, 1, copy);
  wire::OverheadRecord overhead{};
  overhead.start = 250'000, overhead.end = 250'500, overhead.kind = 1 << 16, overhead.thread = 7;
  return s.add(wire::Kind::overhead, 1, overhead);
}

TEST_F(Perfetto, shows_rounds_requests_calls_kernels_copies_and_arrows) {
  json all = timeline(two_rounds());
  auto slices = check(all);
  EXPECT_EQ(counts_.flows, 5u);
  EXPECT_EQ(counts_.kernels_without_launch, 0u);
  EXPECT_EQ(slices.count("round 0"), 1u);
  EXPECT_EQ(slices.count("request 0"), 2u);
  EXPECT_EQ(slices.count("cuLaunchKernel"), 5u);
  EXPECT_EQ(slices.count("cuStreamSynchronize"), 1u);
  EXPECT_EQ(slices.count("k"), 5u);
  EXPECT_EQ(slices.count("copy host to device"), 1u);
  EXPECT_EQ(slices.count("activity buffer flush"), 1u);
  const json& kernel = slices.find("k")->second;
  EXPECT_EQ(kernel["args"]["grid"], "4x1x1");
  EXPECT_EQ(kernel["args"]["block"], "128x1x1");
  EXPECT_EQ(kernel["args"]["registers"], 32);
  EXPECT_EQ(kernel["args"]["correlation"], 10);
  EXPECT_EQ(kernel["dur"].get<double>(), 1.0);
  EXPECT_EQ(slices.find("round 0")->second["ts"].get<double>(), 0.0);
  EXPECT_EQ(all["otherData"]["first_event_monotonic_ns"], 10'000);
  EXPECT_EQ(all["otherData"]["device"], "H\"200\"");
  EXPECT_FALSE(std::filesystem::exists(dir_.path() / "t.json.partial"));
}

TEST_F(Perfetto, names_are_escaped) {
  Stream s;
  s.name(1, "k<\"a\\b\">\n\t").round(0, 0, 1000, 9999).whole(0, 0, 2000, 10);
  s.kernel(3000, 3100, 77);  // no launch of the worker: its own name
  auto slices = check(timeline(s));
  bool found = false;
  for (const auto& [name, slice] : slices) found |= name.find("k<\"a\\b\">") == 0;
  EXPECT_TRUE(found);
  EXPECT_EQ(counts_.flows, 1u);
  EXPECT_EQ(counts_.kernels_without_launch, 1u);
}

TEST_F(Perfetto, overlapping_requests_and_kernels_get_tracks_of_their_own) {
  Stream s;
  s.name(1, "k").round(0, 0, 1000, 99'999);
  for (uint32_t i = 0; i < 6; ++i) {  // two threads, requests that overlap; one stream whose kernels do too
    uint64_t at = 2000 + 300 * i;
    s.request(0, i, at, at + 1000, 7 + i % 2).launch(0, i, at + 10, at + 30, 7 + i % 2);
    s.api(at + 12, at + 28, 10 + i, 7 + i % 2).kernel(at + 40, at + 900, 10 + i);
  }
  auto slices = check(timeline(s));
  EXPECT_EQ(slices.count("k"), 6u);
  EXPECT_EQ(counts_.flows, 6u);
  std::set<int> lanes;
  for (auto [at, end] = slices.equal_range("k"); at != end; ++at) lanes.insert(at->second["tid"].get<int>());
  EXPECT_GT(lanes.size(), 1u);
}

TEST_F(Perfetto, times_off_the_cpu_have_their_state) {
  std::vector<HostEvent> host(3);
  for (auto& event : host) event.kind = HostEventKind::off_cpu, event.thread = 7;
  host[0].begin = 22'000, host[0].end = 23'000, host[0].state = 0;
  host[1].begin = 32'000, host[1].end = 33'000, host[1].state = 1, host[1].run_queue_ns = 250;
  host[2].begin = 10'000, host[2].end = 90'000, host[2].state = kUnknownState;  // a round's account: no span
  auto slices = check(timeline(two_rounds(), host));
  EXPECT_EQ(slices.count("preempted"), 1u);
  EXPECT_EQ(slices.count("blocked"), 1u);
  ASSERT_EQ(slices.count("run queue"), 1u);
  EXPECT_EQ(slices.find("run queue")->second["dur"].get<double>(), 0.25);
}

TEST_F(Perfetto, cut_by_round_keeps_only_it) {
  TimelineCut cut;
  cut.round = 1;
  auto slices = check(timeline(two_rounds(), {}, cut));
  EXPECT_EQ(slices.count("round 0"), 0u);
  EXPECT_EQ(slices.count("k"), 1u);
  EXPECT_EQ(counts_.flows, 1u);
}

TEST_F(Perfetto, cut_by_time_keeps_what_reaches_into_it) {
  TimelineCut cut;
  cut.from_ns = 20'100;  // the second request begins at 20 us after the first event
  cut.for_ns = 1000;
  auto slices = check(timeline(two_rounds(), {}, cut));
  EXPECT_EQ(slices.count("k"), 1u);
  EXPECT_EQ(slices.count("round 0"), 1u);
  EXPECT_EQ(slices.count("round 1"), 0u);
}

TEST_F(Perfetto, file_that_cannot_be_written_is_an_error) {
  store_->finish();
  EXPECT_THROW(write_perfetto(*store_, {}, dir_.path() / "absent" / "t.json"), Error);
}

}  // namespace
}  // namespace kgate
