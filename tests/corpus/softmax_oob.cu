// Out of bounds: a grid-stride loop over rows that ends at <= instead of <. Block 0 also takes row number `rows`: it reads one row past
// the end of x and writes one past the end of out, up to 4 KiB. A real GPU is silent about it unless the page ends there; what lies
// behind is somebody's KV cache.

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
  const int rows = gridDim.x;
  for (long long row = blockIdx.x; row <= rows; row += gridDim.x) {
    const float* in = x + row * cols;
    float largest = __int_as_float(0xff800000);
    for (int c = threadIdx.x; c < cols; c += 128) largest = fmaxf(largest, in[c]);
    largest = block_reduce(largest, maxima, true);

    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 128) sum += expf(in[c] - largest);
    const float scale = 1.0f / block_reduce(sum, sums, false);
    for (int c = threadIdx.x; c < cols; c += 128) out[row * cols + c] = expf(in[c] - largest) * scale;
    __syncthreads();
  }
}
