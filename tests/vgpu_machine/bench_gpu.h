// A virtual GPU on the test bench: memory, one program, launches with typed arguments.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "vgpu/machine.h"

namespace kgate::vgpu {

class BenchGpu {
 public:
  explicit BenchGpu(const std::string& ptx, uint64_t capacity = 64 << 20) : memory(capacity) {
    auto loaded = Program::load(ptx, memory);
    if (loaded)
      program = std::move(*loaded);
    else
      ADD_FAILURE() << loaded.failure().where << ": " << loaded.failure().what;
  }

  static std::string kernel_text(const std::string& name) {
    std::ifstream in(std::string(KGATE_SOURCE_DIR) + "/tests/vgpu_machine/kernels/" + name + ".ptx");
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }

  template <class T>
  uint64_t upload(const std::vector<T>& values) {
    uint64_t at = memory.allocate(values.size() * sizeof(T));
    EXPECT_NE(at, 0u);
    std::memcpy(reinterpret_cast<void*>(at), values.data(), values.size() * sizeof(T));
    return at;
  }
  template <class T>
  std::vector<T> download(uint64_t at, size_t count) const {
    std::vector<T> out(count);
    std::memcpy(out.data(), reinterpret_cast<const void*>(at), count * sizeof(T));
    return out;
  }

  size_t index_of(const std::string& entry) const {
    const auto& entries = program->entries();
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].name == entry) return i;
    }
    return entries.size();
  }

  // Arguments are packed as the entry declares them; each must have its parameter's size.
  template <class... Args>
  LaunchOutcome launch(const std::string& entry, Dim3 grid, Dim3 block, uint32_t shared, Args... args) {
    size_t index = index_of(entry);
    EXPECT_LT(index, program->entries().size()) << entry;
    const FunctionInfo& info = program->entries()[index];
    std::vector<std::byte> packed(info.param_bytes);
    size_t at = 0;
    auto add = [&](auto value) {
      ASSERT_LT(at, info.params.size());
      ASSERT_EQ(info.params[at].size, sizeof value);
      std::memcpy(packed.data() + info.params[at++].offset, &value, sizeof value);
    };
    (add(args), ...);
    LaunchRequest request{grid, block, shared, packed, budget};
    return program->launch(index, request);
  }

  DeviceMemory memory;
  std::unique_ptr<Program> program;
  uint64_t budget = 50'000'000;
};

inline void expect_clean(const LaunchOutcome& outcome) {
  if (!outcome.fault) return;
  ADD_FAILURE() << fault_name(outcome.fault->kind) << " at line " << outcome.fault->line << ": "
                << outcome.fault->message << "\n  " << outcome.fault->statement;
}

}  // namespace kgate::vgpu
