// A small LLM server to record: two threads decode tokens, each on its own stream with its own KV cache; the weights
// are shared, the state is updated in place, the prompt's embedding comes from the host and the result goes back there.
// It uses the CUDA driver API alone (by the declarations of it in gate/gpu, so that no toolkit is needed), with the
// kernels of workloads/kernels as PTX, so that what is recorded of it also runs on the virtual GPU.
//
//   decode_app KERNELS [--steps N] [--threads N] [--graph] [--scale N] [--quiet]
//
// --graph: a step is a CUDA graph. --scale: the hidden size in units of 32. Prints p50 and p99 of a step's time.
#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gpu/graph_abi.h"

using namespace kgate::gpu;  // names and layouts of CUDA's driver API

namespace {

#define CALLS(X)                                                                                                  \
  X(cuInit, (unsigned))                                                                                           \
  X(cuDeviceGet, (CUdevice*, int))                                                                                \
  X(cuDevicePrimaryCtxRetain, (CUcontext*, CUdevice))                                                             \
  X(cuCtxSetCurrent, (CUcontext))                                                                                 \
  X(cuCtxSynchronize, ())                                                                                         \
  X(cuModuleLoadData, (CUmodule*, const void*))                                                                   \
  X(cuModuleGetFunction, (CUfunction*, CUmodule, const char*))                                                    \
  X(cuMemAlloc_v2, (CUdeviceptr*, size_t))                                                                        \
  X(cuMemcpyHtoD_v2, (CUdeviceptr, const void*, size_t))                                                          \
  X(cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void*, size_t, CUstream))                                           \
  X(cuMemcpyDtoH_v2, (void*, CUdeviceptr, size_t))                                                                \
  X(cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t))                                                          \
  X(cuStreamCreate, (CUstream*, unsigned))                                                                        \
  X(cuStreamSynchronize, (CUstream))                                                                              \
  X(cuStreamWaitEvent, (CUstream, CUevent, unsigned))                                                             \
  X(cuEventCreate, (CUevent*, unsigned))                                                                          \
  X(cuEventRecord, (CUevent, CUstream))                                                                           \
  X(cuLaunchKernel,                                                                                               \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**)) \
  X(cuGraphCreate, (CUgraph*, unsigned))                                                                          \
  X(cuGraphAddKernelNode_v2, (CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const CUDA_KERNEL_NODE_PARAMS*)) \
  X(cuGraphInstantiateWithFlags, (CUgraphExec*, CUgraph, unsigned long long))                                     \
  X(cuGraphLaunch, (CUgraphExec, CUstream))

struct Cuda {
#define MEMBER(name, parameters) CUresult(*name) parameters = nullptr;
  CALLS(MEMBER)
#undef MEMBER
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "decode_app: %s\n", what.c_str());
  std::exit(1);
}

void check(CUresult code, const char* call) {
  if (code != CUDA_SUCCESS) fail(std::string(call) + ": error " + std::to_string(static_cast<int>(code)));
}
#define CHECK(call) check(call, #call)

Cuda load_cuda() {
  const char* path = std::getenv("KGATE_CUDA_LIB");
  void* library = dlopen(path != nullptr ? path : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) fail(dlerror());
  Cuda cuda;
#define RESOLVE(name, parameters) cuda.name = reinterpret_cast<decltype(cuda.name)>(dlsym(library, #name));
  CALLS(RESOLVE)
#undef RESOLVE
  return cuda;
}

struct Options {
  std::string kernels;
  int steps = 24, threads = 2, scale = 1;
  bool graph = false, quiet = false;
};

uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

constexpr int kMaxLength = 48, kHeads = 2;

// What all threads share: code and weights.
struct Model {
  Cuda cuda;
  CUcontext context = nullptr;
  int hidden, inner, head_dim;
  CUfunction rmsnorm, softmax, matvec, rotary, cache_append, attention_scores, attention_mix, residual_add, silu_mul;
  CUdeviceptr norms, w_qkv, w_out, w_gate_up, w_down, cosines, sines;
  CUevent ready;

  CUdeviceptr floats(size_t count, float low, float high) {
    std::vector<float> values(count);
    for (float& value : values) {
      seed_ = seed_ * 6364136223846793005u + 1442695040888963407u;
      value = low + (high - low) * static_cast<float>(seed_ >> 40) / static_cast<float>(1 << 24);
    }
    CUdeviceptr at = 0;
    CHECK(cuda.cuMemAlloc_v2(&at, count * sizeof(float)));
    CHECK(cuda.cuMemcpyHtoD_v2(at, values.data(), count * sizeof(float)));
    return at;
  }

  CUdeviceptr zeros(size_t bytes) {
    CUdeviceptr at = 0;
    CHECK(cuda.cuMemAlloc_v2(&at, bytes));
    CHECK(cuda.cuMemsetD8_v2(at, 0, bytes));
    return at;
  }

 private:
  uint64_t seed_ = 7;
};

CUmodule load(const Cuda& cuda, const std::string& path) {
  std::ifstream file(path);
  if (!file) fail("cannot read " + path);
  std::stringstream text;
  text << file.rdbuf();
  CUmodule module = nullptr;
  CHECK(cuda.cuModuleLoadData(&module, text.str().c_str()));
  return module;
}

void set_up(Model& m, const Options& options) {
  m.cuda = load_cuda();
  m.hidden = 32 * options.scale, m.inner = 3 * m.hidden / 2, m.head_dim = m.hidden / kHeads;
  CUdevice device = 0;
  CHECK(m.cuda.cuInit(0));
  CHECK(m.cuda.cuDeviceGet(&device, 0));
  CHECK(m.cuda.cuDevicePrimaryCtxRetain(&m.context, device));
  CHECK(m.cuda.cuCtxSetCurrent(m.context));
  CUmodule decode = load(m.cuda, options.kernels + "/decode.ptx"),
           norm = load(m.cuda, options.kernels + "/rmsnorm.ptx"),
           softmax = load(m.cuda, options.kernels + "/softmax.ptx");
  CHECK(m.cuda.cuModuleGetFunction(&m.rmsnorm, norm, "rmsnorm_rows"));
  CHECK(m.cuda.cuModuleGetFunction(&m.softmax, softmax, "softmax_rows"));
  for (auto [function, name] : {std::pair{&m.matvec, "matvec"},
                                {&m.rotary, "rotary"},
                                {&m.cache_append, "cache_append"},
                                {&m.attention_scores, "attention_scores"},
                                {&m.attention_mix, "attention_mix"},
                                {&m.residual_add, "residual_add"},
                                {&m.silu_mul, "silu_mul"}})
    CHECK(m.cuda.cuModuleGetFunction(function, decode, name));
  size_t h = static_cast<size_t>(m.hidden), inner = static_cast<size_t>(m.inner);
  float range = 0.25f / static_cast<float>(options.scale);
  m.norms = m.floats(3 * h, 0.5f, 1.5f);
  m.w_qkv = m.floats(3 * h * h, -range, range);
  m.w_out = m.floats(h * h, -range, range);
  m.w_gate_up = m.floats(2 * inner * h, -range, range);
  m.w_down = m.floats(h * inner, -range, range);
  m.cosines = m.floats(kMaxLength * static_cast<size_t>(m.head_dim) / 2, -1, 1);
  m.sines = m.floats(kMaxLength * static_cast<size_t>(m.head_dim) / 2, -1, 1);
  CHECK(m.cuda.cuEventCreate(&m.ready, 2));
  CHECK(m.cuda.cuEventRecord(m.ready, nullptr));
}

// One server thread.
class Server {
 public:
  Server(Model& model, int number, const Options& options) : m_(model), c_(model.cuda), options_(options) {
    size_t h = static_cast<size_t>(m_.hidden);
    k_cache_ = m_.zeros(kMaxLength * h * 2), v_cache_ = m_.zeros(kMaxLength * h * 2);
    state_ = m_.zeros(h * 4), normed_ = m_.zeros(h * 4), qkv_ = m_.zeros(3 * h * 4), attended_ = m_.zeros(h * 4);
    scores_ = m_.zeros(kHeads * kMaxLength * 4), probabilities_ = m_.zeros(kHeads * kMaxLength * 4);
    projected_ = m_.zeros(h * 4), gate_up_ = m_.zeros(3 * h * 4), activated_ = m_.zeros(3 * h * 2);
    CHECK(c_.cuStreamCreate(&stream_, 1));
    for (size_t i = 0; i < h; ++i)
      embedding_.push_back(static_cast<float>((i * 37 + static_cast<size_t>(number) * 11) % 64) / 32.0f - 1.0f);
    result_.resize(h);
  }

  void run() {
    CHECK(c_.cuCtxSetCurrent(m_.context));
    CHECK(c_.cuStreamWaitEvent(stream_, m_.ready, 0));
    CUgraphExec graph = options_.graph ? build_graph() : nullptr;
    for (int step = 0; step < options_.steps; ++step) {
      uint64_t begin = now_ns();
      embedding_[0] = static_cast<float>(step % 16) / 16.0f;
      CHECK(c_.cuMemcpyHtoDAsync_v2(state_, embedding_.data(), embedding_.size() * 4, stream_));
      if (graph != nullptr)
        CHECK(c_.cuGraphLaunch(graph, stream_));
      else
        layer(1 + step % kMaxLength);
      CHECK(c_.cuStreamSynchronize(stream_));
      times_.push_back(now_ns() - begin);
    }
    CHECK(c_.cuMemcpyDtoH_v2(result_.data(), normed_, result_.size() * 4));
  }

  const std::vector<uint64_t>& times() const { return times_; }
  double sum() const {
    double total = 0;
    for (float value : result_) total += static_cast<double>(value);
    return total;
  }

 private:
  template <typename... Args>
  void launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned block, Args... args) {
    void* parameters[] = {&args...};
    if (graph_ == nullptr) {
      CHECK(c_.cuLaunchKernel(function, grid_x, grid_y, 1, block, 1, 1, 0, stream_, parameters, nullptr));
      return;
    }
    CUDA_KERNEL_NODE_PARAMS node{};
    node.func = function;
    node.gridDimX = grid_x, node.gridDimY = grid_y, node.gridDimZ = 1;
    node.blockDimX = block, node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = parameters;
    CUgraphNode made = nullptr;
    CHECK(c_.cuGraphAddKernelNode_v2(&made, graph_, &last_, last_ != nullptr ? 1 : 0, &node));
    last_ = made;
  }

  static unsigned blocks(int count, int each) { return static_cast<unsigned>((count + each - 1) / each); }

  // A layer of attention and MLP over a cache of `length` tokens, this one included.
  void layer(int length) {
    const int h = m_.hidden, inner = m_.inner, d = m_.head_dim, position = length - 1;
    const unsigned width = blocks(h, 128), half = static_cast<unsigned>(d / 2);
    const CUdeviceptr row = static_cast<CUdeviceptr>(h) * 4;
    launch(m_.rmsnorm, 1, 1, 128, normed_, state_, m_.norms, h, 1e-5f);
    launch(m_.matvec, blocks(3 * h, 4), 1, 128, qkv_, m_.w_qkv, normed_, 3 * h, h);
    launch(m_.rotary, kHeads, 1, half, qkv_, m_.cosines, m_.sines, d, position);
    launch(m_.rotary, kHeads, 1, half, qkv_ + row, m_.cosines, m_.sines, d, position);
    launch(m_.cache_append, width, 1, 128, k_cache_, qkv_ + row, position, h);
    launch(m_.cache_append, width, 1, 128, v_cache_, qkv_ + 2 * row, position, h);
    launch(m_.attention_scores, blocks(length, 4), kHeads, 128, scores_, qkv_, k_cache_, length, d, 0.25f);
    launch(m_.softmax, kHeads, 1, 128, probabilities_, scores_, length);
    launch(m_.attention_mix, kHeads, 1, static_cast<unsigned>(d), attended_, probabilities_, v_cache_, length, d);
    launch(m_.matvec, blocks(h, 4), 1, 128, projected_, m_.w_out, attended_, h, h);
    launch(m_.residual_add, width, 1, 128, state_, state_, projected_, h);
    launch(m_.rmsnorm, 1, 1, 128, normed_, state_, m_.norms + row, h, 1e-5f);
    launch(m_.matvec, blocks(2 * inner, 4), 1, 128, gate_up_, m_.w_gate_up, normed_, 2 * inner, h);
    launch(m_.silu_mul, blocks(inner, 128), 1, 128, activated_, gate_up_,
           gate_up_ + static_cast<CUdeviceptr>(inner) * 4, inner);
    launch(m_.matvec, blocks(h, 4), 1, 128, projected_, m_.w_down, activated_, h, inner);
    launch(m_.residual_add, width, 1, 128, state_, state_, projected_, h);
    launch(m_.rmsnorm, 1, 1, 128, normed_, state_, m_.norms + 2 * row, h, 1e-5f);
  }

  CUgraphExec build_graph() {
    CHECK(c_.cuGraphCreate(&graph_, 0));
    layer(33);
    CUgraphExec executable = nullptr;
    CHECK(c_.cuGraphInstantiateWithFlags(&executable, graph_, 0));
    return executable;
  }

  Model& m_;
  const Cuda& c_;
  const Options& options_;
  CUstream stream_ = nullptr;
  CUgraph graph_ = nullptr;
  CUgraphNode last_ = nullptr;
  CUdeviceptr k_cache_, v_cache_, state_, normed_, qkv_, attended_, scores_, probabilities_, projected_, gate_up_,
      activated_;
  std::vector<float> embedding_, result_;
  std::vector<uint64_t> times_;
};

Options read_options(int argc, char** argv) {
  Options options;
  auto number = [&](int& i) {
    if (++i == argc) fail(std::string(argv[i - 1]) + " needs a number");
    int value = std::atoi(argv[i]);
    if (value < 1) fail(std::string(argv[i]) + " is no number from 1 on");
    return value;
  };
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--steps")
      options.steps = number(i);
    else if (word == "--threads")
      options.threads = number(i);
    else if (word == "--scale")
      options.scale = number(i);
    else if (word == "--graph")
      options.graph = true;
    else if (word == "--quiet")
      options.quiet = true;
    else if (options.kernels.empty() && word[0] != '-')
      options.kernels = word;
    else
      fail("unknown argument " + word);
  }
  if (options.kernels.empty())
    fail("usage: decode_app KERNELS [--steps N] [--threads N] [--scale N] [--graph] [--quiet]");
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  Options options = read_options(argc, argv);
  Model model;
  set_up(model, options);
  std::vector<Server> servers;
  servers.reserve(static_cast<size_t>(options.threads));
  for (int t = 0; t < options.threads; ++t) servers.emplace_back(model, t, options);
  CHECK(model.cuda.cuCtxSynchronize());
  std::vector<std::thread> threads;
  for (Server& server : servers) threads.emplace_back([&server] { server.run(); });
  for (std::thread& thread : threads) thread.join();
  CHECK(model.cuda.cuCtxSynchronize());
  std::vector<uint64_t> times;
  double sum = 0;
  for (Server& server : servers) {
    times.insert(times.end(), server.times().begin(), server.times().end());
    sum += server.sum();
  }
  std::sort(times.begin(), times.end());
  if (!options.quiet)
    std::printf("%zu steps, p50 %.1f us, p99 %.1f us, sum %.6f\n", times.size(),
                static_cast<double>(times[times.size() / 2]) / 1e3,
                static_cast<double>(times[times.size() * 99 / 100]) / 1e3, sum);
}
