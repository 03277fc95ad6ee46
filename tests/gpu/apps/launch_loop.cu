// Launches an empty kernel as fast as one thread can, for the seconds given; synchronises every 1000 launches. Prints the
// number of launches.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

__global__ void empty() {}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  long long launches = 0;
  empty<<<1, 32>>>();
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  auto begin = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < seconds) {
    for (int i = 0; i < 1000; ++i) empty<<<1, 32>>>();
    launches += 1000;
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  }
  std::printf("launches %lld in %.2f s\n", launches + 1, seconds);
  return 0;
}
