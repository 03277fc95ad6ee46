// The two files of a recording (workload/recording.h), written by any thread. Data goes first, then the header that
// publishes it, so that a process killed in between leaves whole records.
//
// The files live in somebody else's process, which may close descriptors that it did not open, open others under the
// same numbers, and limit the size of files: nothing is written to a file that is not ours, and no signal is raised.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "support/error.h"
#include "support/fd.h"
#include "workload/recording.h"

namespace kgate::record {

class OwnFile {
 public:
  static Result<std::unique_ptr<OwnFile>> create(const std::string& path);

  // All of it, or false and error().
  bool write(uint64_t position, const void* bytes, size_t size);
  int error() const { return error_; }
  const std::string& path() const { return path_; }

 private:
  bool is_ours() const;
  bool find_again();

  std::string path_;
  Fd file_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::mutex mutex_;  // of file_
  std::atomic<int> error_{0};
};

class Output {
 public:
  // STEM is FOLDER/PID, or FOLDER/PID.2 and so on when a process replaced itself by another program.
  static Result<std::unique_ptr<Output>> create(const std::string& folder, uint32_t process);

  const std::string& stem() const { return stem_; }

  // Whole records, one or many.
  void append(const void* records, size_t size);
  // Room in STEM.blobs that the caller fills with write_blob().
  uint64_t reserve_blob(uint64_t bytes) { return blob_bytes_.fetch_add((bytes + 7) / 8 * 8); }
  bool write_blob(uint64_t position, const void* bytes, size_t size) { return blobs_->write(position, bytes, size); }
  // Nothing but what the disk does not take is missing; a blob that could not be written is empty.
  recording::BlobRef add_blob(const void* bytes, size_t size);

  // What belongs to the slice is on file. False: something is not, and error() says why.
  bool complete();
  int error() const { return records_->error() ? records_->error() : blobs_->error(); }

 private:
  std::string stem_;
  std::unique_ptr<OwnFile> records_, blobs_;
  std::mutex mutex_;  // of header_ and the order of appends
  recording::FileHeader header_{};
  std::atomic<uint64_t> blob_bytes_{0};
};

}  // namespace kgate::record
