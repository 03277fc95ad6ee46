#include "probes/record_output.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace kgate::record {

using namespace recording;

namespace {

constexpr int kHighDescriptor = 700;  // out of the way of applications that count on small numbers

// A write beyond the limit of file sizes raises SIGXFSZ, whose default is to end the process.
class NoSizeSignal {
 public:
  NoSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~NoSizeSignal() {
    if (raised_ && !sigismember(&before_, SIGXFSZ)) {
      const timespec now{};
      sigtimedwait(&signal_, nullptr, &now);
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  void raised() { raised_ = true; }

 private:
  sigset_t signal_, before_;
  bool raised_ = false;
};

}  // namespace

// ---- one file ------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<OwnFile>> OwnFile::create(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return Failure{std::string("cannot create: ") + std::strerror(errno), path, {}};
  auto own = std::make_unique<OwnFile>();
  own->path_ = path;
  const int high = ::fcntl(file.get(), F_DUPFD_CLOEXEC, kHighDescriptor);
  own->file_ = high >= 0 ? Fd(high) : std::move(file);
  struct stat st {};
  if (::fstat(own->file_.get(), &st) != 0) return Failure{std::strerror(errno), path, {}};
  own->device_ = st.st_dev, own->inode_ = st.st_ino;
  return own;
}

bool OwnFile::is_ours() const {
  struct stat st {};
  return ::fstat(file_.get(), &st) == 0 && st.st_dev == device_ && st.st_ino == inode_;
}

bool OwnFile::find_again() {
  if (is_ours()) return true;
  (void)file_.release();
  file_ = Fd(::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (is_ours()) return true;
  error_ = EBADF;
  return false;
}

bool OwnFile::write(uint64_t position, const void* bytes, size_t size) {
  if (error_ != 0) return false;
  int file = -1;
  {
    std::lock_guard lock(mutex_);
    if (!find_again()) return false;
    file = file_.get();
  }
  NoSizeSignal none;
  const auto* from = static_cast<const char*>(bytes);
  while (size != 0) {
    const ssize_t written = ::pwrite(file, from, size, static_cast<off_t>(position));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = written < 0 ? errno : ENOSPC;
      if (error == EFBIG) none.raised();
      if (error != EFAULT) error_ = error;  // the application's own memory, which it must not have asked to copy
      return false;
    }
    from += written, position += static_cast<uint64_t>(written), size -= static_cast<size_t>(written);
  }
  return true;
}

// ---- both ----------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Output>> Output::create(const std::string& folder, uint32_t process) {
  auto output = std::make_unique<Output>();
  output->stem_ = folder + "/" + std::to_string(process);
  for (int number = 2; ::access((output->stem_ + ".kgrec").c_str(), F_OK) == 0; ++number) {
    if (number == 100) return Failure{"cannot create: too many files of this process", output->stem_ + ".kgrec", {}};
    output->stem_ = folder + "/" + std::to_string(process) + "." + std::to_string(number);
  }
  auto records = OwnFile::create(output->stem_ + ".kgrec");
  if (!records) return records.failure();
  output->records_ = std::move(*records);
  auto blobs = OwnFile::create(output->stem_ + ".blobs");
  if (!blobs) return blobs.failure();
  output->blobs_ = std::move(*blobs);
  output->header_ = {kMagic, kVersion, process, 0, 0};
  if (!output->records_->write(0, &output->header_, sizeof(FileHeader)))
    return Failure{std::string("cannot write: ") + std::strerror(output->error()), output->stem_ + ".kgrec",
                   "Make room where temporary files go (TMPDIR)."};
  return output;
}

void Output::append(const void* records, size_t size) {
  std::lock_guard lock(mutex_);
  if (!records_->write(sizeof(FileHeader) + header_.used_bytes, records, size)) return;
  header_.used_bytes += size;
  records_->write(0, &header_, sizeof header_);
}

BlobRef Output::add_blob(const void* bytes, size_t size) {
  const uint64_t at = reserve_blob(size);
  return write_blob(at, bytes, size) ? BlobRef{at, size} : BlobRef{};
}

bool Output::complete() {
  std::lock_guard lock(mutex_);
  if (error() != 0) return false;
  header_.complete = 1;
  return records_->write(0, &header_, sizeof header_);
}

}  // namespace kgate::record
