// --device resolved. The real driver is tried in a forked child with a time limit: cuInit can crash, hang or take a
// context on a sick machine, and the process that plans and judges must not hold one.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "gpu/driver.h"
#include "gpu/driver_calls.h"
#include "gpu/vgpu_abi.h"
#include "support/fd.h"
#include "support/process.h"
#include "support/text.h"

namespace kgate::gpu {

namespace {

constexpr int kProbeTimeoutMs = 60'000;  // cuInit without persistence mode takes seconds a GPU
constexpr const char* kNoGpuHint = "install or repair the NVIDIA driver (see `nvidia-smi`), or use --device virtual";

// Sent through a pipe: plain data.
struct ProbeAnswer {
  int devices;
  char reason[400];  // empty: usable
  char name[128];    // from here on: of the wanted device, all zero when it does not exist
  unsigned char uuid[16];
  int cc_major, cc_minor, sm_count, driver_version, max_shared_optin, max_threads;
  uint64_t total_memory;
};

std::string cuda_library() {
  const char* given = std::getenv("KGATE_CUDA_LIB");
  return given != nullptr && *given != '\0' ? given : "libcuda.so.1";
}

// Both run in the child.
void read_device(const DriverCalls& calls, int ordinal, ProbeAnswer& answer) {
  CUdevice device = 0;
  if (calls.cuDeviceGet(&device, ordinal) != CUDA_SUCCESS) return;
  auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    calls.cuDeviceGetAttribute(&value, which, device);
    return value;
  };
  calls.cuDeviceGetName(answer.name, sizeof answer.name - 1, device);
  CUuuid uuid{};
  if (calls.cuDeviceGetUuid_v2 && calls.cuDeviceGetUuid_v2(&uuid, device) == CUDA_SUCCESS)
    std::memcpy(answer.uuid, &uuid, sizeof answer.uuid);
  size_t total = 0;
  calls.cuDeviceTotalMem_v2(&total, device);
  answer.total_memory = total;
  calls.cuDriverGetVersion(&answer.driver_version);
  answer.cc_major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  answer.cc_minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  answer.sm_count = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  answer.max_threads = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  answer.max_shared_optin = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
}

ProbeAnswer probe_here(const std::string& name, int ordinal) {
  ProbeAnswer answer{};
  auto refuse = [&](const std::string& reason) { reason.copy(answer.reason, sizeof answer.reason - 1); };
  auto library = load_library(name);
  if (!library) {
    refuse(library.failure().what);
    return answer;
  }
  const char* call = "cuInit";
  CUresult code = library->calls.cuInit(0);
  if (code == CUDA_SUCCESS) {
    call = "cuDeviceGetCount";
    code = library->calls.cuDeviceGetCount(&answer.devices);
  }
  if (code != CUDA_SUCCESS) {
    const char* error = result_name(code);
    std::string text = name + ": " + call + ": " + (error != nullptr ? error : "error");
    text += " (" + std::to_string(code) + ")";
    auto read_fault = reinterpret_cast<kgate_vgpu_last_fault_fn>(dlsym(library->handle, "kgate_vgpu_last_fault"));
    kgate_vgpu_fault fault{};
    if (read_fault != nullptr && read_fault(&fault, sizeof fault) == 1) text += std::string(": ") + fault.message;
    refuse(text);
  } else if (answer.devices <= 0) {
    refuse(name + " loads, but there is no device");
  } else {
    read_device(library->calls, ordinal, answer);
  }
  return answer;
}

// The child's answer, or the reason why there is none.
ProbeAnswer read_answer(int fd, pid_t child) {
  ProbeAnswer answer{};
  size_t have = 0;
  pollfd ready{fd, POLLIN, 0};
  while (have < sizeof answer) {
    int n = poll(&ready, 1, kProbeTimeoutMs);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    ssize_t got = read(fd, reinterpret_cast<char*>(&answer) + have, sizeof answer - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  bool whole = have == sizeof answer;
  kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (whole) {
    answer.reason[sizeof answer.reason - 1] = '\0';
    return answer;
  }
  ProbeAnswer none{};
  std::string reason = "the driver did not answer a probe in " + std::to_string(kProbeTimeoutMs / 1000) + " s";
  if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) {
    reason = std::string("the driver crashed while it was probed (") + strsignal(WTERMSIG(status)) + ")";
  } else if (WIFEXITED(status)) {
    reason = "the driver ended the process that probed it (exit " + std::to_string(WEXITSTATUS(status)) + ")";
  }
  reason.copy(none.reason, sizeof none.reason - 1);
  return none;
}

ProbeAnswer probe(const std::string& library, int ordinal) {
  ProbeAnswer failed{};
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    std::string("cannot make a pipe to probe the driver").copy(failed.reason, sizeof failed.reason - 1);
    return failed;
  }
  Fd reader(ends[0]), writer(ends[1]);
  pid_t child = fork();
  if (child < 0) {
    std::string("cannot fork to probe the driver").copy(failed.reason, sizeof failed.reason - 1);
    return failed;
  }
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ProbeAnswer answer = probe_here(library, ordinal);
    ssize_t written = write(writer.get(), &answer, sizeof answer);  // smaller than PIPE_BUF: all or nothing
    _exit(written == sizeof answer ? 0 : 1);
  }
  writer.reset();
  return read_answer(reader.get(), child);
}

DeviceProperties properties_of(const ProbeAnswer& answer, DeviceKind kind, int ordinal, const std::string& library) {
  DeviceProperties properties;
  properties.kind = kind;
  properties.ordinal = ordinal;
  properties.name = std::string(answer.name, strnlen(answer.name, sizeof answer.name));
  static constexpr char kDigits[] = "0123456789abcdef";
  bool known = std::any_of(std::begin(answer.uuid), std::end(answer.uuid), [](auto byte) { return byte != 0; });
  for (unsigned char byte : answer.uuid) {
    if (!known) break;
    properties.uuid += kDigits[byte >> 4];
    properties.uuid += kDigits[byte & 15];
  }
  properties.cc_major = answer.cc_major;
  properties.cc_minor = answer.cc_minor;
  properties.sm_count = answer.sm_count;
  properties.driver_version = answer.driver_version;
  properties.total_memory = properties.free_memory = answer.total_memory;
  properties.max_shared_per_block_optin = answer.max_shared_optin;
  properties.max_threads_per_block = answer.max_threads;
  properties.library = library;
  return properties;
}

Result<DeviceChoice> virtual_choice(std::string why) {
  std::string path = virtual_library_path();
  if (access(path.c_str(), R_OK) != 0) {
    return Failure{"the virtual GPU's library is not there", path,
                   "set KGATE_VGPU_LIB to the path of libkgate_vgpu.so, or install kgate as a whole"};
  }
  ProbeAnswer answer = probe(path, 0);
  if (answer.reason[0] != '\0') {
    return Failure{answer.reason, path, "check KGATE_VGPU_*, else reinstall kgate: the virtual GPU does not start"};
  }
  return DeviceChoice{DeviceKind::virtual_gpu, 0, path, std::move(why),
                      properties_of(answer, DeviceKind::virtual_gpu, 0, path)};
}

// "gpu" -> 0, "gpu:3" -> 3; nullopt for anything else.
std::optional<int> gpu_ordinal(std::string_view option) {
  if (option == "gpu") return 0;
  if (!option.starts_with("gpu:")) return std::nullopt;
  option.remove_prefix(4);
  int ordinal = -1;
  auto [end, error] = std::from_chars(option.data(), option.data() + option.size(), ordinal);
  if (error != std::errc{} || end != option.data() + option.size() || ordinal < 0) return std::nullopt;
  return ordinal;
}

}  // namespace

std::string virtual_library_path() {
  if (const char* given = std::getenv("KGATE_VGPU_LIB"); given != nullptr && *given != '\0') return given;
  return (std::filesystem::path(self_directory()) / "../lib/libkgate_vgpu.so").lexically_normal().string();
}

Result<DeviceChoice> choose_device(std::string_view option) {
  if (option == "virtual") return virtual_choice("asked for");
  std::optional<int> ordinal = gpu_ordinal(option);
  if (option != "auto" && !ordinal) {
    return Failure{"unknown device '" + sanitize(option, 60) + "'", "--device", "use auto, gpu, gpu:N or virtual"};
  }
  std::string library = cuda_library();
  ProbeAnswer answer = probe(library, ordinal.value_or(0));
  std::string reason = answer.reason;
  if (reason.empty() && ordinal && *ordinal >= answer.devices) {
    reason = "no device " + std::to_string(*ordinal) + ": the driver has " + std::to_string(answer.devices);
  }
  if (reason.empty()) {
    return DeviceChoice{DeviceKind::real, ordinal.value_or(0), library,
                        std::to_string(answer.devices) + (answer.devices == 1 ? " device" : " devices"),
                        properties_of(answer, DeviceKind::real, ordinal.value_or(0), library)};
  }
  if (option == "auto") return virtual_choice(reason);
  return Failure{reason, "--device " + std::string(option), kNoGpuHint};
}

}  // namespace kgate::gpu
