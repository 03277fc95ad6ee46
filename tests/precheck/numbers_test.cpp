// The comparison of one tensor: tolerances, NaN and Inf positions, stale elements, strides, exact integers.

#include "precheck/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace kgate {
namespace {

TensorParam tensor(Dtype dtype, int64_t elements) {
  TensorParam t;
  t.dtype = dtype;
  t.role = Role::out;
  t.dims = {Expr::constant(elements)};
  return t;
}

template <typename T>
std::string bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

TensorComparison compare(const TensorParam& t, const std::string& got, const std::string& want, bool wide = false,
                         const char* baseline = nullptr, const char* initial = nullptr,
                         CompareRule rule = {{1e-3, 1e-6}, false}) {
  return compare_tensor(t, {}, got.data(), {want.data(), wide}, baseline, initial, rule);
}

TEST(CompareTensor, within_tolerance_is_right_and_past_it_is_wrong) {
  auto t = tensor(Dtype::f32, 3);
  EXPECT_EQ(compare(t, bytes<float>({1, 2, 3}), bytes<float>({1.0005f, 2, 3})).wrong, 0u);
  auto c = compare(t, bytes<float>({1, 2, 3}), bytes<float>({1, 2.1f, 3}));
  EXPECT_EQ(c.wrong, 1u);
  EXPECT_EQ(c.worst_index, 1u);
  EXPECT_GT(c.worst, 1);
}

TEST(CompareTensor, a_wide_reference_is_compared_in_double) {
  auto t = tensor(Dtype::f16, 2);
  EXPECT_EQ(compare(t, bytes<uint16_t>({0x3c00, 0x4000}), bytes<double>({1.0, 2.0}), true).wrong, 0u);
  EXPECT_EQ(compare(t, bytes<uint16_t>({0x3c00, 0x4000}), bytes<double>({1.0, 2.5}), true).wrong, 1u);
}

TEST(CompareTensor, nan_must_meet_nan_and_infinity_the_same_infinity) {
  float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  auto t = tensor(Dtype::f32, 2);
  EXPECT_EQ(compare(t, bytes<float>({nan, inf}), bytes<float>({nan, inf})).wrong, 0u);
  EXPECT_EQ(compare(t, bytes<float>({0, inf}), bytes<float>({nan, inf})).nan_wrong, 1u);
  EXPECT_EQ(compare(t, bytes<float>({nan, -inf}), bytes<float>({nan, inf})).nan_wrong, 1u);
}

TEST(CompareTensor, a_reference_past_the_range_of_f16_means_infinity) {
  auto t = tensor(Dtype::f16, 1);
  EXPECT_EQ(compare(t, bytes<uint16_t>({0x7c00}), bytes<double>({1e6}), true).wrong, 0u);
  EXPECT_EQ(compare(t, bytes<uint16_t>({0x7bff}), bytes<double>({1e6}), true).wrong, 1u);
}

TEST(CompareTensor, where_the_baseline_disagrees_about_nan_the_candidate_may_follow_it) {
  float nan = std::nanf("");
  auto t = tensor(Dtype::f32, 1);
  std::string baseline = bytes<float>({0});
  EXPECT_EQ(compare(t, bytes<float>({0}), bytes<double>({nan}), true, baseline.data()).wrong, 0u);
  EXPECT_EQ(compare(t, bytes<float>({nan}), bytes<double>({nan}), true, baseline.data()).wrong, 0u);
}

TEST(CompareTensor, following_the_baseline_means_its_value) {
  auto t = tensor(Dtype::f32, 1);
  std::string baseline = bytes<float>({7});
  std::string want = bytes<double>({std::nan("")});
  EXPECT_EQ(compare(t, bytes<float>({7}), want, true, baseline.data()).wrong, 0u);
  EXPECT_EQ(compare(t, bytes<float>({1000}), want, true, baseline.data()).wrong, 1u);
}

TEST(CompareTensor, elements_that_were_never_written_count_as_stale) {
  auto t = tensor(Dtype::f32, 2);
  std::string initial(8, '\xff');
  std::string got = bytes<float>({1, 0});
  std::memcpy(got.data() + 4, initial.data(), 4);
  auto c = compare(t, got, bytes<float>({1, 5}), false, nullptr, initial.data());
  EXPECT_EQ(c.wrong, 1u);
  EXPECT_EQ(c.stale, 1u);
  EXPECT_EQ(c.nan_wrong, 0u);
}

TEST(CompareTensor, integers_are_exact_beyond_two_to_the_53) {
  auto t = tensor(Dtype::i64, 1);
  int64_t big = (int64_t{1} << 60) + 1;
  EXPECT_EQ(compare(t, bytes<int64_t>({big}), bytes<int64_t>({big - 1}), false, nullptr, nullptr, {{0, 0}, true}).wrong,
            1u);
  EXPECT_EQ(compare(t, bytes<int64_t>({big}), bytes<int64_t>({big}), false, nullptr, nullptr, {{0, 0}, true}).wrong,
            0u);
}

TEST(CompareTensor, padding_between_strided_rows_is_not_compared) {
  TensorParam t = tensor(Dtype::f32, 2);
  t.dims = {Expr::constant(2), Expr::constant(1)};
  t.strides = {Expr::constant(3), Expr::constant(1)};
  EXPECT_EQ(addressed(t, {}), (std::vector<uint64_t>{0, 3}));
  EXPECT_EQ(compare(t, bytes<float>({1, 9, 9, 2}), bytes<float>({1, 0, 0, 2})).wrong, 0u);
}

TEST(CompareTensor, the_baselines_own_error_widens_a_default_tolerance_but_not_a_given_one) {
  auto t = tensor(Dtype::f32, 1);
  std::string baseline = bytes<float>({1.004f});
  CompareRule rule{{1e-3, 0}, true};
  EXPECT_EQ(compare(t, bytes<float>({1.005f}), bytes<double>({1.0}), true, baseline.data(), nullptr, rule).wrong, 0u);
  rule.by_default = false;
  EXPECT_EQ(compare(t, bytes<float>({1.005f}), bytes<double>({1.0}), true, baseline.data(), nullptr, rule).wrong, 1u);
  rule.by_default = true;
  std::string hopeless = bytes<float>({5.0f});
  EXPECT_EQ(compare(t, bytes<float>({1.5f}), bytes<double>({1.0}), true, hopeless.data(), nullptr, rule).wrong, 1u);
}

TEST(Elements, every_dtype_survives_a_round_trip) {
  for (Dtype dtype :
       {Dtype::f64, Dtype::f32, Dtype::tf32, Dtype::f16, Dtype::bf16, Dtype::e4m3, Dtype::e5m2, Dtype::i8, Dtype::i16,
        Dtype::i32, Dtype::i64, Dtype::u8, Dtype::u16, Dtype::u32, Dtype::u64, Dtype::boolean}) {
    char data[16] = {};
    store_element(dtype, data, 1, 1);
    EXPECT_EQ(load_element(dtype, data, 1), 1) << dtype_name(dtype);
  }
}

}  // namespace
}  // namespace kgate
