// Buffers and contents of a recording: merging, snapshots, reachability, end hashes.
#include <gtest/gtest.h>

#include "assemble_sample.h"
#include "workload/block_hash.h"

namespace kgate {
namespace {

using namespace test;

std::string pattern(size_t bytes, char seed) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(seed + i * 7 + i / 251);
  return text;
}

// What the workload's buffer holds, read back chunk by chunk.
std::string content(const Assembled& out, size_t buffer) {
  const Buffer& b = out.workload.buffers.at(buffer);
  std::string all(b.bytes, '\0');
  if (const auto* chunks = std::get_if<ContentChunks>(&b.content))
    for (size_t i = 0; i < chunks->chunks.size(); ++i)
      if (chunks->chunks[i] != Sha256Digest{}) {
        const std::string chunk = out.chunk(chunks->chunks[i]);
        all.replace(i * kChunkBytes, chunk.size(), chunk);
      }
  return all;
}

std::vector<uint64_t> hashes(const std::string& memory) {
  return block_hashes(std::as_bytes(std::span(memory)), kHashBlockBytes);
}

TEST(AssembleMemory, snapshots_become_chunks_and_zeros_stay_zeros) {
  const std::string data = pattern(3'000'000, 1);
  Recorded r;
  r.alloc(kBase, data.size());
  r.alloc(kBase + (1 << 24), 4096);
  r.begin();
  r.snapshot(kBase, data);
  r.snapshot(kBase + (1 << 24), std::string(4096, '\0'));
  r.launch_add(kBase);
  r.launch_add(kBase + (1 << 24));
  r.end();
  const Assembled out = r.assemble();
  const auto& chunks = std::get<ContentChunks>(out.workload.buffers[0].content).chunks;
  EXPECT_EQ(chunks.size(), 3u);
  EXPECT_EQ(content(out, 0), data);
  EXPECT_TRUE(std::holds_alternative<ContentZeros>(out.workload.buffers[1].content));
  EXPECT_EQ(out.content_bytes, data.size() + 4096);
}

TEST(AssembleMemory, alignment_is_what_the_address_has) {
  Recorded r;
  r.alloc(kBase, 512);
  r.alloc(kBase + 512, 512);
  r.alloc(kBase + 0x10008, 8, Memory::mapped);
  r.begin();
  r.launch_add(kBase), r.launch_add(kBase + 512), r.launch_add(kBase + 0x10008);
  r.end();
  const Workload w = r.assemble().workload;
  ASSERT_EQ(w.buffers.size(), 3u);  // neighbours stay apart
  EXPECT_EQ(w.buffers[0].align, 1u << 21);
  EXPECT_EQ(w.buffers[1].align, 512u);
  EXPECT_EQ(w.buffers[2].align, 8u);
  EXPECT_EQ(w.buffers[1].address, kBase + 512);
}

TEST(AssembleMemory, memory_that_was_reused_is_one_buffer_with_the_first_content) {
  const std::string data = pattern(4096, 3);
  Recorded r;
  r.alloc(kBase, 4096);
  r.begin();
  r.snapshot(kBase, data);
  r.launch_add(kBase);
  r.free(kBase);
  r.alloc(kBase + 1024, 8192);
  r.launch_add(kBase + 1024);
  r.end();
  const Assembled out = r.assemble();
  ASSERT_EQ(out.workload.buffers.size(), 1u);
  EXPECT_EQ(out.workload.buffers[0].bytes, 1024u + 8192);
  EXPECT_EQ(content(out, 0), data + std::string(1024 + 8192 - 4096, '\0'));
  EXPECT_EQ(out.workload.launches[1].relocations[0].delta, 1024);
}

TEST(AssembleMemory, neighbouring_mappings_are_one_buffer) {
  Recorded r;
  r.alloc(kBase, 4096, Memory::mapped);
  r.alloc(kBase + 4096, 4096, Memory::mapped);
  r.begin();
  r.snapshot(kBase, pattern(4096, 1));
  r.snapshot(kBase + 4096, pattern(4096, 2));
  r.launch_add(kBase + 5000);
  r.end();
  const auto first = hashes(pattern(4096, 8)), second = hashes(pattern(4096, 9));
  r.end_snapshot(kBase, 4096, first);
  r.end_snapshot(kBase + 4096, 4096, second);
  const Assembled out = r.assemble();
  ASSERT_EQ(out.workload.buffers.size(), 1u);
  EXPECT_EQ(content(out, 0), pattern(4096, 1) + pattern(4096, 2));
  EXPECT_EQ(out.workload.buffers[0].end_hashes, (std::vector<uint64_t>{first[0], second[0]}));
}

TEST(AssembleMemory, end_hashes_need_the_whole_buffer) {
  Recorded r;
  r.alloc(kBase, 8192);
  r.alloc(kBase + 65536, 4096);
  r.begin();
  r.launch_add(kBase), r.launch_add(kBase + 65536);
  r.end();
  r.end_snapshot(kBase, 4096, {1});
  r.end_snapshot(kBase + 65536, 4096, {7});
  const Workload w = r.assemble().workload;
  EXPECT_TRUE(w.buffers[0].end_hashes.empty());
  EXPECT_EQ(w.buffers[1].end_hashes, std::vector<uint64_t>{7});
}

TEST(AssembleMemory, a_cut_slice_has_no_end_hashes) {
  Recorded r;
  r.alloc(kBase, 4096);
  r.begin();
  for (int i = 0; i < 3; ++i) r.launch_add(kBase), r.sync();
  r.end();
  r.end_snapshot(kBase, 4096, {7});
  EXPECT_FALSE(r.assemble().workload.buffers[0].end_hashes.empty());
  EXPECT_TRUE(r.assemble({.requests = 2}).workload.buffers[0].end_hashes.empty());
}

TEST(AssembleMemory, what_nothing_reaches_is_dropped_and_what_contents_point_to_stays) {
  std::string table = pattern(4096, 0);
  const uint64_t pointer = kBase + 0x20000 + 64;
  std::memcpy(table.data() + 64, &pointer, 8);
  Recorded r;
  r.alloc(kBase, 4096);
  r.alloc(kBase + 0x10000, 4096);  // nobody knows it
  r.alloc(kBase + 0x20000, 4096);  // by the table
  r.alloc(kBase + 0x30000, 4096);  // by host data
  r.begin();
  r.snapshot(kBase, table);
  r.snapshot(kBase + 0x10000, pattern(4096, 5));
  r.snapshot(kBase + 0x20000, pattern(4096, 6));
  r.launch_add(kBase);
  auto copy = r.copy(kBase, 0x1234, 8, Side::device, Side::pageable);
  const uint64_t other = kBase + 0x30000;
  copy.payload = r.blob({reinterpret_cast<const char*>(&other), 8});
  r.add(copy);
  r.end();
  const Assembled out = r.assemble();
  ASSERT_EQ(out.workload.buffers.size(), 3u);
  EXPECT_EQ(out.workload.buffers[1].address, kBase + 0x20000);
  EXPECT_EQ(content(out, 1), pattern(4096, 6));
  EXPECT_EQ(out.workload.buffers[2].address, kBase + 0x30000);
  for (const Buffer& buffer : out.workload.buffers) EXPECT_TRUE(buffer.written);
  EXPECT_EQ(out.dropped_bytes, 4096u);
  ASSERT_FALSE(out.workload.origin.notes.empty());
}

TEST(AssembleMemory, only_read_by_copies_is_not_written) {
  Recorded r;
  r.alloc(kBase, 4096);
  r.alloc(kBase + 0x10000, 4096);
  r.begin();
  r.launch_add(kBase);
  r.add(r.copy(kBase, kBase + 0x10000, 64, Side::device, Side::device));
  r.end();
  const Workload w = r.assemble().workload;
  EXPECT_TRUE(w.buffers[0].written);
  EXPECT_FALSE(w.buffers[1].written);
}

TEST(AssembleMemory, weights_order_no_threads) {
  const std::string weights = pattern(4096, 1);
  for (const bool changed : {false, true}) {
    Recorded r;
    r.alloc(kBase, 4096);
    r.stream(0x51), r.stream(0x52);
    r.begin();
    r.snapshot(kBase, weights);
    r.launch_add(kBase, 0x51);
    r.thread = 200;
    r.launch_add(kBase, 0x52);
    r.end();
    r.end_snapshot(kBase, 4096, hashes(changed ? pattern(4096, 2) : weights));
    EXPECT_EQ(r.assemble().workload.calls[1].after.size(), changed ? 1u : 0u);
  }
}

}  // namespace
}  // namespace kgate
