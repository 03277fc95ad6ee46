// Contexts, their belongings, and faults as driver codes.
#include "vgpu/driver_state.h"

#include <algorithm>
#include <cstring>
#include <ctime>

#include "vgpu/driver_capture.h"
#include "vgpu/driver_graph.h"

namespace kgate::vgpu {

namespace {

template <size_t n>
void fill(char (&field)[n], std::string_view text) {
  size_t length = std::min(text.size(), n - 1);
  std::memcpy(field, text.data(), length);
  field[length] = '\0';
}

}  // namespace

State::State() = default;
State::~State() = default;

State& state() {
  static State* const instance = new State;
  return *instance;
}

std::vector<CUcontext>& context_stack() {
  thread_local std::vector<CUcontext> stack;
  return stack;
}

CUcontext current_handle() {
  const std::vector<CUcontext>& stack = context_stack();
  return stack.empty() ? nullptr : stack.back();
}

uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

CUcontext State::create_context(unsigned flags) {
  if (contexts.empty()) {
    auto read = read_settings();
    if (!read) {
      record_fault(*this, CUDA_ERROR_INVALID_VALUE, "settings", read.failure().where + ": " + read.failure().what);
      return nullptr;
    }
    settings = *read;
    try {
      memory = std::make_unique<DeviceMemory>(settings.memory);
    } catch (const Error& error) {
      record_fault(*this, CUDA_ERROR_INVALID_VALUE, "settings", error.what());
      return nullptr;
    }
  }
  auto context = std::make_unique<Context>();
  context->id = next_context++;
  context->flags = flags;
  return contexts.add(std::move(context));
}

void State::destroy_context(CUcontext handle) {
  Context* context = contexts.find(handle);
  if (context == nullptr) return;
  uint32_t id = context->id;
  auto owned = [&](const auto& object) { return object.context == id; };
  events.erase_if(owned);
  std::erase_if(captures, [&](const auto& capture) {
    Stream* origin = streams.find(capture->origin);
    return origin == nullptr || origin->context == id;
  });
  executables.erase_if(owned);
  graphs.erase_if(owned);
  nodes.erase_if(owned);
  streams.erase_if(owned);
  functions.erase_if(owned);
  modules.erase_if(owned);
  std::erase_if(allocations, [&](const auto& item) {
    if (item.second != id) return false;
    memory->free(item.first);
    return true;
  });
  contexts.erase(handle);
  if (!contexts.empty()) return;
  for (const auto& [number, memory_of] : physical) DeviceMemory::end_physical(memory_of.pages, memory_of.bytes);
  physical.clear();
  mapped.clear();
  memory.reset();
}

CUresult result_of(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::out_of_bounds: return CUDA_ERROR_ILLEGAL_ADDRESS;
    case FaultKind::misaligned: return CUDA_ERROR_MISALIGNED_ADDRESS;
    case FaultKind::unsupported: return CUDA_ERROR_NOT_SUPPORTED;
    case FaultKind::barrier_misuse: return CUDA_ERROR_LAUNCH_FAILED;
    case FaultKind::deadlock: return CUDA_ERROR_LAUNCH_FAILED;
    case FaultKind::budget_exhausted: return CUDA_ERROR_LAUNCH_TIMEOUT;
    case FaultKind::trap:
      return fault.statement.find("__assertfail") != std::string::npos ||
                     fault.message.find("assert") != std::string::npos
                 ? CUDA_ERROR_ASSERT
                 : CUDA_ERROR_LAUNCH_FAILED;
    case FaultKind::bad_launch: return CUDA_ERROR_INVALID_VALUE;
    case FaultKind::illegal_instruction: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
  }
  return CUDA_ERROR_UNKNOWN;
}

void record_fault(State& state, CUresult code, const Fault& fault) {
  kgate_vgpu_fault& out = state.fault = {};
  out.code = code;
  out.line = fault.line;
  out.address = fault.address;
  const uint32_t block[] = {fault.block.x, fault.block.y, fault.block.z};
  const uint32_t thread[] = {fault.thread.x, fault.thread.y, fault.thread.z};
  std::copy_n(block, 3, out.block);
  std::copy_n(thread, 3, out.thread);
  fill(out.kind, fault_name(fault.kind));
  fill(out.entry, fault.entry);
  fill(out.message, fault.message);
  fill(out.statement, fault.statement);
  state.has_fault = true;
}

void record_fault(State& state, CUresult code, std::string_view kind, std::string_view message, uint32_t line) {
  kgate_vgpu_fault& out = state.fault = {};
  out.code = code;
  out.line = line;
  fill(out.kind, kind);
  fill(out.message, message);
  state.has_fault = true;
}

}  // namespace kgate::vgpu
