#include "workload/block_hash.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace kgate {
namespace {

std::vector<std::byte> noise(size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> out(bytes);
  for (std::byte& b : out) b = static_cast<std::byte>(random());
  return out;
}

TEST(BlockHash, every_bit_of_a_block_counts) {
  for (size_t bytes : {1, 7, 8, 31, 32, 33, 63, 512, 4096}) {
    for (std::vector<std::byte> block : {std::vector<std::byte>(bytes), noise(bytes, 3)}) {
      std::set<uint64_t> seen{block_hash(block)};
      for (size_t bit = 0; bit < bytes * 8; ++bit) {
        block[bit / 8] ^= std::byte{1} << (bit % 8);
        ASSERT_TRUE(seen.insert(block_hash(block)).second) << bytes << " bytes, bit " << bit;
        block[bit / 8] ^= std::byte{1} << (bit % 8);
      }
    }
  }
}

TEST(BlockHash, the_length_counts_where_all_is_zero) {
  std::set<uint64_t> seen;
  const std::vector<std::byte> zeros(300);
  for (size_t bytes = 0; bytes <= zeros.size(); ++bytes)
    EXPECT_TRUE(seen.insert(block_hash(std::span(zeros).first(bytes))).second) << bytes;
}

TEST(BlockHash, words_that_change_places_change_it) {
  std::vector<std::byte> block = noise(256, 5);
  const uint64_t before = block_hash(block);
  for (size_t lane : {8, 16, 24, 32, 64}) {
    std::vector<std::byte> swapped = block;
    std::swap_ranges(swapped.begin(), swapped.begin() + 8, swapped.begin() + static_cast<std::ptrdiff_t>(lane));
    EXPECT_NE(block_hash(swapped), before) << lane;
  }
}

// Half of the bits, on average, follow one of the input.
TEST(BlockHash, one_bit_moves_about_half_of_the_hash) {
  std::vector<std::byte> block = noise(4096, 9);
  const uint64_t before = block_hash(block);
  int flipped = 0, tries = 0;
  for (size_t bit = 0; bit < block.size() * 8; bit += 37, ++tries) {
    block[bit / 8] ^= std::byte{1} << (bit % 8);
    flipped += __builtin_popcountll(block_hash(block) ^ before);
    block[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  EXPECT_NEAR(static_cast<double>(flipped) / tries, 32, 1);
}

// Hashes are stored in recordings: a change here makes all of them worthless.
TEST(BlockHash, known_hashes_stay) {
  std::vector<std::byte> block(4096);
  for (size_t i = 0; i < block.size(); ++i) block[i] = static_cast<std::byte>(i * 7);
  EXPECT_EQ(block_hash({}), 8609838443835950565u);
  EXPECT_EQ(block_hash(block), 11157852723465852268u);
  EXPECT_EQ(block_hash(std::span(block).first(13)), 9716576146815878668u);
}

TEST(BlockHash, memory_is_cut_into_blocks_and_a_rest) {
  const std::vector<std::byte> memory = noise(10'000, 1);
  const auto hashes = block_hashes(memory, 4096);
  ASSERT_EQ(hashes.size(), 3u);
  EXPECT_EQ(hashes[1], block_hash(std::span(memory).subspan(4096, 4096)));
  EXPECT_EQ(hashes[2], block_hash(std::span(memory).subspan(8192)));
  EXPECT_TRUE(block_hashes({}, 4096).empty());
}

}  // namespace
}  // namespace kgate
