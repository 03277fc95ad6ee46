// Loading and launching: .version and .target checked, globals placed in device memory, entries decoded when first
// launched, launch extents validated, the host's floating-point mode set for the launch and restored after it.
#include <algorithm>
#include <cstring>
#include <map>

#include "support/text.h"
#include "vgpu/decode.h"
#include "vgpu/device_memory.h"
#include "vgpu/machine.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace kgate::vgpu {

namespace {

constexpr int kNewestMajor = 9, kNewestMinor = 3;  // of .version
constexpr uint32_t kMostShared = 232448;           // bytes a block on sm_90 may have

// A host program built with fast math leaves flush-to-zero on; kernels must not inherit it.
class DefaultFloatMode {
 public:
#if defined(__SSE__)
  DefaultFloatMode() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~DefaultFloatMode() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
#else
  DefaultFloatMode() { std::fegetenv(&saved_), std::fesetenv(FE_DFL_ENV); }
  ~DefaultFloatMode() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_;
#endif
};

}  // namespace

class Machine final : public Program {
 public:
  Machine(ptx::Module module, DeviceMemory& memory) : module_(std::move(module)), memory_(memory) {}
  ~Machine() override {
    for (uint64_t address : addresses_) {
      if (address != 0) memory_.free(address);
    }
  }

  std::optional<Failure> prepare() {
    if (auto failure = place_globals()) return failure;
    for (const ptx::Function& function : module_.functions) {
      if (!function.is_entry || function.is_declaration) continue;
      FunctionInfo info;
      info.name = function.name;
      for (const ptx::Param& param : function.params) info.params.push_back({param.offset, param.size, param.align});
      info.param_bytes = function.param_bytes;
      info.static_shared = function.static_shared;
      info.local_bytes = function.local_bytes;
      info.reqntid = function.reqntid;
      if (function.reqntid)
        info.max_threads = static_cast<uint32_t>(std::min<uint64_t>(1024, function.reqntid->count()));
      else if (function.maxntid)
        info.max_threads = static_cast<uint32_t>(std::min<uint64_t>(1024, function.maxntid->count()));
      infos_.push_back(std::move(info));
      entries_.push_back(&function);
    }
    codes_.resize(entries_.size());
    return std::nullopt;
  }

  const std::vector<FunctionInfo>& entries() const override { return infos_; }

  std::optional<DeviceMemory::Range> global(std::string_view name) const override {
    for (size_t i = 0; i < module_.globals.size(); ++i) {
      if (module_.globals[i].name == name && addresses_[i] != 0)
        return DeviceMemory::Range{addresses_[i], module_.globals[i].size};
    }
    return std::nullopt;
  }

  LaunchOutcome launch(size_t entry_index, const LaunchRequest& request) override {
    LaunchOutcome outcome;
    outcome.fault = refuse(entry_index, request);
    if (outcome.fault) return outcome;
    std::unique_ptr<Code>& code = codes_[entry_index];
    if (!code) code = Decoder(module_, *entries_[entry_index], addresses_).run();
    std::vector<DeviceMemory::Range> ranges;
    for (const auto& [base, size] : memory_.state_->live) {
      if (!ranges.empty() && ranges.back().base + ranges.back().size == base)
        ranges.back().size += size;  // mappings side by side are one memory
      else
        ranges.push_back({base, size});
    }
    DefaultFloatMode mode;
    return run_grid(*code, request, std::move(ranges));
  }

 private:
  std::optional<Failure> place_globals() {
    addresses_.assign(module_.globals.size(), 0);
    for (size_t i = 0; i < module_.globals.size(); ++i) {
      const ptx::Variable& variable = module_.globals[i];
      bool placed = variable.space == ptx::Space::global || variable.space == ptx::Space::constant;
      if (!placed || variable.external || variable.size == 0) continue;
      addresses_[i] = memory_.allocate(variable.size, std::max<uint32_t>(variable.align, 256));
      if (addresses_[i] == 0) {
        return Failure{
            "no device memory for '" + sanitize(variable.name, 80) + "' of " + std::to_string(variable.size) + " bytes",
            "line " + std::to_string(variable.line), ""};
      }
      char* at = reinterpret_cast<char*>(addresses_[i]);
      std::memset(at, 0, variable.size);
      std::memcpy(at, variable.init.data(), variable.init.size());
    }
    for (size_t i = 0; i < module_.globals.size(); ++i) {
      if (auto failure = fill_addresses(i)) return failure;
    }
    return std::nullopt;
  }

  std::optional<Failure> fill_addresses(size_t index) {
    const ptx::Variable& variable = module_.globals[index];
    for (const auto& address : variable.addresses) {
      uint64_t value = 0;
      for (size_t k = 0; k < module_.globals.size(); ++k) {
        if (module_.globals[k].name == address.symbol) value = addresses_[k];
      }
      if (value == 0) {
        return Failure{"the initial value of '" + sanitize(variable.name, 80) + "' needs the address of '" +
                           sanitize(address.symbol, 80) + "', which has none here",
                       "line " + std::to_string(variable.line), ""};
      }
      value += static_cast<uint64_t>(address.addend);
      size_t bytes = std::min<size_t>(8, ptx::type_size(variable.type));
      std::memcpy(reinterpret_cast<char*>(addresses_[index]) + address.offset, &value, bytes);
    }
    return std::nullopt;
  }

  std::optional<Fault> refuse(size_t entry_index, const LaunchRequest& request) const {
    Fault fault{FaultKind::bad_launch, "", "", 0, "", 0, {0, 0, 0}, {0, 0, 0}};
    auto because = [&](std::string why) {
      fault.message = std::move(why);
      return std::optional<Fault>(fault);
    };
    if (entry_index >= entries_.size()) return because("no such entry");
    const ptx::Function& entry = *entries_[entry_index];
    const FunctionInfo& info = infos_[entry_index];
    fault.entry = entry.name;
    fault.line = static_cast<uint32_t>(entry.line);
    const Dim3 &grid = request.grid, &block = request.block;
    uint64_t threads = block.count();
    auto shown = [](const Dim3& d) {
      return std::to_string(d.x) + "x" + std::to_string(d.y) + "x" + std::to_string(d.z);
    };
    if (grid.count() == 0 || threads == 0) return because("an empty grid or block");
    if (grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535)
      return because("grid " + shown(grid) + " is too large");
    if (block.x > 1024 || block.y > 1024 || block.z > 64 || threads > 1024)
      return because("block " + shown(block) + " has more threads than a block may have");
    if (entry.reqntid && !(*entry.reqntid == block))
      return because("block " + shown(block) + ", but the entry requires " + shown(*entry.reqntid));
    if (threads > info.max_threads) {
      return because("block " + shown(block) + " has more than the entry's " + std::to_string(info.max_threads) +
                     " threads");
    }
    if (entry.reqnctapercluster && entry.reqnctapercluster->count() > 1)
      return because("clusters of more than one block are not executed here");
    if (uint64_t{request.dynamic_shared} + entry.static_shared > kMostShared) {
      return because(std::to_string(uint64_t{request.dynamic_shared} + entry.static_shared) +
                     " bytes of shared memory a block, of at most " + std::to_string(kMostShared));
    }
    if (request.params.size() != entry.param_bytes) {
      return because(std::to_string(request.params.size()) + " bytes of parameters, but the entry takes " +
                     std::to_string(entry.param_bytes));
    }
    return std::nullopt;
  }

  ptx::Module module_;
  DeviceMemory& memory_;
  std::vector<uint64_t> addresses_;  // of module_.globals
  std::vector<const ptx::Function*> entries_;
  std::vector<FunctionInfo> infos_;
  std::vector<std::unique_ptr<Code>> codes_;
};

Result<std::unique_ptr<Program>> Program::load(std::string_view text, DeviceMemory& memory) {
  auto module = ptx::parse(text);
  if (!module) return module.failure();
  bool newer = module->version_major > kNewestMajor ||
               (module->version_major == kNewestMajor && module->version_minor > kNewestMinor);
  if (newer) {
    return Failure{"Unsupported .version " + module->version + "; the newest known here is " +
                       std::to_string(kNewestMajor) + "." + std::to_string(kNewestMinor),
                   "line 1", ""};
  }
  auto machine = std::make_unique<Machine>(std::move(*module), memory);
  if (auto failure = machine->prepare()) return std::move(*failure);
  return std::unique_ptr<Program>(std::move(machine));
}

const char* fault_name(FaultKind kind) {
  switch (kind) {
    case FaultKind::out_of_bounds:
      return "out of bounds";
    case FaultKind::misaligned:
      return "misaligned";
    case FaultKind::unsupported:
      return "unsupported";
    case FaultKind::barrier_misuse:
      return "barrier misuse";
    case FaultKind::deadlock:
      return "deadlock";
    case FaultKind::budget_exhausted:
      return "budget exhausted";
    case FaultKind::trap:
      return "trap";
    case FaultKind::bad_launch:
      return "bad launch";
    case FaultKind::illegal_instruction:
      return "illegal instruction";
  }
  return "unknown";
}

Counters& Counters::operator+=(const Counters& other) {
  warp_instructions += other.warp_instructions;
  thread_instructions += other.thread_instructions;
  global_load_sectors += other.global_load_sectors;
  global_store_sectors += other.global_store_sectors;
  global_requests += other.global_requests;
  bank_conflicts += other.bank_conflicts;
  divergent_branches += other.divergent_branches;
  barriers += other.barriers;
  atomics += other.atomics;
  return *this;
}

}  // namespace kgate::vgpu
