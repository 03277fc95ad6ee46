// Histogram in dynamic shared memory, loops whose trip count differs by lane, a switch, a device call, a warp lock.
extern "C" __global__ void histogram(const unsigned char* in, unsigned* out, int n, int bins) {
  extern __shared__ unsigned counts[];
  for (int b = threadIdx.x; b < bins; b += blockDim.x) counts[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&counts[in[i] % bins], 1);
  __syncthreads();
  for (int b = threadIdx.x; b < bins; b += blockDim.x) atomicAdd(out + b, counts[b]);
}
extern "C" __global__ void collatz(const unsigned long long* in, int* steps, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned long long x = in[i];
  int s = 0;
  while (x != 1) x = x & 1 ? 3 * x + 1 : x / 2, ++s;
  steps[i] = s;
}
__device__ __noinline__ float twice(float x, int k) { return k > 3 ? x * 2 + k : x - k; }
extern "C" __global__ void switches(const int* in, float* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  float r;
  switch (in[i]) {
    case 0: r = twice(1.5f, i); break;
    case 1: r = sqrtf((float)i); break;
    case 2: r = i / 3; break;
    case 3: r = i % 7; break;
    case 4: r = __popc(i) + __clz(i); break;
    case 5: r = twice((float)i, 1); break;
    default: r = -1;
  }
  out[i] = r;
}
extern "C" __global__ void lock(int* mutex, int* counter) {
  bool done = false;
  while (!done) {
    if (atomicCAS(mutex, 0, 1) == 0) {
      *(volatile int*)counter += 1;
      __threadfence();
      atomicExch(mutex, 0);
      done = true;
    }
  }
}
__constant__ int table[4] = {3, 1, 4, 1};
extern "C" __global__ void locals(int* out, int k) {
  int a[8];
  for (int i = 0; i < 8; ++i) a[i] = i * table[i & 3];
  a[(threadIdx.x + k) & 7] += 100;
  int s = 0;
  for (int i = 0; i < 8; ++i) s += a[(i + k) & 7] * (i + 1);
  out[threadIdx.x] = s;
}
