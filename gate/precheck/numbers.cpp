// Comparing numbers. Tolerances are |got − want| <= atol + rtol·|want|; NaN must meet NaN and an infinity the same
// infinity. A wide (f64) expectation beyond the dtype's range counts as the infinity that rounding makes of it.

#include "precheck/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "support/float_formats.h"

namespace kgate {

namespace {

template <typename T>
T read(const char* data, uint64_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void write(char* data, uint64_t index, T value) {
  std::memcpy(data + index * sizeof(T), &value, sizeof(T));
}

// `value` as the dtype would hold it.
double rounded(Dtype dtype, double value) {
  char bytes[8];
  store_element(dtype, bytes, 0, value);
  return load_element(dtype, bytes, 0);
}

bool same_special(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return true;
}

}  // namespace

double load_element(Dtype dtype, const char* data, uint64_t index) {
  switch (dtype) {
    case Dtype::f64:
      return read<double>(data, index);
    case Dtype::f32:
    case Dtype::tf32:
      return read<float>(data, index);
    case Dtype::f16:
      return f16_to_float(read<uint16_t>(data, index));
    case Dtype::bf16:
      return bf16_to_float(read<uint16_t>(data, index));
    case Dtype::e4m3:
      return e4m3_to_float(read<uint8_t>(data, index));
    case Dtype::e5m2:
      return e5m2_to_float(read<uint8_t>(data, index));
    case Dtype::i8:
      return read<int8_t>(data, index);
    case Dtype::i16:
      return read<int16_t>(data, index);
    case Dtype::i32:
      return read<int32_t>(data, index);
    case Dtype::i64:
      return static_cast<double>(read<int64_t>(data, index));
    case Dtype::u8:
    case Dtype::boolean:
      return read<uint8_t>(data, index);
    case Dtype::u16:
      return read<uint16_t>(data, index);
    case Dtype::u32:
      return read<uint32_t>(data, index);
    case Dtype::u64:
      return static_cast<double>(read<uint64_t>(data, index));
  }
  return 0;
}

void store_element(Dtype dtype, char* data, uint64_t index, double value) {
  switch (dtype) {
    case Dtype::f64:
      return write<double>(data, index, value);
    case Dtype::f32:
    case Dtype::tf32:
      return write<float>(data, index, static_cast<float>(value));
    case Dtype::f16:
      return write<uint16_t>(data, index, double_to_f16(value));
    case Dtype::bf16:
      return write<uint16_t>(data, index, double_to_bf16(value));
    case Dtype::e4m3:
      return write<uint8_t>(data, index, float_to_e4m3(static_cast<float>(value)));
    case Dtype::e5m2:
      return write<uint8_t>(data, index, float_to_e5m2(static_cast<float>(value)));
    case Dtype::i8:
      return write<int8_t>(data, index, static_cast<int8_t>(value));
    case Dtype::i16:
      return write<int16_t>(data, index, static_cast<int16_t>(value));
    case Dtype::i32:
      return write<int32_t>(data, index, static_cast<int32_t>(value));
    case Dtype::i64:
      return write<int64_t>(data, index, static_cast<int64_t>(value));
    case Dtype::u8:
    case Dtype::boolean:
      return write<uint8_t>(data, index, static_cast<uint8_t>(value));
    case Dtype::u16:
      return write<uint16_t>(data, index, static_cast<uint16_t>(value));
    case Dtype::u32:
      return write<uint32_t>(data, index, static_cast<uint32_t>(value));
    case Dtype::u64:
      return write<uint64_t>(data, index, static_cast<uint64_t>(value));
  }
}

std::vector<uint64_t> addressed(const TensorParam& tensor, const Environment& shape) {
  std::vector<int64_t> dims, strides(tensor.dims.size(), 1);
  for (const auto& dim : tensor.dims) dims.push_back(dim.evaluate(shape).value_or_throw(Exit::bad_input));
  for (size_t i = dims.size(); i-- > 0;)
    strides[i] = tensor.strides.empty() ? (i + 1 < dims.size() ? strides[i + 1] * dims[i + 1] : 1)
                                        : tensor.strides[i].evaluate(shape).value_or_throw(Exit::bad_input);
  std::vector<uint64_t> offsets{0};
  for (size_t i = 0; i < dims.size(); ++i) {
    std::vector<uint64_t> next;
    next.reserve(offsets.size() * static_cast<size_t>(std::max<int64_t>(dims[i], 0)));
    for (uint64_t base : offsets)
      for (int64_t k = 0; k < dims[i]; ++k) next.push_back(base + static_cast<uint64_t>(k * strides[i]));
    offsets = std::move(next);
  }
  return offsets;
}

TensorComparison compare_tensor(const TensorParam& tensor, const Environment& shape, const char* got,
                                const Expected& expected, const char* baseline, const char* initial,
                                const CompareRule& rule) {
  TensorComparison result;
  bool floating = is_floating(tensor.dtype);
  uint32_t size = dtype_bytes(tensor.dtype);
  auto offsets = addressed(tensor, shape);
  auto want_at = [&](uint64_t i) { return load_element(expected.wide ? Dtype::f64 : tensor.dtype, expected.data, i); };
  auto tolerance_at = [&](double want) { return rule.tolerance.atol + rule.tolerance.rtol * std::fabs(want); };

  double baseline_error = 0;
  if (baseline && floating && rule.by_default)
    for (uint64_t i : offsets) {
      double error = std::fabs(load_element(tensor.dtype, baseline, i) - want_at(i));
      if (std::isfinite(error)) baseline_error = std::max(baseline_error, error);
    }

  for (uint64_t i : offsets) {
    ++result.compared;
    double value = load_element(tensor.dtype, got, i), want = want_at(i);
    double exact_want = expected.wide ? rounded(tensor.dtype, want) : want;
    double ratio;
    bool special = false;
    if (!floating && rule.tolerance.atol == 0 && rule.tolerance.rtol == 0) {
      ratio = std::memcmp(got + i * size, expected.data + i * size, size) == 0 ? 0 : INFINITY;  // exact beyond 2^53 too
    } else if (!same_special(value, exact_want)) {
      double of_baseline = baseline ? load_element(tensor.dtype, baseline, i) : exact_want;
      bool near = !std::isfinite(of_baseline) || std::fabs(value - of_baseline) <= tolerance_at(of_baseline);
      bool follows_baseline = !same_special(of_baseline, exact_want) && same_special(value, of_baseline) && near;
      special = !follows_baseline;
      ratio = follows_baseline ? 0 : INFINITY;
    } else if (!std::isfinite(value)) {
      ratio = 0;
    } else {
      double allowed = tolerance_at(want);
      allowed = std::max(allowed, std::min(1.5 * baseline_error, 10 * allowed));
      double error = std::fabs(value - want);
      ratio = error == 0 ? 0 : allowed > 0 ? error / allowed : INFINITY;
    }
    if (ratio > 1) {
      ++result.wrong;
      bool stale = initial && std::memcmp(got + i * size, initial + i * size, size) == 0;
      result.stale += stale;
      result.nan_wrong += special && !stale;
    }
    if (ratio > result.worst) {
      result.worst = ratio;
      result.worst_index = i;
      result.got = value;
      result.want = want;
    }
  }
  return result;
}

}  // namespace kgate
