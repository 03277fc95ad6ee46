#include "replay/worker_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "replay/live_samples.h"
#include "replay/sizing.h"
#include "support/text.h"
#include "worker/protocol.h"

namespace kgate {

namespace {

constexpr uint64_t kMaxRecordBytes = uint64_t{1} << 30;
constexpr size_t kOutputBytes = 64 * 1024;
constexpr uint64_t kOpenFiles = 4096;

Failure errno_failure(const std::string& what) { return {what + ": " + std::strerror(errno), {}, {}}; }

}  // namespace

Result<Fd> sealed_memfd(const std::string& name, size_t bytes) {
  Fd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return errno_failure("cannot create shared memory");
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return errno_failure("cannot seal shared memory");
  return fd;
}

std::string worker_program() {
  const char* program = std::getenv("KGATE_WORKER");
  return program && *program ? program : self_directory() + "/kgate-worker";
}

std::string WorkerProcess::last_words() const {
  std::string text(kOutputBytes, '\0');
  ssize_t n = output ? ::pread(output.get(), text.data(), text.size(), 0) : 0;
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  text.resize(std::strlen(text.c_str()));
  std::string_view tail = trim(text);
  constexpr size_t kTail = 300;
  if (tail.size() > kTail) tail.remove_prefix(tail.size() - kTail);
  return sanitize(tail, kTail);
}

WorkerSizes worker_sizes(const ReplayPlan& plan, const Workload& workload, bool is_virtual) {
  WorkerSizes sizes;
  sizes.record_bytes = record_bytes(plan, workload, is_virtual);
  if (sizes.record_bytes > kMaxRecordBytes)
    throw Error(Exit::usage,
                "the replay would make " + format_bytes(static_cast<double>(sizes.record_bytes)) +
                    " of records, limit " + format_bytes(kMaxRecordBytes),
                {}, "ask for fewer requests a round, or fewer pairs");
  for (const auto& region : readback_layout(plan, workload))
    sizes.readback_bytes = region.offset + 2 * region.guard + region.bytes;
  if (plan.mode == ReplayMode::live) sizes.readback_bytes = live_bytes(plan.live_blocks);
  uint64_t memory = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  if (sizes.readback_bytes > memory / 2)
    throw Error(Exit::environment,
                "reading the results back takes " + format_bytes(static_cast<double>(sizes.readback_bytes)) +
                    " of host memory, this machine has " + format_bytes(static_cast<double>(memory)),
                {}, "use smaller shapes for the comparison of numbers");
  return sizes;
}

Result<WorkerProcess> spawn_worker(const WorkerSizes& sizes) {
  WorkerProcess process;
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return errno_failure("socketpair");
  process.control = Fd(sockets[0]);
  Fd theirs(sockets[1]);
  auto records = sealed_memfd("kgate-records", sizes.record_bytes);
  if (!records) return records.failure();
  process.records = std::move(*records);
  auto output = sealed_memfd("kgate-worker-output", kOutputBytes);
  if (!output) return output.failure();
  process.output = std::move(*output);

  Command command;
  command.argv = {worker_program()};
  command.descriptors = {{theirs.get(), worker::kControlFd},
                         {process.records.get(), worker::kRecordFd},
                         {process.output.get(), 1},
                         {process.output.get(), 2}};
  if (sizes.readback_bytes > 0) {
    auto readback = sealed_memfd("kgate-readback", sizes.readback_bytes);
    if (!readback) return readback.failure();
    process.readback = std::move(*readback);
    command.descriptors.emplace_back(process.readback.get(), worker::kReadbackFd);
  }
  command.limits.cpu_seconds = sizes.cpu_seconds;
  command.limits.open_files = kOpenFiles;
  command.limits.fixed_addresses = sizes.fixed_addresses;
  auto child = Child::spawn(command);
  if (!child) return child.failure();
  process.child.emplace(std::move(*child));
  return process;
}

std::string mapped_library(pid_t pid, const std::string& library) {
  auto maps = read_file("/proc/" + std::to_string(pid) + "/maps", 64 << 20);
  if (!maps) return {};
  for (std::string_view line : split_lines(*maps)) {
    size_t slash = line.find('/');
    if (slash == std::string_view::npos) continue;
    std::string_view path = line.substr(slash), name = path.substr(path.rfind('/') + 1);
    // libcuda.so.1 is a link to libcuda.so.580.65.06: the mapping shows the latter.
    std::string_view stem = std::string_view(library).substr(0, library.find(".so"));
    if (name == library || (name.starts_with(stem) && name.substr(stem.size()).starts_with(".so")))
      return std::string(path);
  }
  return {};
}

}  // namespace kgate
