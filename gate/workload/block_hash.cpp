// Four independent lanes of multiply, rotate and xor keep the multiplier busy; a round at the end mixes lanes and length.
#include "workload/block_hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kgate {

namespace {

constexpr uint64_t kPrime1 = 0x9e3779b97f4a7c15, kPrime2 = 0xd6e8feb86659fd93;

uint64_t load(const std::byte* at, size_t bytes = 8) {
  uint64_t word = 0;
  std::memcpy(&word, at, bytes);
  return word;
}

uint64_t mix(uint64_t lane, uint64_t word) { return std::rotl((lane ^ word) * kPrime1, 29) * kPrime2; }

uint64_t finish(uint64_t x) {
  x = (x ^ (x >> 32)) * kPrime1;
  x = (x ^ (x >> 29)) * kPrime2;
  return x ^ (x >> 32);
}

}  // namespace

uint64_t block_hash(std::span<const std::byte> block) {
  uint64_t lanes[4] = {kPrime1, kPrime2, ~kPrime1, ~kPrime2};
  const std::byte* at = block.data();
  size_t left = block.size();
  for (; left >= 32; left -= 32, at += 32)
    for (int i = 0; i < 4; ++i) lanes[i] = mix(lanes[i], load(at + 8 * i));
  for (int i = 0; left > 0; ++i) {
    size_t bytes = left < 8 ? left : 8;
    lanes[i] = mix(lanes[i], load(at, bytes));
    at += bytes;
    left -= bytes;
  }
  uint64_t hash = block.size();
  for (uint64_t lane : lanes) hash = finish(hash ^ lane) + kPrime1;
  return finish(hash);
}

std::vector<uint64_t> block_hashes(std::span<const std::byte> memory, uint64_t block) {
  std::vector<uint64_t> hashes;
  hashes.reserve((memory.size() + block - 1) / block);
  for (uint64_t at = 0; at < memory.size(); at += block)
    hashes.push_back(block_hash(memory.subspan(at, std::min<uint64_t>(block, memory.size() - at))));
  return hashes;
}

}  // namespace kgate
