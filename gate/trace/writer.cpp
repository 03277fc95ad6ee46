// The record memfd from the worker's side: everything is touched before the first launch, so that no page fault lands
// inside a measured request, and what does not fit is counted instead of waited for. And the record file of a traced
// application: data first, then the header that publishes it, so that a process killed in between leaves a whole
// stream.
#include "trace/writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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
  std::unique_ptr<RecordWriter> writer(new RecordWriter());
  writer->header_ = new (mapping->data()) Header{};
  writer->header_->version = kVersion;
  writer->header_->capacity_bytes = bytes - sizeof(Header);
  writer->header_->magic = kMagic;
  writer->mapping_ = std::move(*mapping);
  return writer;
}

Result<std::unique_ptr<RecordWriter>> RecordWriter::open_file(Fd file, std::string path, uint64_t bytes) {
  struct stat st {};
  if (::fstat(file.get(), &st) != 0 || bytes < sizeof(Header) + 64)
    return Failure{"no file to write records to, or no room in it", path, {}};
  std::unique_ptr<RecordWriter> writer(new RecordWriter());
  writer->device_ = st.st_dev;
  writer->inode_ = st.st_ino;
  writer->file_ = std::move(file);
  writer->path_ = std::move(path);
  writer->own_header_ = std::make_unique<Header>();
  writer->header_ = writer->own_header_.get();
  writer->header_->version = kVersion;
  writer->header_->capacity_bytes = bytes - sizeof(Header);
  writer->header_->magic = kMagic;
  writer->write_header();
  if (writer->error_ != 0)
    return Failure{std::string("cannot write records: ") + std::strerror(writer->error_), writer->path_, {}};
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

bool RecordWriter::same_file() const {
  struct stat st {};
  return ::fstat(file_.get(), &st) == 0 && st.st_dev == device_ && st.st_ino == inode_;
}

// An application may close descriptors that it did not open, and then open others under the same number: those must not
// be written to, nor closed.
bool RecordWriter::own_file() {
  if (same_file()) return true;
  (void)file_.release();
  file_ = Fd(::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (same_file()) return true;
  if (error_ == 0) error_ = EBADF;
  return false;
}

void RecordWriter::write_header() {
  if (error_ != 0 || !own_file()) return;
  if (::pwrite(file_.get(), own_header_.get(), sizeof(Header), 0) != static_cast<ssize_t>(sizeof(Header)))
    error_ = errno != 0 ? errno : ENOSPC;
}

bool RecordWriter::store(uint64_t position, const void* bytes, size_t size) {
  if (!own_header_) {
    std::memcpy(mapping_.data() + sizeof(Header) + position, bytes, size);
    return true;
  }
  if (error_ != 0 || !own_file()) return false;
  const auto* from = static_cast<const char*>(bytes);
  while (size != 0) {
    ssize_t written = ::pwrite(file_.get(), from, size, static_cast<off_t>(sizeof(Header) + position));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      error_ = written < 0 ? errno : ENOSPC;
      return false;
    }
    from += written, position += static_cast<uint64_t>(written), size -= static_cast<size_t>(written);
  }
  return true;
}

void RecordWriter::publish(uint64_t used) {
  header_->used_bytes.store(used, std::memory_order_release);
  if (own_header_) write_header();
}

// Also after a failed write: the header lies in a block that the file has already.
void RecordWriter::lose(uint64_t records) {
  if (records == 0) return;
  header_->lost_records.fetch_add(records, std::memory_order_relaxed);
  if (own_header_ && own_file()) (void)!::pwrite(file_.get(), own_header_.get(), sizeof(Header), 0);
}

uint64_t RecordWriter::append_record(const void* record, size_t size) {
  uint64_t used = header_->used_bytes.load(std::memory_order_relaxed);
  if (size > header_->capacity_bytes - used || !store(used, record, size)) {
    lose(1);
    return kNowhere;
  }
  publish(used + size);
  return used;
}

void RecordWriter::merge(Stage& stage) {
  uint64_t used = header_->used_bytes.load(std::memory_order_relaxed);
  uint64_t room = header_->capacity_bytes - used;
  Fit fit{stage.used_, 0};
  if (stage.used_ > room) fit = fit_records(stage.data_.get(), stage.used_, room);
  if (fit.bytes != 0) {
    if (store(used, stage.data_.get(), fit.bytes))
      publish(used + fit.bytes);
    else
      fit = fit_records(stage.data_.get(), stage.used_, 0);
  }
  lose(stage.lost_ + fit.left_over);
  stage.used_ = 0;
  stage.lost_ = 0;
}

void RecordWriter::append_name(uint32_t id, std::string_view text) {
  text = text.substr(0, kMaxNameBytes);
  size_t padded = (text.size() + 7) / 8 * 8;
  alignas(NameRecord) std::byte bytes[sizeof(NameRecord) + kMaxNameBytes] = {};
  NameRecord record{{Kind::name, static_cast<uint16_t>(sizeof(NameRecord) + padded), kNoRound},
                    id,
                    static_cast<uint32_t>(text.size())};
  std::memcpy(bytes, &record, sizeof record);
  std::memcpy(bytes + sizeof record, text.data(), text.size());
  append_record(bytes, record.head.bytes);
}

uint64_t RecordWriter::lost() const { return header_->lost_records.load(std::memory_order_relaxed); }

}  // namespace kgate
