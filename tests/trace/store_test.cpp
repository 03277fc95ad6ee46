#include "trace/store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "stream.h"
#include "support/fd.h"

namespace kgate {
namespace {

using test::health_of;
using test::one_kernel;
using test::Stream;
namespace fs = std::filesystem;

class Store : public ::testing::Test {
 protected:
  TempDir dir_;
  fs::path path_ = dir_.path() / "run.kgt";
  std::unique_ptr<TraceStore> store_ = TraceStore::create(path_, {"T0", {{"device", "H200"}}}, one_kernel(3));
  CollectorHealth collector_;

  void add(const Stream& stream) { store_->add_block(stream.bytes(), {}, {}, nullptr, &collector_); }
  std::string value(const std::string& sql) {
    std::string text = "no row";
    auto result = store_->query(sql, [&](auto&, auto& values) { text = values[0].value_or("NULL"); });
    return result ? text : "error: " + result.failure().what;
  }
};

Stream two_arms() {
  Stream s;
  s.name(1, "k").name(2, "v2").round(0, 0, 1000, 9999).round(1, 1, 20000, 29999);
  for (uint32_t i = 0; i < 4; ++i) s.whole(0, i, 2000 + 1000 * i, 10 + i, 100 + i);
  for (uint32_t i = 0; i < 4; ++i) {
    uint64_t at = 21000 + 1000 * i;
    s.request(1, i, at, at + 700);
    wire::LaunchRecord launch{};
    launch.begin = at + 10, launch.end = at + 30, launch.sequence = i, launch.phase = wire::Phase::measured;
    launch.thread = 7, launch.replaced = 1;
    s.add(wire::Kind::launch, 1, launch).api(at + 12, at + 28, 50 + i).kernel(at + 40, at + 240 + i, 50 + i, 2, 8);
  }
  return s;
}

TEST_F(Store, statement_of_the_design_runs_as_it_stands) {
  add(two_arms());
  store_->finish();
  std::vector<std::string> line;
  auto result = store_->query(
      "SELECT kernel_name, COUNT(*) AS launches, AVG(duration_ns)/1e3 AS avg_us, p99(duration_ns)/1e3 AS p99_us\n"
      "FROM kernel_launches GROUP BY kernel_name;",
      [&](auto& names, auto& values) {
        EXPECT_EQ(names, (std::vector<std::string>{"kernel_name", "launches", "avg_us", "p99_us"}));
        for (auto& v : values) line.push_back(v.value_or("NULL"));
      });
  ASSERT_TRUE(result) << result.failure().what;
  EXPECT_EQ(line, (std::vector<std::string>{"v2", "4", "0.2015", "0.203"}));
  EXPECT_EQ(value("SELECT GROUP_CONCAT(DISTINCT kernel_name) FROM baseline_launches"), "k");
  EXPECT_EQ(value("SELECT COUNT(*) FROM all_launches"), "8");
  EXPECT_EQ(value("SELECT kernel_id FROM kernel_launches LIMIT 1"), "id-v2");
}

TEST_F(Store, every_column_of_the_views_is_there) {
  EXPECT_EQ(
      value("SELECT COUNT(*) FROM (SELECT kernel_name, kernel_id, duration_ns, launch_ns, queue_ns, registers, "
            "static_shared,"
            " dynamic_shared, local_bytes, grid_x, grid_y, grid_z, block_x, block_y, block_z, stream, round, request,"
            " launch_class, start_ns, end_ns FROM kernel_launches)"),
      "0");
}

TEST_F(Store, only_arm_of_a_single_arm_trace_is_its_kernel_launches) {
  Stream s;
  s.name(1, "k").round(0, 0, 1000, 9999).whole(0, 0, 2000, 10);
  add(s);
  EXPECT_EQ(value("SELECT COUNT(*) FROM kernel_launches"), "1");
}

TEST_F(Store, arms_share_the_class_of_the_launch_that_they_replace) {
  add(two_arms());
  auto kernels = store_->kernels();
  ASSERT_EQ(kernels.size(), 8u);
  EXPECT_EQ(kernels[0].launch_class, kernels[7].launch_class);
  EXPECT_EQ(kernels[7].grid[0], 8u);
  store_->finish();
  EXPECT_EQ(value("SELECT label FROM launch_classes"), "k grid (4,1,1) block (128,1,1)");
  EXPECT_EQ(value("SELECT COUNT(*) FROM launch_classes"), "1");
}

TEST_F(Store, healthy_block_has_no_finding_and_a_row_for_each_check) {
  add(two_arms());
  for (const HealthRow& row : store_->health())
    EXPECT_TRUE(row.ok()) << row.name << " " << row.value << " " << row.note;
  for (const char* name : {"cupti_dropped", "cupti_forced", "invalid_times", "unmatched_launches", "unmatched_kernels",
                           "lost_records", "quarantined_requests", "clock_offset_drift_ns", "clock_half_width_ns",
                           "negative_launch_to_start", "record_stream_bad"})
    EXPECT_EQ(health_of(*store_, name), 0) << name;
}

TEST_F(Store, missing_kernel_and_kernel_without_launch_are_counted) {
  Stream s = two_arms();
  s.launch(0, 4, 6500, 6520).api(6502, 6510, 90);  // launched, never seen on the device
  s.kernel(6600, 6700, 91);                        // on the device, launched by nobody
  s.kernel(50, 60, 92);                            // before the rounds: set-up
  add(s);
  EXPECT_EQ(health_of(*store_, "unmatched_launches"), 1);
  EXPECT_EQ(health_of(*store_, "unmatched_kernels"), 1);
  EXPECT_EQ(value("SELECT COUNT(*) FROM all_launches WHERE launch IS NULL AND phase = 'setup'"), "2");
  EXPECT_EQ(value("SELECT COUNT(*) FROM all_launches WHERE phase = 'measured' AND duration_ns IS NULL"), "1");
}

TEST_F(Store, kernel_without_times_has_no_duration_and_is_a_finding) {
  Stream s;
  s.name(1, "k")
      .round(0, 0, 1000, 9999)
      .request(0, 0, 2000, 3000)
      .launch(0, 0, 2010, 2030)
      .api(2012, 2028, 5)
      .kernel(0, 0, 5);
  add(s);
  EXPECT_EQ(health_of(*store_, "invalid_times"), 1);
  EXPECT_EQ(value("SELECT duration_ns FROM kernel_launches"), "NULL");
  EXPECT_EQ(value("SELECT p50(duration_ns) FROM kernel_launches"), "NULL");
}

TEST_F(Store, set_up_launches_are_kept_out_of_the_measured_views) {
  Stream s = two_arms();
  s.launch(wire::kNoRound, 0, 100, 120).api(102, 110, 70).kernel(130, 140, 70);
  add(s);
  EXPECT_EQ(health_of(*store_, "unmatched_kernels"), 0);
  EXPECT_EQ(health_of(*store_, "record_stream_bad"), 0);
  EXPECT_EQ(value("SELECT COUNT(*) FROM kernel_launches"), "4");
  EXPECT_EQ(value("SELECT COUNT(*) FROM all_launches WHERE phase = 'setup'"), "1");
  EXPECT_EQ(store_->kernels().back().round, wire::kNoRound);
}

TEST_F(Store, launches_that_name_what_the_plan_does_not_have_are_findings) {
  Stream s;
  s.round(0, 0, 1000, 9999).launch(0, 0, 2000, 2010, 7, 99).launch(5, 0, 2000, 2010);
  wire::LaunchRecord launch{};
  launch.begin = 3000, launch.end = 3010, launch.kernel = 55, launch.replaced = 1, launch.phase = wire::Phase::measured;
  s.add(wire::Kind::launch, 0, launch);
  add(s);
  EXPECT_EQ(health_of(*store_, "record_stream_bad"), 3);
  EXPECT_TRUE(store_->kernels().empty());
}

TEST_F(Store, request_that_overlaps_the_collectors_own_work_is_quarantined) {
  Stream s = two_arms();
  s.add(wire::Kind::overhead, 0, wire::OverheadRecord{{}, 2100, 2200, 1, 7});
  add(s);
  auto requests = store_->requests();
  EXPECT_TRUE(requests[0].quarantined);
  EXPECT_FALSE(requests[1].quarantined);
  EXPECT_DOUBLE_EQ(health_of(*store_, "quarantined_requests"), 1.0 / 8);
}

TEST_F(Store, kernels_that_start_before_their_launch_are_counted_beyond_the_clock_uncertainty) {
  Stream s;
  s.name(1, "k").round(0, 0, 1000, 999'999);
  s.request(0, 0, 500'000, 501'000).launch(0, 0, 500'000, 500'020).api(500'001, 500'010, 1).kernel(400'000, 500'900, 1);
  s.request(0, 1, 600'000, 601'000).launch(0, 1, 600'000, 600'020).api(600'001, 600'010, 2).kernel(595'000, 600'900, 2);
  add(s);
  EXPECT_DOUBLE_EQ(health_of(*store_, "negative_launch_to_start"), 0.5);
}

TEST_F(Store, clock_findings_are_the_worst_of_the_blocks) {
  collector_ = {};
  collector_.clock_offset_begin = 100, collector_.clock_offset_end = -400, collector_.clock_half_width = 30;
  add(two_arms());
  collector_.clock_offset_end = 100, collector_.clock_half_width = 20;
  Stream s;
  s.round(7, 0, 1, 2);
  add(s);
  EXPECT_EQ(health_of(*store_, "clock_offset_drift_ns"), 500);
  EXPECT_EQ(health_of(*store_, "clock_half_width_ns"), 30);
}

TEST_F(Store, round_that_comes_twice_is_taken_once) {
  add(two_arms());
  add(two_arms());
  EXPECT_EQ(store_->rounds().size(), 2u);
  EXPECT_GE(health_of(*store_, "record_stream_bad"), 2);
  EXPECT_EQ(store_->kernels().size(), 8u);
}

TEST_F(Store, probes_bound_what_the_worker_claims) {
  std::vector<ProbeSymbol> symbols = {
      {"cuLaunchKernel", ProbeSymbol::Use::launch, ProbeSymbol::Cost::emulated, 0, 1},
      {"cuStreamSynchronize", ProbeSymbol::Use::sync, ProbeSymbol::Cost::emulated, 0, 1}};
  ProbeHealth probes;
  Stream s;
  s.name(1, "k").round(0, 0, 1000, 999'999);
  s.whole(0, 0, 100'000, 1).whole(0, 1, 200'000, 2, 500'000);  // the second ends long after the last sync
  std::vector<HostEvent> events = {
      {HostEventKind::api, 0, 7, 100'011, 100'029, 0, 0},
      {HostEventKind::api, 0, 7, 200'011, 200'029, 0, 0},
      {HostEventKind::api, 0, 7, 300'000, 300'100, 0, 0},  // the worker says nothing of this one
      {HostEventKind::api, 1, 7, 400'000, 400'100, 0, 0},
      {HostEventKind::off_cpu, 0, 7, 5000, 6000, 1, 10}};
  store_->add_block(s.bytes(), events, symbols, &probes, &collector_);
  EXPECT_EQ(health_of(*store_, "host_launches_vs_launches"), 1);
  EXPECT_DOUBLE_EQ(health_of(*store_, "kernels_outside_host_window"), 0.5);
  EXPECT_EQ(store_->off_cpu().size(), 1u);
  EXPECT_EQ(store_->off_cpu()[0].round, 0u);
  EXPECT_EQ(value("SELECT COUNT(*) FROM host_calls"), "4");
}

TEST_F(Store, virtual_counters_join_their_launch) {
  Stream s;
  s.round(0, 0, 1000, 9999).request(0, 0, 2000, 3000).launch(0, 0, 2010, 2030);
  wire::VirtualCountersRecord c{};
  c.launch_begin = 2010, c.thread = 7, c.thread_instructions = 320, c.global_load_sectors = 4,
  c.global_store_sectors = 3;
  s.add(wire::Kind::virtual_counters, 0, c);
  c.launch_begin = 1;
  s.add(wire::Kind::virtual_counters, 0, c);
  add(s);
  auto counts = store_->virtual_counts();
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts[0].thread_instructions, 320u);
  EXPECT_EQ(counts[0].sectors, 7u);
  EXPECT_TRUE(counts[0].judged);
  EXPECT_EQ(health_of(*store_, "record_stream_bad"), 1);
}

TEST_F(Store, finished_trace_reads_the_same_after_opening) {
  add(two_arms());
  store_->add_health({"throttled", 1, 0, "seen at 12:00"});
  store_->set_fact("seed", "42");
  store_->add_verdict("{}");
  EXPECT_TRUE(fs::exists(path_.string() + ".partial"));
  EXPECT_FALSE(fs::exists(path_));
  store_->finish();
  EXPECT_FALSE(fs::exists(path_.string() + ".partial"));
  auto opened = TraceStore::open(path_);
  ASSERT_TRUE(opened) << opened.failure().what;
  EXPECT_EQ((*opened)->kernels().size(), 8u);
  EXPECT_EQ((*opened)->requests().size(), 8u);
  EXPECT_EQ((*opened)->api_calls().size(), 8u);
  EXPECT_EQ((*opened)->api_calls()[0].name, "cuLaunchKernel");
  EXPECT_TRUE((*opened)->api_calls()[0].is_launch);
  EXPECT_EQ((*opened)->rounds()[1].arm, 1u);
  EXPECT_EQ(health_of(**opened, "throttled"), 1);
  EXPECT_EQ((*opened)->info().tier, "T0");
  EXPECT_EQ((*opened)->info().facts.at("seed"), "42");
  EXPECT_EQ((*opened)->info().facts.at("device"), "H200");
  EXPECT_THROW((*opened)->set_fact("a", "b"), Error);
}

TEST_F(Store, unfinished_run_leaves_nothing) {
  add(two_arms());
  store_.reset();
  EXPECT_TRUE(fs::is_empty(dir_.path()));
}

TEST_F(Store, killed_run_leaves_no_file_that_opens) {
  pid_t child = fork();
  if (child == 0) {
    auto store = TraceStore::create(dir_.path() / "killed.kgt", {}, one_kernel());
    store->add_block(two_arms().bytes(), {}, {}, nullptr, nullptr);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_FALSE(fs::exists(dir_.path() / "killed.kgt"));
  EXPECT_FALSE(TraceStore::open(dir_.path() / "killed.kgt.partial"));
  auto again = TraceStore::create(dir_.path() / "killed.kgt", {}, one_kernel());  // the leftover is not in the way
  again->finish();
  EXPECT_TRUE(TraceStore::open(dir_.path() / "killed.kgt"));
}

TEST_F(Store, files_that_are_no_trace_are_refused_with_the_reason) {
  auto reason = [&](const std::string& content) {
    std::ofstream(dir_.path() / "x") << content;
    auto opened = TraceStore::open(dir_.path() / "x");
    return opened ? std::string("opened") : opened.failure().what;
  };
  EXPECT_NE(reason(""), "opened");
  EXPECT_NE(reason("hello"), "opened");
  EXPECT_NE(reason(std::string(8192, 'x')), "opened");
  EXPECT_FALSE(TraceStore::open(dir_.path() / "missing"));
  EXPECT_FALSE(TraceStore::open(dir_.path()));
}

TEST_F(Store, damaged_traces_throw_and_never_crash) {
  add(two_arms());
  store_->finish();
  std::string whole = *read_file(path_);
  std::mt19937 random(3);
  for (int i = 0; i < 150; ++i) {
    std::string bad = whole;
    for (int k = 0; k < 40; ++k) bad[random() % bad.size()] = static_cast<char>(random());
    if (i % 3 == 0) bad.resize(random() % bad.size());
    std::ofstream(dir_.path() / "bad", std::ios::binary) << bad;
    auto opened = TraceStore::open(dir_.path() / "bad");
    if (!opened) continue;
    try {
      (*opened)->kernels(), (*opened)->requests(), (*opened)->api_calls(), (*opened)->health(), (*opened)->info();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::bad_input);
    }
    (void)(*opened)->query("SELECT p99(duration_ns) FROM kernel_launches GROUP BY kernel_name", [](auto&, auto&) {});
  }
}

TEST_F(Store, place_that_cannot_be_written_is_an_environment_error) {
  for (const fs::path& path : {fs::path("/nonexistent/dir/run.kgt"), dir_.path()}) {
    try {
      TraceStore::create(path, {}, one_kernel());
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::environment);
    }
  }
}

TEST_F(Store, hostile_records_give_findings_and_no_crash) {
  std::mt19937_64 random(7);
  auto number = [&]() -> uint64_t {
    switch (random() % 4) {
      case 0:
        return random() % 4;
      case 1:
        return UINT64_MAX - random() % 3;
      case 2:
        return random() % 100'000;
      default:
        return random();
    }
  };
  for (int i = 0; i < 60; ++i) {
    Stream s;
    for (int k = 0; k < 60; ++k) {
      static constexpr uint16_t kSizes[] = {
          sizeof(wire::RequestRecord),  sizeof(wire::LaunchRecord), sizeof(wire::KernelRecord),
          sizeof(wire::ApiRecord),      sizeof(wire::SyncRecord),   sizeof(wire::MemoryRecord),
          sizeof(wire::OverheadRecord), sizeof(wire::NameRecord),   sizeof(wire::VirtualCountersRecord),
          sizeof(wire::RoundRecord)};
      auto kind = random() % 10;
      std::vector<uint64_t> body(kSizes[kind] / 8);
      for (auto& word : body) word = number();
      wire::RecordHead head{static_cast<wire::Kind>(kind + 1), kSizes[kind], static_cast<uint32_t>(random() % 4)};
      std::memcpy(body.data(), &head, sizeof head);
      s.raw(body.data(), kSizes[kind]);
    }
    add(s);
  }
  EXPECT_GT(health_of(*store_, "record_stream_bad"), 0);
  store_->finish();
  EXPECT_TRUE(TraceStore::open(path_));
}

TEST_F(Store, classes_past_sixteen_are_pooled_by_size) {
  auto store = TraceStore::create(dir_.path() / "many.kgt", {}, one_kernel(40));
  Stream s;
  s.name(1, "k").round(0, 0, 1, 999'999'999);
  for (uint32_t i = 0; i < 40; ++i) {
    uint64_t at = 1'000'000 + i * 10'000;
    s.launch(0, i, at, at + 20, 7, i).api(at + 2, at + 10, i + 1).kernel(at + 30, at + 40, i + 1, 1, i + 1);
  }
  store->add_block(s.bytes(), {}, {}, nullptr, &collector_);
  store->finish();
  std::string classes, pooled;
  ASSERT_TRUE(store->query("SELECT COUNT(*), SUM(pooled) FROM launch_classes",
                           [&](auto&, auto& v) { classes = *v[0], pooled = *v[1]; }));
  EXPECT_EQ(classes, "18");
  EXPECT_EQ(pooled, "2");  // 17..31 and 32..40 blocks of 128 threads
}

}  // namespace
}  // namespace kgate
