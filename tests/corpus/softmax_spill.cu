// Spills: up to 32 values a thread are held in registers between the passes, and a bound of 24 registers pushes them to local memory.
// The PTX holds no trace of it and the numbers are right; only what the assembler reports shows it.

static __device__ float block_reduce(float value, float* partial, bool maximum) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, value, offset);
    value = maximum ? fmaxf(value, other) : value + other;
  }
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  return maximum ? fmaxf(fmaxf(partial[0], partial[1]), fmaxf(partial[2], partial[3]))
                 : (partial[0] + partial[1]) + (partial[2] + partial[3]);
}

extern "C" __global__ void __maxnreg__(24) softmax_rows(float* __restrict__ out, const float* __restrict__ x, int cols) {
  __shared__ float maxima[4], sums[4];
  const long long row = blockIdx.x;
  x += row * cols;
  out += row * cols;
  float held[32];

  float largest = __int_as_float(0xff800000);
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const int c = threadIdx.x + 128 * i;
    held[i] = c < cols ? x[c] : __int_as_float(0xff800000);
    largest = fmaxf(largest, held[i]);
  }
  largest = block_reduce(largest, maxima, true);

  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    held[i] = expf(held[i] - largest);
    sum += held[i];
  }
  const float scale = 1.0f / block_reduce(sum, sums, false);
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const int c = threadIdx.x + 128 * i;
    if (c < cols) out[c] = held[i] * scale;
  }
}
