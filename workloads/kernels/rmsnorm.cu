// rmsnorm_rows, as it runs in production: the baseline that candidates are judged against.
//
// out[row, c] = x[row, c] / sqrt(mean(x[row, :]^2) + eps) * weight[c]. One row a block, any number of columns; the block is a
// multiple of 32 threads, at most 1024.

extern "C" __global__ void rmsnorm_rows(float* out, const float* x, const float* weight, int cols, float eps) {
  __shared__ float partial[32];
  const long long row = blockIdx.x;
  x += row * cols;
  out += row * cols;

  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += x[c] * x[c];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = partial[0];
  for (int warp = 1; warp < blockDim.x / 32; ++warp) sum += partial[warp];

  const float scale = 1.0f / sqrtf(sum / cols + eps);
  for (int c = threadIdx.x; c < cols; c += blockDim.x) out[c] = x[c] * scale * weight[c];
}
