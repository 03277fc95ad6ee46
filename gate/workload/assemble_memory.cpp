#include "workload/assemble_memory.h"

#include <algorithm>
#include <array>

#include "support/hash.h"
#include "support/text.h"
#include "workload/block_hash.h"
#include "workload/limits.h"

namespace kgate::assembly {

using namespace recording;

namespace {

Sha256Digest digest_of(std::string_view bytes) {
  const std::string hex = sha256(bytes);
  const auto nibble = [](char c) { return static_cast<uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10); };
  Sha256Digest digest{};
  for (size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<uint8_t>(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
  return digest;
}

bool all_zero(std::string_view bytes) {
  return bytes.empty() || (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

std::string hex(uint64_t value) {
  std::string text;
  do text.insert(text.begin(), "0123456789abcdef"[value & 15]);
  while (value >>= 4);
  return "0x" + text;
}

uint32_t alignment_of(uint64_t address) {
  const uint64_t align = address & (~address + 1);
  return static_cast<uint32_t>(std::min<uint64_t>(align, cap::kMaxAlign));
}

}  // namespace

// ---- chunks --------------------------------------------------------------------------------------------------------

std::string Chunks::load(const Chunk& chunk) const {
  std::string content(chunk.bytes, '\0');
  for (const Piece& piece : chunk.pieces)
    file_->read_blob(piece.blob, std::as_writable_bytes(std::span(content)).subspan(piece.offset, piece.bytes));
  return content;
}

Sha256Digest Chunks::add(uint64_t bytes, std::vector<Piece> pieces, std::string& content) {
  content.clear();
  if (pieces.empty()) return {};
  Chunk chunk{bytes, std::move(pieces)};
  content = load(chunk);
  if (all_zero(content)) return {};
  const Sha256Digest digest = digest_of(content);
  chunks_.try_emplace(digest, std::move(chunk));
  return digest;
}

std::string Chunks::read(const Sha256Digest& digest) const {
  const auto at = chunks_.find(digest);
  if (at == chunks_.end()) throw Error(Exit::internal, "a chunk that the recording does not have");
  std::string content = load(at->second);
  if (digest_of(content) != digest)
    throw Error(Exit::environment, "the recording changed while it was read", file_->path());
  return content;
}

// ---- buffers -------------------------------------------------------------------------------------------------------

DeviceMemory::DeviceMemory(std::shared_ptr<const RecordFile> file, const Timeline& timeline, Chunks& chunks,
                           Notes& notes)
    : file_(std::move(file)), chunks_(chunks), notes_(notes) {
  std::vector<Range> ranges;
  for (const Allocation& allocation : timeline.allocations) {
    const Range range{allocation.address, allocation.address + allocation.size, allocation.memory == Memory::mapped,
                      !allocation.in_slice};
    (allocation.is_buffer() ? ranges : foreign_).push_back(range);
    if (allocation.memory == Memory::managed)
      notes_.add("managed memory is replayed as device memory: its migrations are not");
  }
  const auto by_address = [](const Range& a, const Range& b) { return a.begin < b.begin; };
  std::sort(ranges.begin(), ranges.end(), by_address);
  std::sort(foreign_.begin(), foreign_.end(), by_address);
  for (const Range& range : ranges) {
    Range* last = buffers_.empty() ? nullptr : &buffers_.back();
    if (last && (range.begin < last->end || (range.begin == last->end && range.mapped && last->mapped))) {
      last->end = std::max(last->end, range.end);
      last->before |= range.before;
    } else {
      buffers_.push_back(range);
    }
  }
  read_snapshots();
}

void DeviceMemory::read_snapshots() {
  uint64_t lost = 0;
  for (const Record& record : file_->records()) {
    if (record.head.kind != Kind::snapshot) continue;
    const auto snapshot = RecordFile::as<SnapshotRecord>(record);
    const bool end = snapshot.at_end != 0;
    const uint64_t blocks = snapshot.size / kHashBlockBytes + (snapshot.size % kHashBlockBytes != 0);
    const bool fits = snapshot.size > 0 && snapshot.address <= cap::kMaxAddress &&
                      snapshot.size <= cap::kMaxAddress - snapshot.address && file_->whole(snapshot.content) &&
                      snapshot.content.bytes == (end ? blocks * sizeof(uint64_t) : snapshot.size);
    if (fits)
      (end ? at_end_ : at_begin_).push_back({snapshot.address, snapshot.size, snapshot.content});
    else if (!end)
      lost += snapshot.size;
  }
  if (lost != 0) notes_.add("the contents of " + format_bytes(static_cast<double>(lost)) + " are cut off");
  for (auto* all : {&at_begin_, &at_end_}) {
    std::stable_sort(all->begin(), all->end(), [](const auto& a, const auto& b) { return a.address < b.address; });
    uint64_t end = 0;
    std::erase_if(*all, [&](const Snapshot& snapshot) {
      if (snapshot.address < end) return true;
      end = snapshot.address + snapshot.size;
      return false;
    });
  }
}

std::optional<Place> DeviceMemory::find(uint64_t address) const {
  auto at = std::upper_bound(buffers_.begin(), buffers_.end(), address,
                             [](uint64_t value, const Range& range) { return value < range.begin; });
  if (at == buffers_.begin() || address >= (--at)->end) return {};
  return Place{static_cast<uint32_t>(at - buffers_.begin()), address - at->begin};
}

std::optional<Place> DeviceMemory::find_pointer(uint64_t address) const {
  if (auto inside = find(address)) return inside;
  if (address == 0) return {};
  auto before = find(address - 1);
  if (before) ++before->offset;
  return before;
}

std::optional<Place> DeviceMemory::find_range(uint64_t address, uint64_t bytes) const {
  auto place = find(address);
  if (!place || bytes > this->bytes(place->buffer) - place->offset) return {};
  return place;
}

bool DeviceMemory::is_foreign(uint64_t address) const {
  auto at = std::upper_bound(foreign_.begin(), foreign_.end(), address,
                             [](uint64_t value, const Range& range) { return value < range.begin; });
  return at != foreign_.begin() && address < (--at)->end;
}

void DeviceMemory::scan(std::span<const std::byte> bytes, const std::function<void(uint32_t)>& found) const {
  if (buffers_.empty()) return;
  const uint64_t low = buffers_.front().begin, width = buffers_.back().end - low;
  for (size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    if (word - low >= width) continue;
    if (auto place = find(word)) found(place->buffer);
  }
}

// ---- contents ------------------------------------------------------------------------------------------------------

std::span<const DeviceMemory::Snapshot> DeviceMemory::overlapping(const std::vector<Snapshot>& all,
                                                                  const Range& range) const {
  const auto ends_before = [](const Snapshot& snapshot, uint64_t value) {
    return snapshot.address + snapshot.size <= value;
  };
  const auto first = std::lower_bound(all.begin(), all.end(), range.begin, ends_before);
  const auto last = std::find_if(first, all.end(), [&](const Snapshot& s) { return s.address >= range.end; });
  return {first, last};
}

// Of the whole buffer, or none: when its allocations at the end of the slice do not fill it, some of it is not known.
std::vector<uint64_t> DeviceMemory::end_hashes(const Range& range) const {
  uint64_t covered = range.begin;
  const auto snapshots = overlapping(at_end_, range);
  for (const Snapshot& snapshot : snapshots) {
    if (snapshot.address != covered || (covered - range.begin) % kHashBlockBytes != 0) return {};
    covered += snapshot.size;
  }
  if (covered != range.end) return {};
  std::vector<uint64_t> hashes;
  for (const Snapshot& snapshot : snapshots) {
    const size_t before = hashes.size();
    hashes.resize(before + snapshot.content.bytes / sizeof(uint64_t));
    file_->read_blob(snapshot.content.offset, std::as_writable_bytes(std::span(hashes).subspan(before)));
  }
  return hashes;
}

DeviceMemory::Filled DeviceMemory::fill(uint32_t index, const std::function<void(uint32_t)>& found) {
  const Range& range = buffers_[index];
  Filled out;
  Buffer& buffer = out.buffer;
  buffer.name = hex(range.begin);
  buffer.address = range.begin;
  buffer.bytes = range.end - range.begin;
  buffer.align = alignment_of(range.begin);
  buffer.end_hashes = end_hashes(range);
  const auto snapshots = overlapping(at_begin_, range);
  out.recorded = !snapshots.empty();
  if (!out.recorded && range.before)
    notes_.add("memory that the slice reaches was not snapshotted at its begin: it begins as zeros");
  if (!out.recorded || buffer.bytes > cap::kMaxBufferBytes) return out;

  ContentChunks chunks;
  std::string content;
  bool zeros = true;
  out.unchanged = !buffer.end_hashes.empty();
  for (uint64_t at = range.begin; at < range.end; at += kChunkBytes) {
    const uint64_t bytes = std::min(kChunkBytes, range.end - at);
    std::vector<Chunks::Piece> pieces;
    for (const Snapshot& snapshot : overlapping(at_begin_, {at, at + bytes})) {
      const uint64_t begin = std::max(at, snapshot.address),
                     end = std::min(at + bytes, snapshot.address + snapshot.size);
      pieces.push_back({begin - at, snapshot.content.offset + (begin - snapshot.address), end - begin});
    }
    chunks.chunks.push_back(chunks_.add(bytes, std::move(pieces), content));
    const auto memory = std::as_bytes(std::span(content));
    if (content.empty()) out.unchanged = false;
    if (out.unchanged) {
      const auto hashes = block_hashes(memory, kHashBlockBytes);
      const size_t first = (at - range.begin) / kHashBlockBytes;
      out.unchanged =
          std::equal(hashes.begin(), hashes.end(), buffer.end_hashes.begin() + static_cast<std::ptrdiff_t>(first));
    }
    if (chunks.chunks.back() == Sha256Digest{}) continue;
    zeros = false;
    scan(memory, found);
  }
  if (!zeros) buffer.content = std::move(chunks);
  return out;
}

}  // namespace kgate::assembly
