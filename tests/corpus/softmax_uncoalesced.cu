// Uncoalesced: each thread owns eight neighbouring columns instead of every 128th, so the lanes of a warp touch addresses 32 bytes
// apart and every access of a warp costs one sector a lane. The numbers are right and the instructions are about as many.

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

extern "C" __global__ void __launch_bounds__(128) softmax_rows(float* out, const float* x, int cols) {
  __shared__ float maxima[4], sums[4];
  const long long row = blockIdx.x;
  x += row * cols;
  out += row * cols;

  float largest = __int_as_float(0xff800000);
  for (int base = threadIdx.x * 8; base < cols; base += 1024)
    for (int c = base; c < min(base + 8, cols); ++c) largest = fmaxf(largest, x[c]);
  largest = block_reduce(largest, maxima, true);

  float sum = 0.0f;
  for (int base = threadIdx.x * 8; base < cols; base += 1024)
    for (int c = base; c < min(base + 8, cols); ++c) sum += expf(x[c] - largest);
  sum = block_reduce(sum, sums, false);

  const float scale = 1.0f / sum;
  for (int base = threadIdx.x * 8; base < cols; base += 1024)
    for (int c = base; c < min(base + 8, cols); ++c) out[c] = expf(x[c] - largest) * scale;
}
