// Sampling launches of a workload, and comparing the memory that they change.
#include "precheck/live.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <limits>

#include "precheck/live_compare.h"

namespace kgate {
namespace {

// Kernel "k" over (out, x): buffer 0 is read, buffer 1 written from byte 0 on, buffer 2 belongs to nobody.
Workload workload(size_t calls) {
  Workload w;
  w.name = "w";
  w.modules = {{"m", "image", {}}};
  w.kernels = {{0, "k", {{0, 8}, {8, 8}}, 16}};
  for (int i = 0; i < 3; ++i) {
    Buffer buffer;
    buffer.bytes = 2048;
    buffer.written = i != 0;
    w.buffers.push_back(buffer);
  }
  LaunchSpec launch;
  launch.grid = launch.block = {1, 1, 1};
  launch.params.resize(16);
  launch.relocations = {{0, 1, 0}, {8, 0, 0}};
  w.launches = {launch, launch};
  w.launches[1].grid.x = 2;
  Request request;
  for (uint32_t i = 0; i < calls; ++i) {
    Call call;
    call.launch = i % 2;
    w.calls.push_back(call);
    request.calls.push_back(i);
  }
  w.requests = {request};
  return w;
}

Arm candidate(const Workload& w) {
  Arm arm;
  arm.label = "candidate";
  for (uint32_t l = 0; l < w.launches.size(); ++l) arm.replace[l] = {w.launches[l]};
  return arm;
}

TEST(LiveSamples, last_launch_of_each_class_is_always_sampled) {
  Workload w = workload(41);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    auto samples = choose_samples(w, candidate(w), seed);
    ASSERT_EQ(samples.size(), 10u);  // two classes: the last one and four at random
    EXPECT_EQ(samples[9].call, 40u);
    EXPECT_EQ(samples[8].call, 39u);
    for (size_t i = 1; i < samples.size(); ++i) EXPECT_LT(samples[i - 1].call, samples[i].call);
  }
  EXPECT_NE(choose_samples(w, candidate(w), 1)[0].call + choose_samples(w, candidate(w), 1)[1].call,
            choose_samples(w, candidate(w), 2)[0].call + choose_samples(w, candidate(w), 2)[1].call);
}

TEST(LiveSamples, all_written_memory_is_compared_where_it_is_little) {
  Workload w = workload(2);
  EXPECT_EQ(choose_samples(w, candidate(w), 1)[0].buffers, (std::vector<uint32_t>{1, 2}));
  w.buffers[2].bytes = uint64_t{1} << 30;
  EXPECT_EQ(choose_samples(w, candidate(w), 1)[0].buffers, (std::vector<uint32_t>{1}));
}

TEST(LiveSamples, launches_that_stay_as_recorded_are_not_sampled) {
  Workload w = workload(10);
  Arm arm = candidate(w);
  arm.replace.erase(0);
  for (const auto& sample : choose_samples(w, arm, 1)) EXPECT_EQ(w.calls[sample.call].launch, 1u);
}

class LiveCompare : public ::testing::Test {
 protected:
  Contract typed(const std::string& dtype, const std::string& tolerance = {}) {
    return parse_contract("kgate: 1\nkernel: k\nparams:\n  - {name: out, tensor: " + dtype +
                              ", role: out}\n  - {name: x, tensor: f32, role: in}\nworkload: w.kgw\n" + tolerance,
                          "c.yaml");
  }
  // A block whose element `index` (f32) was `before` and became `after`; the rest is 1.0 before and after.
  const LiveBlock* block(uint64_t number, size_t index, float before, float after, uint32_t pass = 0,
                         uint32_t buffer = 1) {
    LiveBlock& made = blocks_.emplace_back();
    made.block = number, made.buffer = buffer, made.pass = pass;
    float ones[kLiveBlockBytes / 4];
    std::fill(std::begin(ones), std::end(ones), 1.0f);
    ones[index] = before;
    std::memcpy(made.before, ones, sizeof ones);
    ones[index] = after;
    std::memcpy(made.after, ones, sizeof ones);
    return &made;
  }
  // The recorded kernel does the same twice.
  void recorded(uint64_t number, size_t index, float before, float after, uint32_t buffer = 1) {
    want_.blocks.push_back(block(number, index, before, after, 0, buffer));
    want_.blocks.push_back(block(number, index, before, after, 1, buffer));
  }
  void got(uint64_t number, size_t index, float before, float after, uint32_t buffer = 1) {
    got_.blocks.push_back(block(number, index, before, after, 0, buffer));
  }
  std::string compare(const Contract& contract) {
    Workload w = workload(1);
    result_ = {};
    result_.equivalence.emplace();
    compare_sample(contract, w, LiveSample{0, kNone, {1, 2}}, 0, want_, got_, "here", result_);
    return result_.findings.empty() ? "" : result_.findings.front().id;
  }

  std::deque<LiveBlock> blocks_;
  LiveResult want_, got_;
  PrecheckResult result_;
};

TEST_F(LiveCompare, equal_memory_passes) {
  recorded(0, 3, 0, 5), got(0, 3, 0, 5);
  EXPECT_EQ(compare(contract_for_kernel("k")), "");
  EXPECT_EQ(compare(typed("f32")), "");
}

TEST_F(LiveCompare, without_dtypes_one_bit_counts) {
  recorded(0, 3, 0, 5), got(0, 3, 0, std::nextafter(5.0f, 6.0f));
  EXPECT_EQ(compare(contract_for_kernel("k")), "wrong_numbers");
  EXPECT_NE(result_.findings[0].text.find("byte 12 of buffer 1"), std::string::npos) << result_.findings[0].text;
  EXPECT_EQ(result_.findings[0].exit, Exit::broken);
}

TEST_F(LiveCompare, with_dtypes_the_tolerance_counts) {
  recorded(0, 3, 0, 5), got(0, 3, 0, 5.004f);
  EXPECT_EQ(compare(typed("f32")), "wrong_numbers");
  EXPECT_NE(result_.findings[0].text.find("out[3]: got 5.00"), std::string::npos) << result_.findings[0].text;
  EXPECT_EQ(compare(typed("f32", "tolerance: {f32: {rtol: 1e-2, atol: 0}}\n")), "");
  EXPECT_GT(result_.equivalence->worst_error, 0.05);
}

TEST_F(LiveCompare, element_that_the_candidate_left_is_stale) {
  recorded(2, 3, 0, 5);
  EXPECT_EQ(compare(typed("f32")), "stale_output");
  EXPECT_NE(result_.findings[0].text.find("out[259]"), std::string::npos) << result_.findings[0].text;
}

TEST_F(LiveCompare, write_elsewhere_is_found) {
  recorded(0, 3, 0, 5), got(0, 3, 0, 5), got(1, 9, 0, 7, 2);
  EXPECT_EQ(compare(contract_for_kernel("k")), "wrong_numbers");
  EXPECT_NE(result_.findings[0].text.find("changes nothing"), std::string::npos) << result_.findings[0].text;
}

TEST_F(LiveCompare, changed_input_is_named) {
  got(0, 3, 1, 2, 0);
  EXPECT_EQ(compare(typed("f32")), "input_written");
  EXPECT_NE(result_.findings[0].text.find("'x'"), std::string::npos);
}

TEST_F(LiveCompare, nan_meets_nan_only) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  recorded(0, 3, 0, nan), got(0, 3, 0, -nan);
  EXPECT_EQ(compare(typed("f32")), "");
  recorded(1, 3, 0, 1.5f), got(1, 3, 0, nan);
  EXPECT_EQ(compare(typed("f32")), "nan_mismatch");
  want_ = got_ = {};
  recorded(0, 3, 0, inf), got(0, 3, 0, std::numeric_limits<float>::max());
  EXPECT_EQ(compare(typed("f32")), "wrong_numbers");
}

TEST_F(LiveCompare, kernel_that_does_not_repeat_itself_needs_a_dtype) {
  want_.blocks = {block(0, 3, 0, 5), block(0, 3, 0, 5.00001f, 1)};
  got(0, 3, 0, 5.000005f);
  EXPECT_EQ(compare(contract_for_kernel("k")), "not_repeatable");
  EXPECT_EQ(result_.findings[0].exit, Exit::inconclusive);
  EXPECT_EQ(compare(typed("f32")), "");
}

}  // namespace
}  // namespace kgate
