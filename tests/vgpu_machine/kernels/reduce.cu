// Sum by blocks with a float atomic, integer min/max/and/or atomics, and a last-block-done reduction.
__device__ unsigned int finished = 0;
extern "C" __global__ void block_sum(const float* in, float* out, int n) {
  __shared__ float part[256];
  float s = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += in[i];
  part[threadIdx.x] = s;
  __syncthreads();
  for (int h = blockDim.x / 2; h; h >>= 1) {
    if (threadIdx.x < h) part[threadIdx.x] += part[threadIdx.x + h];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, part[0]);
}
extern "C" __global__ void int_atomics(const int* in, int* out, unsigned long long* wide, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicMin(out, in[i]);
  atomicMax(out + 1, in[i]);
  atomicAnd(out + 2, in[i]);
  atomicOr(out + 3, in[i]);
  atomicXor(out + 4, in[i]);
  atomicInc((unsigned*)out + 5, 100);
  atomicAdd(wide, (unsigned long long)in[i]);
  int old = out[6], seen;
  do { seen = old; old = atomicCAS(out + 6, seen, seen + 3); } while (old != seen);
}
extern "C" __global__ void last_block(const int* in, volatile int* partial, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = in[blockIdx.x];
    __threadfence();
    last = atomicInc(&finished, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    int s = 0;
    for (int b = 0; b < gridDim.x; ++b) s += partial[b];
    *out = s;
    finished = 0;
  }
}
