// Thread instructions a second of the virtual GPU on one core, with every check on: the production softmax and rmsnorm.

#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "support/fd.h"
#include "vgpu/machine.h"

namespace kgate::vgpu {
namespace {

constexpr uint32_t kRows = 256, kCols = 1024;

void run(benchmark::State& state, const char* file, const std::vector<uint64_t>& pointers_first,
         std::vector<std::byte> tail) {
  DeviceMemory memory(uint64_t{256} << 20);
  auto ptx = read_file(std::string(KGATE_SOURCE_DIR "/workloads/kernels/") + file).value_or_throw(Exit::bad_input);
  auto program = Program::load(ptx, memory).value_or_throw(Exit::bad_input);
  std::vector<std::byte> params;
  for (uint64_t bytes : pointers_first) {
    uint64_t address = memory.allocate(bytes);
    auto* data = reinterpret_cast<float*>(address);
    for (uint64_t i = 0; i < bytes / sizeof(float); ++i) data[i] = static_cast<float>(i % 97) / 97.0f;
    params.insert(params.end(), reinterpret_cast<std::byte*>(&address), reinterpret_cast<std::byte*>(&address) + 8);
  }
  params.insert(params.end(), tail.begin(), tail.end());
  LaunchRequest request;
  request.grid = {kRows, 1, 1};
  request.block = {128, 1, 1};
  request.params = params;
  uint64_t instructions = 0;
  for (auto _ : state) {
    LaunchOutcome outcome = program->launch(0, request);
    if (outcome.fault) {
      state.SkipWithError(outcome.fault->message.c_str());
      return;
    }
    instructions += outcome.counters.thread_instructions;
  }
  state.counters["thread_instructions/s"] =
      benchmark::Counter(static_cast<double>(instructions), benchmark::Counter::kIsRate);
}

template <typename T>
void append(std::vector<std::byte>& bytes, T value) {
  size_t at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

void softmax(benchmark::State& state) {
  std::vector<std::byte> tail;
  append(tail, int32_t{kCols});
  run(state, "softmax.ptx", {kRows * kCols * 4ull, kRows * kCols * 4ull}, tail);
}

void rmsnorm(benchmark::State& state) {
  std::vector<std::byte> tail;
  append(tail, int32_t{kCols});
  append(tail, 1e-5f);
  run(state, "rmsnorm.ptx", {kRows * kCols * 4ull, kRows * kCols * 4ull, kCols * 4ull}, tail);
}

BENCHMARK(softmax)->Unit(benchmark::kMillisecond);
BENCHMARK(rmsnorm)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kgate::vgpu

BENCHMARK_MAIN();
