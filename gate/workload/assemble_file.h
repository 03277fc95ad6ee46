// The recorder's two files, read with distrust: the process that wrote them ran foreign code and may have been killed
// at any instruction. Every record's length and count is checked once, here; whoever asks for a record afterwards gets
// it whole. Bytes of STEM.blobs are read when they are asked for, since they may be many gigabytes.
#pragma once

#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/error.h"
#include "support/fd.h"
#include "workload/recording.h"

namespace kgate::assembly {

struct Record {
  recording::Head head;
  const std::byte* data = nullptr;  // head.bytes of them
  uint32_t position = 0;            // in the file
};

class RecordFile {
 public:
  // `records` is STEM.kgrec. The failure says what is wrong with the file; one that was cut off is none: what is whole
  // is there.
  static Result<RecordFile> open(const std::filesystem::path& records);

  uint32_t process() const { return process_; }
  bool complete() const { return complete_; }  // the process ended in order and no record is missing
  const std::vector<Record>& records() const { return records_; }
  const std::filesystem::path& path() const { return path_; }

  // T is the struct of the record's kind.
  template <typename T>
  static T as(const Record& record) {
    T value;
    std::memcpy(&value, record.data, sizeof value);
    return value;
  }
  // Behind the struct of `fixed` bytes, to the end of the record.
  static std::string_view tail(const Record& record, size_t fixed) {
    return {reinterpret_cast<const char*>(record.data) + fixed, record.head.bytes - fixed};
  }
  static std::string_view name(const Record& record);  // of a note, a function, a range

  bool whole(const recording::BlobRef& blob) const {
    return blob.offset <= blob_bytes_ && blob.bytes <= blob_bytes_ - blob.offset;
  }
  // Fills `out` from `offset` of STEM.blobs. Throws Error{environment} when the disk does not deliver.
  void read_blob(uint64_t offset, std::span<std::byte> out) const;
  std::string blob(const recording::BlobRef& blob) const;  // must be whole

 private:
  Result<std::monostate> index();

  std::filesystem::path path_;
  std::string content_;
  Fd blobs_;
  uint64_t blob_bytes_ = 0;
  std::vector<Record> records_;
  uint32_t process_ = 0;
  bool complete_ = false;
};

}  // namespace kgate::assembly
