// Driver: modules and functions.
#include <cstring>

#include "gpu/driver_state.h"
#include "support/text.h"

namespace kgate::gpu {

namespace {

constexpr size_t kLogBytes = 16 << 10;

// Cubins and fatbins carry their own length; anything else is PTX text, which the driver reads up to a NUL.
bool is_binary(std::span<const std::byte> image) {
  static constexpr unsigned char kMagics[][4] = {
      {0x7f, 'E', 'L', 'F'}, {0x50, 0xed, 0x55, 0xba} /* fatbin */, {0xb1, 0x43, 0x62, 0x46} /* its wrapper */};
  if (image.size() < 4) return false;
  for (const auto& magic : kMagics) {
    if (std::memcmp(image.data(), magic, 4) == 0) return true;
  }
  return false;
}

}  // namespace

CUmodule Driver::load_module(std::span<const std::byte> image) {
  std::string text;
  const void* data = image.data();
  if (!is_binary(image)) {
    text.assign(reinterpret_cast<const char*>(image.data()), image.size());
    data = text.c_str();
  }
  std::string log(kLogBytes, '\0');
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(kLogBytes)};
  CUmodule module = nullptr;
  if (CUresult code = state_->calls.cuModuleLoadDataEx(&module, data, 2, options, values); code != CUDA_SUCCESS) {
    log.resize(strnlen(log.data(), log.size()));
    state_->fail(code, "cuModuleLoadDataEx", std::string(trim(log)));
  }
  return module;
}

void Driver::unload_module(CUmodule module) { state_->check(state_->calls.cuModuleUnload(module), "cuModuleUnload"); }

CUfunction Driver::function(CUmodule module, const std::string& name) {
  CUfunction function = nullptr;
  CUresult code = state_->calls.cuModuleGetFunction(&function, module, name.c_str());
  if (code == CUDA_ERROR_NOT_FOUND) {
    state_->fail(code, "cuModuleGetFunction", "no entry named " + sanitize(name, 120) + " in the module");
  }
  state_->check(code, "cuModuleGetFunction");
  return function;
}

int Driver::attribute(CUfunction function, CUfunction_attribute attribute) {
  int value = 0;
  state_->check(state_->calls.cuFuncGetAttribute(&value, attribute, function), "cuFuncGetAttribute");
  return value;
}

void Driver::allow_dynamic_shared(CUfunction function, uint32_t bytes) {
  constexpr auto kLimit = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  if (static_cast<int64_t>(bytes) <= attribute(function, kLimit)) return;
  state_->check(state_->calls.cuFuncSetAttribute(function, kLimit, static_cast<int>(bytes)), "cuFuncSetAttribute");
}

int Driver::occupancy_blocks_per_sm(CUfunction function, int block_threads, size_t shared) {
  constexpr const char* kCall = "cuOccupancyMaxActiveBlocksPerMultiprocessor";
  if (state_->calls.cuOccupancyMaxActiveBlocksPerMultiprocessor == nullptr) {
    state_->fail(CUDA_ERROR_NOT_SUPPORTED, kCall,
                 state_->is_virtual ? "the virtual GPU allocates no registers, so it has no occupancy" : "");
  }
  int blocks = 0;
  state_->check(state_->calls.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, block_threads, shared),
                kCall);
  return blocks;
}

std::optional<std::vector<std::pair<size_t, size_t>>> Driver::parameters(CUfunction function) {
  if (state_->calls.cuFuncGetParamInfo == nullptr) return std::nullopt;
  std::vector<std::pair<size_t, size_t>> all;
  for (;;) {
    size_t offset = 0, size = 0;
    CUresult code = state_->calls.cuFuncGetParamInfo(function, all.size(), &offset, &size);
    if (code == CUDA_ERROR_INVALID_VALUE) return all;  // past the last one
    state_->check(code, "cuFuncGetParamInfo");
    all.emplace_back(offset, size);
  }
}

}  // namespace kgate::gpu
