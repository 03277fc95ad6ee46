// Buffers are filled from (seed, index), so that a workload file stays small and two machines compute on the same
// numbers.
#include "workload/content.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "support/float_formats.h"
#include "workload/element.h"
#include "workload/kgw.h"
#include "workload/random.h"

namespace kgate {

namespace {

// Trailing bytes that hold no whole element become zero.
template <typename T, typename Make>
void fill_elements(std::span<std::byte> out, Make make) {
  const size_t count = out.size() / sizeof(T);
  for (size_t i = 0; i < count; ++i) {
    const T value = make(i);
    std::memcpy(out.data() + i * sizeof(T), &value, sizeof(T));
  }
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(count * sizeof(T)), out.end(), std::byte{0});
}

template <typename T>
void fill_integers(const ContentRandom& random, std::span<std::byte> out) {
  using Unsigned = std::make_unsigned_t<T>;
  const uint64_t low = static_cast<uint64_t>(static_cast<T>(random.low));
  const uint64_t last = static_cast<uint64_t>(static_cast<T>(random.high)) - low;  // offset of `high` from `low`
  fill_elements<T>(out, [&](size_t i) {
    const uint64_t bits = random_bits(random.seed, i);
    const uint64_t offset =
        last == ~uint64_t{0} ? bits : static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * (last + 1)) >> 64);
    return static_cast<T>(static_cast<Unsigned>(low + offset));
  });
}

// tf32 keeps 10 bits of a float's fraction; round to nearest even.
float to_tf32(double value) {
  uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  bits += 0xfff + ((bits >> 13) & 1);
  return std::bit_cast<float>(bits & ~uint32_t{0x1fff});
}

// Round to nearest even into a narrow format, by adding to the double's bits where the result is normal and cannot
// overflow; support/'s conversions, which take every value and are ten times slower, do the rest.
template <int kFraction, int kBias, int kMaxExponent, auto kEveryValue>
auto narrow(double value) {
  using Bits = decltype(kEveryValue(value));
  const uint64_t bits = std::bit_cast<uint64_t>(value), sign = bits >> 63;
  uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  if (exponent < 1 - kBias || exponent >= kMaxExponent) return kEveryValue(value);
  constexpr int kDropped = 52 - kFraction;
  magnitude += (uint64_t{1} << (kDropped - 1)) - 1 + ((magnitude >> kDropped) & 1);
  const uint64_t shifted = (magnitude >> kDropped) - (uint64_t{1023 - kBias} << kFraction);
  return static_cast<Bits>(sign << (8 * sizeof(Bits) - 1) | shifted);
}

uint8_t every_e4m3(double value) { return float_to_e4m3(static_cast<float>(value)); }
uint8_t every_e5m2(double value) { return float_to_e5m2(static_cast<float>(value)); }

void fill_random(const ContentRandom& random, std::span<std::byte> out) {
  const std::string_view dtype = random.dtype;
  const double low = random.low, width = random.high - random.low;
  const auto real = [&](size_t i) { return low + random_unit(random.seed, i) * width; };
  if (dtype == "f64") return fill_elements<double>(out, real);
  if (dtype == "f32") return fill_elements<float>(out, [&](size_t i) { return static_cast<float>(real(i)); });
  if (dtype == "tf32") return fill_elements<float>(out, [&](size_t i) { return to_tf32(real(i)); });
  if (dtype == "f16")
    return fill_elements<uint16_t>(out, [&](size_t i) { return narrow<10, 15, 15, double_to_f16>(real(i)); });
  if (dtype == "bf16")
    return fill_elements<uint16_t>(out, [&](size_t i) { return narrow<7, 127, 127, double_to_bf16>(real(i)); });
  if (dtype == "e4m3")
    return fill_elements<uint8_t>(out, [&](size_t i) { return narrow<3, 7, 8, every_e4m3>(real(i)); });
  if (dtype == "e5m2")
    return fill_elements<uint8_t>(out, [&](size_t i) { return narrow<2, 15, 15, every_e5m2>(real(i)); });
  if (dtype == "i8") return fill_integers<int8_t>(random, out);
  if (dtype == "i16") return fill_integers<int16_t>(random, out);
  if (dtype == "i32") return fill_integers<int32_t>(random, out);
  if (dtype == "i64") return fill_integers<int64_t>(random, out);
  if (dtype == "u8" || dtype == "bool") return fill_integers<uint8_t>(random, out);
  if (dtype == "u16") return fill_integers<uint16_t>(random, out);
  if (dtype == "u32") return fill_integers<uint32_t>(random, out);
  if (dtype == "u64") return fill_integers<uint64_t>(random, out);
  throw Error(Exit::internal, "no random content of dtype " + random.dtype);
}

}  // namespace

void materialise(const Content& content, std::span<std::byte> out) {
  if (std::holds_alternative<ContentChunks>(content))
    throw Error(Exit::internal, "recorded content without the file that it lies in");
  if (const auto* bytes = std::get_if<ContentBytes>(&content)) {
    if (bytes->bytes.size() > out.size()) throw Error(Exit::internal, "a buffer's content is longer than the buffer");
    std::copy_n(reinterpret_cast<const std::byte*>(bytes->bytes.data()), bytes->bytes.size(), out.begin());
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(bytes->bytes.size()), out.end(), std::byte{0});
  } else if (const auto* random = std::get_if<ContentRandom>(&content)) {
    fill_random(*random, out);
  } else if (const auto* poison = std::get_if<ContentPoison>(&content)) {
    std::fill(out.begin(), out.end(), std::byte{poison->value});
  } else {
    std::fill(out.begin(), out.end(), std::byte{0});
  }
}

namespace {

constexpr size_t kChunksOfAThread = 32;
constexpr size_t kMaxThreads = 8;

// Gigabytes are unpacked and verified at about half a gigabyte a second and core, so large contents take several.
class ChunkedRead {
 public:
  ChunkedRead(const ContentChunks& content, std::span<std::byte> out, const std::filesystem::path& source)
      : chunks_(content.chunks), out_(out), source_(source) {}

  Result<std::monostate> run() {
    const size_t threads = std::min({chunks_.size() / kChunksOfAThread, kMaxThreads,
                                     static_cast<size_t>(std::max(1u, std::thread::hardware_concurrency()))});
    std::vector<std::jthread> helpers;
    try {
      for (size_t i = 1; i < threads; ++i) helpers.emplace_back([this] { read_some(); });
    } catch (const std::system_error&) {
      // Fewer threads, then: this one reads what is left.
    }
    read_some();
    helpers.clear();
    if (failure_) return *failure_;
    return std::monostate{};
  }

 private:
  void read_some() {
    auto reader = ChunkReader::open(source_);
    if (!reader) return fail(reader.failure());
    for (size_t i = next_++; i < chunks_.size(); i = next_++) {
      const size_t at = i * kChunkBytes;
      const auto done = reader->read(chunks_[i], out_.subspan(at, std::min<size_t>(kChunkBytes, out_.size() - at)));
      if (!done) return fail(done.failure());
    }
  }
  void fail(const Failure& failure) {
    std::lock_guard lock(mutex_);
    if (!failure_) failure_ = failure;
    next_ = chunks_.size();
  }

  const std::vector<Sha256Digest>& chunks_;
  const std::span<std::byte> out_;
  const std::filesystem::path& source_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  std::optional<Failure> failure_;
};

}  // namespace

void materialise(const Content& content, std::span<std::byte> out, const std::filesystem::path& source) {
  const auto* chunks = std::get_if<ContentChunks>(&content);
  if (!chunks) return materialise(content, out);
  if (chunks->chunks.size() != out.size() / kChunkBytes + (out.size() % kChunkBytes != 0))
    throw Error(Exit::internal, "a buffer's chunks do not make its size");
  ChunkedRead(*chunks, out, source).run().value_or_throw(Exit::bad_input);
}

}  // namespace kgate
