// Driver: initialisation, device properties, and what only the virtual GPU can tell.
#include <cstring>

#include "gpu/driver_state.h"

namespace kgate::gpu {

namespace {

std::string hex(const CUuuid& uuid) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (char byte : uuid.bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// A fixed text field of an ABI struct, which the other side may have filled to the brim.
template <size_t n>
std::string field(const char (&text)[n]) {
  return std::string(text, strnlen(text, n));
}

std::string describe(const Driver::VirtualFault& fault) {
  std::string text = fault.kind + ": " + fault.message;
  if (!fault.entry.empty()) text += " (entry " + fault.entry;
  if (fault.line != 0) text += (fault.entry.empty() ? " (PTX line " : ", PTX line ") + std::to_string(fault.line);
  if (!fault.statement.empty() && fault.line != 0) text += ": " + fault.statement;
  if (!fault.entry.empty() || fault.line != 0) text += ")";
  return text;
}

[[noreturn]] void no_device(const std::string& what, const std::string& where) {
  throw Error(Exit::environment, what, where, "run `nvidia-smi` to see what the driver sees, or use --device virtual");
}

}  // namespace

std::optional<Driver::VirtualFault> Driver::State::last_fault() const {
  kgate_vgpu_fault raw{};
  if (read_fault == nullptr || read_fault(&raw, sizeof raw) != 1) return std::nullopt;
  VirtualFault fault;
  fault.code = raw.code;
  fault.kind = field(raw.kind);
  fault.message = field(raw.message);
  fault.entry = field(raw.entry);
  fault.line = raw.line;
  fault.statement = field(raw.statement);
  fault.address = raw.address;
  fault.block = {raw.block[0], raw.block[1], raw.block[2]};
  fault.thread = {raw.thread[0], raw.thread[1], raw.thread[2]};
  return fault;
}

void Driver::State::fail(CUresult code, const char* call, std::string detail) const {
  const char* name = nullptr;
  if (calls.cuGetErrorName(code, &name) != CUDA_SUCCESS || name == nullptr) name = result_name(code);
  if (detail.empty()) {
    if (auto fault = last_fault(); fault && fault->code == code) detail = describe(*fault);
  }
  throw GpuError(code, call, name != nullptr ? name : "unknown CUresult", std::move(detail));
}

void Driver::initialise(int ordinal, bool blocking_sync) {
  State& s = *state_;
  const DriverCalls& cu = s.calls;
  const std::string& path = s.library.path;
  if (CUresult code = cu.cuInit(0); code != CUDA_SUCCESS) {
    try {
      s.fail(code, "cuInit");
    } catch (const GpuError& error) {
      no_device(error.text, path);
    }
  }
  int count = 0;
  s.check(cu.cuDeviceGetCount(&count), "cuDeviceGetCount");
  if (ordinal < 0 || ordinal >= count) {
    no_device("no device " + std::to_string(ordinal) + ": the driver has " + std::to_string(count), path);
  }
  s.check(cu.cuDeviceGet(&s.device, ordinal), "cuDeviceGet");
  s.check(cu.cuDevicePrimaryCtxSetFlags_v2(s.device, blocking_sync ? CU_CTX_SCHED_BLOCKING_SYNC : CU_CTX_SCHED_AUTO),
          "cuDevicePrimaryCtxSetFlags_v2");
  CUcontext context = nullptr;
  s.check(cu.cuDevicePrimaryCtxRetain(&context, s.device), "cuDevicePrimaryCtxRetain");
  if (s.context != nullptr) cu.cuDevicePrimaryCtxRelease_v2(s.device);  // initialised twice: one reference is enough
  s.context = context;
  make_current();

  DeviceProperties& p = s.properties;
  p.kind = s.is_virtual ? DeviceKind::virtual_gpu : DeviceKind::real;
  p.ordinal = ordinal;
  p.library = path;
  char name[256] = {};
  s.check(cu.cuDeviceGetName(name, sizeof name, s.device), "cuDeviceGetName");
  p.name = field(name);
  CUuuid uuid{};
  if (cu.cuDeviceGetUuid_v2 != nullptr && cu.cuDeviceGetUuid_v2(&uuid, s.device) == CUDA_SUCCESS) p.uuid = hex(uuid);
  auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    s.check(cu.cuDeviceGetAttribute(&value, which, s.device), "cuDeviceGetAttribute");
    return value;
  };
  p.cc_major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  p.cc_minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  p.sm_count = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  p.max_shared_per_block_optin = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  p.max_threads_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  s.check(cu.cuDriverGetVersion(&p.driver_version), "cuDriverGetVersion");
  size_t total = 0, free = 0;
  s.check(cu.cuMemGetInfo_v2(&free, &total), "cuMemGetInfo_v2");
  p.total_memory = total;
  p.free_memory = free;
}

const DeviceProperties& Driver::properties() const { return state_->properties; }

std::optional<Driver::VirtualFault> Driver::last_fault() { return state_->last_fault(); }

std::optional<Driver::VirtualCounters> Driver::last_launch_counters() {
  kgate_vgpu_counters c{};
  if (state_->read_counters == nullptr || state_->read_counters(&c, sizeof c) != 1) return std::nullopt;
  return VirtualCounters{c.launches,
                         c.warp_instructions,
                         c.thread_instructions,
                         c.global_load_sectors,
                         c.global_store_sectors,
                         c.global_requests,
                         c.bank_conflicts,
                         c.divergent_branches,
                         c.barriers,
                         c.atomics};
}

}  // namespace kgate::gpu
