// Counter-based random numbers: the i-th of a stream is a function of (seed, i) alone, the same on every machine,
// whatever the order in which it is asked for. The mixer is the finaliser of splitmix64 (Steele, Lea, Flood 2014).
#pragma once

#include <cstdint>
#include <string_view>

namespace kgate {

constexpr uint64_t mix64(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

constexpr uint64_t random_bits(uint64_t seed, uint64_t index) {
  return mix64(mix64(seed) + (index + 1) * 0x9e3779b97f4a7c15u);
}

// In [0, 1), 53 bits.
constexpr double random_unit(uint64_t seed, uint64_t index) {
  return static_cast<double>(random_bits(seed, index) >> 11) * 0x1p-53;
}

// A seed of its own for each named stream of a workload (FNV-1a of the name, mixed).
constexpr uint64_t derived_seed(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return mix64(mix64(seed) ^ hash);
}

}  // namespace kgate
