// Good: the baseline's algorithm, tidied. Same interface and grid, fewer instructions: a thread's first column stays in a register
// between the passes, and the four warps' partial results are combined without a loop.

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

extern "C" __global__ void __launch_bounds__(128) softmax_rows(float* __restrict__ out, const float* __restrict__ x, int cols) {
  __shared__ float maxima[4], sums[4];
  const long long row = blockIdx.x;
  const int first = threadIdx.x;
  x += row * cols;
  out += row * cols;

  const float kept = first < cols ? x[first] : __int_as_float(0xff800000);  // -inf: adds nothing to the maximum or the sum
  float largest = kept;
  for (int c = first + 128; c < cols; c += 128) largest = fmaxf(largest, x[c]);
  largest = block_reduce(largest, maxima, true);

  const float exponential = expf(kept - largest);
  float sum = exponential;
  for (int c = first + 128; c < cols; c += 128) sum += expf(x[c] - largest);
  const float scale = 1.0f / block_reduce(sum, sums, false);

  if (first < cols) out[first] = exponential * scale;
  for (int c = first + 128; c < cols; c += 128) out[c] = expf(x[c] - largest) * scale;
}
