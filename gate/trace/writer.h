// The writing side of a record stream. In a worker it is a pre-touched arena: no allocation, no lock, no system call on
// the hot path; each thread stages into its own block and merges between rounds. In an application that is traced from
// inside it is a file that grows: there nobody knows how much will come, the process may be killed at any time, and a
// full disk must not kill it, as it would through a mapping (SIGBUS).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "support/fd.h"
#include "trace/wire.h"

namespace kgate {

class RecordWriter {
 public:
  // Maps and touches the whole memfd of `bytes`.
  static Result<std::unique_ptr<RecordWriter>> open(const Fd& memfd, size_t bytes);
  // Writes to `file`, which is empty and lies at `path`, at most `bytes`. What cannot be written is lost and counted,
  // and so is everything after it.
  static Result<std::unique_ptr<RecordWriter>> open_file(Fd file, std::string path, uint64_t bytes);

  // A private staging area for one thread, pre-touched; append() never blocks and counts what does not fit.
  class Stage {
   public:
    explicit Stage(size_t bytes);
    template <typename Record>
    void append(const Record& record) {
      append_bytes(&record, sizeof record);
    }
    void append_bytes(const void* bytes, size_t size);
    size_t used() const { return used_; }

   private:
    friend class RecordWriter;
    std::unique_ptr<std::byte[]> data_;
    size_t capacity_ = 0, used_ = 0;
    uint64_t lost_ = 0;
  };

  void merge(Stage& stage);                              // between rounds, one thread; empties the stage
  void append_name(uint32_t id, std::string_view text);  // one thread
  uint64_t lost() const;

  // A record that is rewritten in place later: its position, or kNowhere when it did not fit. One thread.
  static constexpr uint64_t kNowhere = ~uint64_t{0};
  template <typename Record>
  uint64_t append(const Record& record) {
    return append_record(&record, sizeof record);
  }
  template <typename Record>
  void overwrite(uint64_t position, const Record& record) {
    if (position != kNowhere) store(position, &record, sizeof record);
  }

  int error() const { return error_; }  // errno of the write that failed first; 0: none

 private:
  RecordWriter() = default;
  uint64_t append_record(const void* record, size_t size);
  bool store(uint64_t position, const void* bytes, size_t size);  // position: behind the header
  void publish(uint64_t used);
  void lose(uint64_t records);
  bool same_file() const;
  bool own_file();
  void write_header();

  Mapping mapping_;
  Fd file_;  // of own_header_
  std::string path_;
  uint64_t device_ = 0, inode_ = 0;
  std::unique_ptr<wire::Header> own_header_;  // of a file
  wire::Header* header_ = nullptr;
  int error_ = 0;
};

}  // namespace kgate
