// Real kernels, as nvcc emits them, against the same computation on the host.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "bench_gpu.h"
#include "support/float_formats.h"

namespace kgate::vgpu {
namespace {

float pseudo(uint32_t i) { return static_cast<float>((i * 2654435761u) >> 8) / (1 << 23) - 1.0f; }

std::vector<float> noise(size_t n, uint32_t seed = 0) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = pseudo(static_cast<uint32_t>(i) + seed);
  return out;
}

TEST(Kernels, vector_add_adds_and_leaves_the_tail_alone) {
  BenchGpu gpu(BenchGpu::kernel_text("vector_add"));
  auto a = noise(1000), b = noise(1000, 7);
  uint64_t da = gpu.upload(a), db = gpu.upload(b), dc = gpu.upload(std::vector<float>(1024, -5.0f));
  auto outcome = gpu.launch("vector_add", {4}, {256}, 0, da, db, dc, 1000);
  expect_clean(outcome);
  auto c = gpu.download<float>(dc, 1024);
  for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(c[i], a[i] + b[i]) << i;
  for (size_t i = 1000; i < 1024; ++i) ASSERT_EQ(c[i], -5.0f) << i;
  EXPECT_EQ(outcome.counters.global_requests, 32u * 3);
  EXPECT_EQ(outcome.counters.global_load_sectors, 125u * 2);
  EXPECT_EQ(outcome.counters.global_store_sectors, 125u);
  EXPECT_EQ(outcome.counters.divergent_branches, 1u);
}

TEST(Kernels, counters_are_the_same_from_run_to_run) {
  Counters first;
  for (int run = 0; run < 2; ++run) {
    BenchGpu gpu(BenchGpu::kernel_text("softmax"));
    uint64_t in = gpu.upload(noise(4 * 777)), out = gpu.upload(std::vector<float>(4 * 777));
    auto outcome = gpu.launch("softmax", {4}, {128}, 0, out, in, 777);
    expect_clean(outcome);
    if (run == 0) first = outcome.counters;
    EXPECT_EQ(first.warp_instructions, outcome.counters.warp_instructions);
    EXPECT_EQ(first.thread_instructions, outcome.counters.thread_instructions);
    EXPECT_EQ(first.barriers, outcome.counters.barriers);
  }
  EXPECT_GT(first.barriers, 0u);
}

void softmax_rows(const std::string& file, int rows, int cols, uint32_t block) {
  BenchGpu gpu(BenchGpu::kernel_text(file));
  auto x = noise(static_cast<size_t>(rows) * cols);
  uint64_t in = gpu.upload(x), out = gpu.upload(std::vector<float>(x.size()));
  expect_clean(gpu.launch("softmax", {static_cast<uint32_t>(rows)}, {block}, 0, out, in, cols));
  auto y = gpu.download<float>(out, x.size());
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int c = 0; c < cols; ++c) sum += std::exp(double{x[r * cols + c]});
    for (int c = 0; c < cols; ++c)
      ASSERT_NEAR(y[r * cols + c], std::exp(double{x[r * cols + c]}) / sum, 1e-6) << r << "," << c;
  }
}

TEST(Kernels, softmax_normalises_rows) {
  softmax_rows("softmax", 5, 1000, 128);
  softmax_rows("softmax", 2, 1, 32);
  softmax_rows("softmax", 2, 33, 1024);
  softmax_rows("softmax_lineinfo", 3, 500, 96);
}

TEST(Kernels, layernorm_with_vector_loads) {
  BenchGpu gpu(BenchGpu::kernel_text("norm"));
  constexpr int kRows = 3, kCols = 512;
  auto x = noise(kRows * kCols), gamma = noise(kCols, 3), beta = noise(kCols, 5);
  uint64_t in = gpu.upload(x), g = gpu.upload(gamma), b = gpu.upload(beta),
           out = gpu.upload(std::vector<float>(x.size()));
  expect_clean(gpu.launch("layernorm", {kRows}, {128}, 0, out, in, g, b, kCols));
  auto y = gpu.download<float>(out, x.size());
  for (int r = 0; r < kRows; ++r) {
    double mean = 0, square = 0;
    for (int c = 0; c < kCols; ++c) mean += x[r * kCols + c], square += double{x[r * kCols + c]} * x[r * kCols + c];
    mean /= kCols;
    double rstd = 1 / std::sqrt(square / kCols - mean * mean + 1e-5);
    for (int c = 0; c < kCols; ++c)
      ASSERT_NEAR(y[r * kCols + c], (x[r * kCols + c] - mean) * rstd * gamma[c] + beta[c], 1e-4);
  }
}

TEST(Kernels, rmsnorm_on_half_pairs) {
  BenchGpu gpu(BenchGpu::kernel_text("norm"));
  constexpr int kRows = 8, kCols = 256;
  auto xf = noise(kRows * kCols), wf = noise(kCols, 9);
  std::vector<uint16_t> x, w;
  for (float v : xf) x.push_back(float_to_f16(v));
  for (float v : wf) w.push_back(float_to_f16(v));
  uint64_t in = gpu.upload(x), weight = gpu.upload(w), out = gpu.upload(std::vector<uint16_t>(x.size()));
  expect_clean(gpu.launch("rmsnorm", {2}, {128}, 0, out, in, weight, kCols, 1e-6f));
  auto y = gpu.download<uint16_t>(out, x.size());
  for (int r = 0; r < kRows; ++r) {
    double square = 0;
    for (int c = 0; c < kCols; ++c) square += std::pow(f16_to_float(x[r * kCols + c]), 2);
    double scale = 1 / std::sqrt(square / kCols + 1e-6);
    for (int c = 0; c < kCols; ++c) {
      double expected = f16_to_float(x[r * kCols + c]) * scale * f16_to_float(w[c]);
      ASSERT_NEAR(f16_to_float(y[r * kCols + c]), expected, 2e-3 * std::max(1.0, std::fabs(expected)));
    }
  }
}

TEST(Kernels, block_sums_meet_in_an_atomic) {
  BenchGpu gpu(BenchGpu::kernel_text("reduce"));
  std::vector<float> x(10000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17);
  uint64_t in = gpu.upload(x), out = gpu.upload(std::vector<float>{0});
  auto outcome = gpu.launch("block_sum", {5}, {256}, 0, in, out, 10000);
  expect_clean(outcome);
  EXPECT_EQ(gpu.download<float>(out, 1)[0], std::accumulate(x.begin(), x.end(), 0.0f));
  EXPECT_EQ(outcome.counters.atomics, 5u);
}

TEST(Kernels, integer_atomics_and_compare_and_swap) {
  BenchGpu gpu(BenchGpu::kernel_text("reduce"));
  std::vector<int> x(300);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int>(i * 37 % 301) - 100;
  uint64_t in = gpu.upload(x), wide = gpu.upload(std::vector<uint64_t>{0});
  uint64_t out = gpu.upload(std::vector<int>{1000, -1000, -1, 0, 0, 0, 0});
  expect_clean(gpu.launch("int_atomics", {2}, {160}, 0, in, out, wide, 300));
  auto got = gpu.download<int>(out, 7);
  int all_and = -1, all_or = 0, all_xor = 0;
  uint64_t sum = 0;
  for (int v : x) all_and &= v, all_or |= v, all_xor ^= v, sum += static_cast<uint64_t>(int64_t{v});
  EXPECT_EQ(got[0], *std::min_element(x.begin(), x.end()));
  EXPECT_EQ(got[1], *std::max_element(x.begin(), x.end()));
  EXPECT_EQ(got[2], all_and);
  EXPECT_EQ(got[3], all_or);
  EXPECT_EQ(got[4], all_xor);
  EXPECT_EQ(got[5], 300 % 101);
  EXPECT_EQ(got[6], 900);
  EXPECT_EQ(gpu.download<uint64_t>(wide, 1)[0], sum);
}

TEST(Kernels, the_last_block_sees_what_the_others_wrote) {
  BenchGpu gpu(BenchGpu::kernel_text("reduce"));
  std::vector<int> x(20);
  std::iota(x.begin(), x.end(), 1);
  uint64_t in = gpu.upload(x), partial = gpu.upload(std::vector<int>(20)), out = gpu.upload(std::vector<int>{0});
  for (int run = 0; run < 2; ++run) {
    expect_clean(gpu.launch("last_block", {20}, {64}, 0, in, partial, out));
    EXPECT_EQ(gpu.download<int>(out, 1)[0], 210);
  }
  auto finished = gpu.program->global("_ZN8finishedE");
  for (const char* name : {"finished", "_ZL8finished"}) {
    if (!finished) finished = gpu.program->global(name);
  }
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->size, 4u);
  EXPECT_EQ(gpu.download<int>(finished->base, 1)[0], 0);
}

TEST(Kernels, rotary_embedding_in_both_16_bit_formats) {
  BenchGpu gpu(BenchGpu::kernel_text("rope"));
  constexpr int kPairs = 40, kPositions = 30;
  auto theta = noise(kPairs), xf = noise(kPairs * kPositions * 2);
  for (float& t : theta) t = std::fabs(t);
  for (bool half : {true, false}) {
    std::vector<uint16_t> x;
    for (float v : xf) x.push_back(half ? float_to_f16(v) : float_to_bf16(v));
    auto widen = [&](uint16_t v) { return double{half ? f16_to_float(v) : bf16_to_float(v)}; };
    uint64_t dx = gpu.upload(x), dt = gpu.upload(theta);
    expect_clean(gpu.launch(half ? "rope_f16" : "rope_bf16", {kPositions}, {64}, 0, dx, dt, kPairs));
    auto y = gpu.download<uint16_t>(dx, x.size());
    double tolerance = half ? 2e-3 : 1.6e-2;
    for (int p = 0; p < kPositions; ++p) {
      for (int i = 0; i < kPairs; ++i) {
        size_t at = static_cast<size_t>(p * kPairs + i) * 2;
        double angle = p * theta[i], a = widen(x[at]), b = widen(x[at + 1]);
        ASSERT_NEAR(widen(y[at]), a * std::cos(angle) - b * std::sin(angle), tolerance);
        ASSERT_NEAR(widen(y[at + 1]), a * std::sin(angle) + b * std::cos(angle), tolerance);
      }
    }
  }
}

TEST(Kernels, tiled_matmul_with_ragged_edges) {
  BenchGpu gpu(BenchGpu::kernel_text("matmul"));
  constexpr int kM = 37, kN = 50, kK = 41;
  auto a = noise(kM * kK), b = noise(kK * kN, 11);
  uint64_t da = gpu.upload(a), db = gpu.upload(b), dc = gpu.upload(std::vector<float>(kM * kN));
  auto outcome = gpu.launch("matmul", {4, 3}, {16, 16}, 0, da, db, dc, kM, kN, kK);
  expect_clean(outcome);
  auto c = gpu.download<float>(dc, kM * kN);
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      double sum = 0;
      for (int k = 0; k < kK; ++k) sum += double{a[i * kK + k]} * b[k * kN + j];
      ASSERT_NEAR(c[i * kN + j], sum, 1e-4) << i << "," << j;
    }
  }
  EXPECT_EQ(outcome.counters.barriers, 12u * 8 * 3 * 2);
}

TEST(Kernels, histogram_in_dynamic_shared_memory) {
  BenchGpu gpu(BenchGpu::kernel_text("control"));
  std::vector<uint8_t> x(5000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>(i * i >> 3);
  uint64_t in = gpu.upload(x), out = gpu.upload(std::vector<uint32_t>(100));
  expect_clean(gpu.launch("histogram", {3}, {128}, 400, in, out, 5000, 100));
  std::vector<uint32_t> expected(100);
  for (uint8_t v : x) ++expected[v % 100];
  EXPECT_EQ(gpu.download<uint32_t>(out, 100), expected);
}

TEST(Kernels, loops_whose_trip_count_differs_by_lane) {
  BenchGpu gpu(BenchGpu::kernel_text("control"));
  std::vector<uint64_t> x(70);
  std::iota(x.begin(), x.end(), 1);
  uint64_t in = gpu.upload(x), out = gpu.upload(std::vector<int>(70));
  auto outcome = gpu.launch("collatz", {1}, {96}, 0, in, out, 70);
  expect_clean(outcome);
  auto got = gpu.download<int>(out, 70);
  for (size_t i = 0; i < x.size(); ++i) {
    int steps = 0;
    for (uint64_t v = x[i]; v != 1; ++steps) v = v & 1 ? 3 * v + 1 : v / 2;
    ASSERT_EQ(got[i], steps) << i;
  }
  EXPECT_GT(outcome.counters.divergent_branches, 3u);
}

TEST(Kernels, switches_and_device_calls_diverge_and_meet) {
  BenchGpu gpu(BenchGpu::kernel_text("control"));
  std::vector<int> x(64);
  for (int i = 0; i < 64; ++i) x[i] = i % 8;
  uint64_t in = gpu.upload(x), out = gpu.upload(std::vector<float>(64));
  expect_clean(gpu.launch("switches", {1}, {64}, 0, in, out, 64));
  auto got = gpu.download<float>(out, 64);
  auto twice = [](float v, int k) { return k > 3 ? v * 2 + static_cast<float>(k) : v - static_cast<float>(k); };
  for (int i = 0; i < 64; ++i) {
    float expected = -1;
    switch (i % 8) {
      case 0:
        expected = twice(1.5f, i);
        break;
      case 1:
        expected = std::sqrt(static_cast<float>(i));
        break;
      case 2:
        expected = static_cast<float>(i / 3);
        break;
      case 3:
        expected = static_cast<float>(i % 7);
        break;
      case 4:
        expected = static_cast<float>(__builtin_popcount(i) + (i ? __builtin_clz(i) : 32));
        break;
      case 5:
        expected = twice(static_cast<float>(i), 1);
        break;
      default:
        break;
    }
    ASSERT_EQ(got[i], expected) << i;
  }
}

TEST(Kernels, a_lock_between_lanes_of_one_warp_makes_progress) {
  BenchGpu gpu(BenchGpu::kernel_text("control"));
  uint64_t mutex = gpu.upload(std::vector<int>{0}), counter = gpu.upload(std::vector<int>{0});
  expect_clean(gpu.launch("lock", {2}, {64}, 0, mutex, counter));
  EXPECT_EQ(gpu.download<int>(counter, 1)[0], 128);
}

TEST(Kernels, local_arrays_and_constant_tables) {
  BenchGpu gpu(BenchGpu::kernel_text("control"));
  uint64_t out = gpu.upload(std::vector<int>(40));
  expect_clean(gpu.launch("locals", {1}, {40}, 0, out, 3));
  auto got = gpu.download<int>(out, 40);
  const int table[4] = {3, 1, 4, 1};
  for (int t = 0; t < 40; ++t) {
    int a[8], sum = 0;
    for (int i = 0; i < 8; ++i) a[i] = i * table[i & 3];
    a[(t + 3) & 7] += 100;
    for (int i = 0; i < 8; ++i) sum += a[(i + 3) & 7] * (i + 1);
    ASSERT_EQ(got[t], sum) << t;
  }
}

}  // namespace
}  // namespace kgate::vgpu
