// Good: the baseline's algorithm with one reciprocal square root in place of a root and a division, and without loops over warps.

extern "C" __global__ void __launch_bounds__(128) rmsnorm_rows(float* __restrict__ out, const float* __restrict__ x,
                                                               const float* __restrict__ weight, int cols, float eps) {
  __shared__ float partial[4];
  const long long row = blockIdx.x;
  x += row * cols;
  out += row * cols;

  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 128) {
    const float value = x[c];
    sum += value * value;
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = (partial[0] + partial[1]) + (partial[2] + partial[3]);

  const float scale = rsqrtf(sum / cols + eps);
  for (int c = threadIdx.x; c < cols; c += 128) out[c] = x[c] * scale * weight[c];
}
