// The record memfd from the worker's side. Everything is touched before the first launch, so that no page fault lands
// inside a measured request, and what does not fit is counted instead of waited for.
#include "trace/writer.h"

#include <sys/stat.h>

#include <algorithm>
#include <new>

namespace kgate {

using namespace wire;

Result<std::unique_ptr<RecordWriter>> RecordWriter::open(const Fd& memfd, size_t bytes) {
  struct stat st {};
  if (::fstat(memfd.get(), &st) != 0) return Failure{"the record descriptor is not open", "record memfd", {}};
  if (bytes < sizeof(Header) + 64 || static_cast<uint64_t>(st.st_size) < bytes)
    return Failure{"the record memfd has " + std::to_string(st.st_size) + " bytes, not " + std::to_string(bytes),
                   "record memfd",
                   {}};
  auto mapping = Mapping::of(memfd, bytes, true);
  if (!mapping) return mapping.failure();
  std::memset(mapping->data(), 0, bytes);
  auto* header = new (mapping->data()) Header{};
  header->version = kVersion;
  header->capacity_bytes = bytes - sizeof(Header);
  header->magic = kMagic;
  std::unique_ptr<RecordWriter> writer(new RecordWriter());
  writer->mapping_ = std::move(*mapping);
  return writer;
}

RecordWriter::Stage::Stage(size_t bytes) : data_(new std::byte[bytes]), capacity_(bytes) {
  std::memset(data_.get(), 0xff, bytes);  // not zeros: the compiler may turn those into a lazy calloc
}

void RecordWriter::Stage::append_bytes(const void* bytes, size_t size) {
  if (size > capacity_ - used_) {
    ++lost_;
    return;
  }
  std::memcpy(data_.get() + used_, bytes, size);
  used_ += size;
}

namespace {

Header& header_of(const Mapping& mapping) { return *reinterpret_cast<Header*>(mapping.data()); }

// Of the records in `data`: how many bytes of whole records fit into `room`, and how many records are left over.
struct Fit {
  size_t bytes = 0;
  uint64_t left_over = 0;
};
Fit fit_records(const std::byte* data, size_t used, size_t room) {
  Fit fit;
  for (size_t at = 0; at < used;) {
    RecordHead head;
    std::memcpy(&head, data + at, sizeof head);
    size_t size = std::max<size_t>(head.bytes, sizeof head);
    if (fit.left_over == 0 && at + size <= room)
      fit.bytes = at + size;
    else
      ++fit.left_over;
    at += size;
  }
  return fit;
}

}  // namespace

void RecordWriter::merge(Stage& stage) {
  Header& header = header_of(mapping_);
  uint64_t used = header.used_bytes.load(std::memory_order_relaxed);
  size_t room = header.capacity_bytes - used;
  Fit fit{stage.used_, 0};
  if (stage.used_ > room) fit = fit_records(stage.data_.get(), stage.used_, room);
  std::memcpy(mapping_.data() + sizeof(Header) + used, stage.data_.get(), fit.bytes);
  header.used_bytes.store(used + fit.bytes, std::memory_order_release);
  header.lost_records.fetch_add(stage.lost_ + fit.left_over, std::memory_order_relaxed);
  stage.used_ = 0;
  stage.lost_ = 0;
}

void RecordWriter::append_name(uint32_t id, std::string_view text) {
  Header& header = header_of(mapping_);
  text = text.substr(0, kMaxNameBytes);
  size_t padded = (text.size() + 7) / 8 * 8;
  NameRecord record{{Kind::name, static_cast<uint16_t>(sizeof(NameRecord) + padded), kNoRound},
                    id,
                    static_cast<uint32_t>(text.size())};
  uint64_t used = header.used_bytes.load(std::memory_order_relaxed);
  if (record.head.bytes > header.capacity_bytes - used) {
    header.lost_records.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  std::byte* to = mapping_.data() + sizeof(Header) + used;
  std::memcpy(to, &record, sizeof record);
  std::memcpy(to + sizeof record, text.data(), text.size());
  header.used_bytes.store(used + record.head.bytes, std::memory_order_release);
}

uint64_t RecordWriter::lost() const { return header_of(mapping_).lost_records.load(std::memory_order_relaxed); }

}  // namespace kgate
