// A CUDA runtime program for tracing: kernels, copies, events, two streams, and a graph of three kernels and a memset that
// is launched many times. Linked with the static cudart, as nvcc does by default. Prints what a trace of it must hold.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                               \
  do {                                                                            \
    cudaError_t error = (call);                                                   \
    if (error != cudaSuccess) {                                                   \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));         \
      std::exit(1);                                                               \
    }                                                                             \
  } while (0)

__global__ void first(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1.0f;
}
template <typename T>
__global__ void second(T* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= T(2);
}
__global__ void third(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] -= 3.0f;
}

int main(int argc, char** argv) {
  const int n = 1 << 16, loops = argc > 1 ? std::atoi(argv[1]) : 100;
  float *x = nullptr, *host = nullptr;
  CHECK(cudaMalloc(&x, n * sizeof(float)));
  CHECK(cudaMallocHost(&host, n * sizeof(float)));
  cudaStream_t a, b;
  CHECK(cudaStreamCreate(&a));
  CHECK(cudaStreamCreate(&b));
  CHECK(cudaMemset(x, 0, n * sizeof(float)));

  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  CHECK(cudaMemsetAsync(x, 0, n * sizeof(float), a));
  first<<<n / 256, 256, 0, a>>>(x, n);
  second<float><<<n / 256, 256, 0, a>>>(x, n);
  third<<<n / 256, 256, 0, a>>>(x, n);
  CHECK(cudaStreamEndCapture(a, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));

  for (int i = 0; i < loops; ++i) {
    CHECK(cudaGraphLaunch(exec, a));
    CHECK(cudaStreamSynchronize(a));
    first<<<n / 256, 256, 0, b>>>(x, n);
    CHECK(cudaMemcpyAsync(host, x, n * sizeof(float), cudaMemcpyDeviceToHost, b));
    CHECK(cudaStreamSynchronize(b));
  }
  CHECK(cudaDeviceSynchronize());
  std::printf("loops %d: kernels %d, of graphs %d, graph launches %d, stream synchronisations %d\n", loops, 4 * loops, 3 * loops,
              loops, 2 * loops);
  return 0;
}
