// softmax_rows, as it runs in production: the baseline that candidates are judged against.
//
// out[row, :] = softmax(x[row, :]). One row a block, any number of columns; the block is a multiple of 32 threads, at most 1024.
// Three passes over the row, so that nothing bounds its length: maximum, sum of exponentials, result. NaN anywhere in a row, and a
// row of nothing but -inf, give a row of NaN; a single -inf (a masked position) gives 0.

static __device__ float block_max(float value, float* partial) {
  for (int offset = 16; offset > 0; offset /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  value = partial[0];
  for (int warp = 1; warp < blockDim.x / 32; ++warp) value = fmaxf(value, partial[warp]);
  return value;
}

static __device__ float block_sum(float value, float* partial) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  value = partial[0];
  for (int warp = 1; warp < blockDim.x / 32; ++warp) value += partial[warp];
  return value;
}

extern "C" __global__ void softmax_rows(float* out, const float* x, int cols) {
  __shared__ float maxima[32], sums[32];
  const long long row = blockIdx.x;
  x += row * cols;
  out += row * cols;

  float largest = __int_as_float(0xff800000);  // -inf
  for (int c = threadIdx.x; c < cols; c += blockDim.x) largest = fmaxf(largest, x[c]);
  largest = block_max(largest, maxima);

  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += expf(x[c] - largest);
  sum = block_sum(sum, sums);

  const float scale = 1.0f / sum;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) out[c] = expf(x[c] - largest) * scale;
}
