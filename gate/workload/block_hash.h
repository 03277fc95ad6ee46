// A fast hash of memory blocks, to tell which of them a kernel wrote and whether two runs left the same bytes. Not
// cryptographic: both sides of a comparison are kgate's own readings of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kgate {

uint64_t block_hash(std::span<const std::byte> block);

// Of each `block` bytes of `memory`; the last may be shorter.
std::vector<uint64_t> block_hashes(std::span<const std::byte> memory, uint64_t block);

}  // namespace kgate
