// Barrier misuse: the barrier inside the reduction stands in a branch that only threads with columns take. Undefined where a row is
// shorter than the block: hardware may pass, hang or mix up barriers; a machine that checks says so each time.

static __device__ float join_warps(float value, float* partial, bool maximum) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, value, offset);
    value = maximum ? fmaxf(value, other) : value + other;
  }
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  return value;
}

extern "C" __global__ void __launch_bounds__(128) softmax_rows(float* out, const float* x, int cols) {
  __shared__ float maxima[4], sums[4];
  const long long row = blockIdx.x;
  x += row * cols;
  out += row * cols;

  float largest = __int_as_float(0xff800000);
  for (int c = threadIdx.x; c < cols; c += 128) largest = fmaxf(largest, x[c]);
  join_warps(largest, maxima, true);
  if (threadIdx.x < cols) {
    __syncthreads();
    largest = fmaxf(fmaxf(maxima[0], maxima[1]), fmaxf(maxima[2], maxima[3]));
  }
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 128) sum += expf(x[c] - largest);
  join_warps(sum, sums, false);
  __syncthreads();
  const float scale = 1.0f / ((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (int c = threadIdx.x; c < cols; c += 128) out[c] = expf(x[c] - largest) * scale;
}
