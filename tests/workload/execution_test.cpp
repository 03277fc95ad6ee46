// The shipped workloads compute: a request runs on the virtual machine without a fault, within the size that their
// comments promise.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "vgpu/machine.h"
#include "workload/build.h"
#include "workload/content.h"

namespace kgate {
namespace {

class Executor {
 public:
  explicit Executor(const Workload& workload) : workload_(workload) {
    for (const WorkloadModule& module : workload.modules)
      programs_.push_back(vgpu::Program::load(module.image, memory_).value_or_throw(Exit::internal));
    for (const Buffer& buffer : workload.buffers) {
      addresses_.push_back(memory_.allocate(buffer.bytes, buffer.align));
      materialise(buffer.content, {at(addresses_.back()), buffer.bytes});
    }
  }

  // Thread instructions of a request. Fails the test on a fault.
  uint64_t run(const Request& request) {
    uint64_t instructions = 0;
    for (uint32_t c : request.calls) {
      const Call& call = workload_.calls[c];
      if (call.kind == CallKind::launch) instructions += launch(workload_.launches[call.launch]);
      if (call.kind == CallKind::copy)
        std::memcpy(at(addresses_[call.dst] + call.dst_offset), at(addresses_[call.src] + call.src_offset), call.bytes);
    }
    return instructions;
  }

  std::vector<float> floats(const std::string& name) const {
    for (size_t i = 0; i < workload_.buffers.size(); ++i) {
      if (workload_.buffers[i].name != name) continue;
      std::vector<float> values(workload_.buffers[i].bytes / 4);
      std::memcpy(values.data(), at(addresses_[i]), values.size() * 4);
      return values;
    }
    ADD_FAILURE() << "no buffer " << name;
    return {};
  }

 private:
  static std::byte* at(uint64_t address) { return reinterpret_cast<std::byte*>(address); }

  uint64_t launch(const LaunchSpec& launch) {
    const WorkloadKernel& kernel = workload_.kernels[launch.kernel];
    vgpu::Program& program = *programs_[kernel.module];
    std::vector<std::byte> params = launch.params;
    for (const Relocation& r : launch.relocations) {
      const uint64_t address = addresses_[r.buffer] + static_cast<uint64_t>(r.delta);
      std::memcpy(params.data() + r.param_offset, &address, sizeof address);
    }
    size_t entry = 0;
    while (program.entries()[entry].name != kernel.entry) ++entry;
    const auto outcome = program.launch(entry, {launch.grid, launch.block, launch.shared, params, 0});
    if (outcome.fault) ADD_FAILURE() << kernel.entry << ": " << outcome.fault->message;
    return outcome.counters.thread_instructions;
  }

  const Workload& workload_;
  vgpu::DeviceMemory memory_{uint64_t{256} << 20};
  std::vector<std::unique_ptr<vgpu::Program>> programs_;
  std::vector<uint64_t> addresses_;
};

// Of the first forty, which hold every value of the varied names.
uint64_t largest_request(Executor& executor, const Workload& workload) {
  uint64_t largest = 0;
  for (size_t r = 0; r < std::min<size_t>(40, workload.requests.size()); ++r)
    largest = std::max(largest, executor.run(workload.requests[r]));
  return largest;
}

void expect_distributions(const std::vector<float>& values, size_t rows, size_t cols) {
  for (size_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (size_t c = 0; c < cols; ++c) sum += values[row * cols + c];
    EXPECT_NEAR(sum, 1, 1e-5) << "row " << row;
  }
}

Workload shipped(const std::string& name) {
  return build_workload(std::filesystem::path(KGATE_SOURCE_DIR) / "workloads" / name);
}

TEST(Execution, decode_stays_finite_and_below_two_million_instructions) {
  const Workload w = shipped("decode.yaml");
  Executor executor(w);
  const uint64_t largest = largest_request(executor, w);
  EXPECT_GT(largest, 500'000u);
  EXPECT_LT(largest, 2'000'000u);
  for (const char* name : {"state[0]", "state[1]", "normed[0]", "normed[1]"})
    for (float value : executor.floats(name)) ASSERT_TRUE(std::isfinite(value) && std::abs(value) < 1000) << name;
}

TEST(Execution, demo_ends_in_distributions) {
  const Workload w = shipped("demo.yaml");
  Executor executor(w);
  EXPECT_LT(largest_request(executor, w), 700'000u);
  const Call& softmax = w.calls[w.calls.size() - 2];
  int32_t cols = 0;
  std::memcpy(&cols, w.launches[softmax.launch].params.data() + 16, sizeof cols);
  expect_distributions(executor.floats("probabilities"), 2, static_cast<size_t>(cols));
}

TEST(Execution, tiny_and_chat_run) {
  const Workload tiny = shipped("tiny.yaml");
  Executor executor(tiny);
  executor.run(tiny.requests[0]);
  expect_distributions(executor.floats("out"), 2, 33);
  const Workload chat = shipped("chat.yaml");
  Executor other(chat);
  EXPECT_LT(largest_request(other, chat), 1'000'000u);
}

}  // namespace
}  // namespace kgate
