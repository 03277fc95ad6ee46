// The worker's side of the record memfd: a pre-touched arena. No allocation, no lock, no system call on the hot path:
// each thread stages into its own block and merges between rounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "support/fd.h"
#include "trace/wire.h"

namespace kgate {

class RecordWriter {
 public:
  // Maps and touches the whole memfd of `bytes`.
  static Result<std::unique_ptr<RecordWriter>> open(const Fd& memfd, size_t bytes);

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

 private:
  RecordWriter() = default;
  Mapping mapping_;
};

}  // namespace kgate
