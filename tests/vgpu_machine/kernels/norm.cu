// Layer norm and RMS norm over rows; one warp a row for RMS, one block a row for layer norm.
#include <cuda_fp16.h>
extern "C" __global__ void rmsnorm(__half* out, const __half* in, const __half* weight, int cols, float eps) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  const __half2* x = reinterpret_cast<const __half2*>(in + (size_t)row * cols);
  const __half2* w = reinterpret_cast<const __half2*>(weight);
  __half2* y = reinterpret_cast<__half2*>(out + (size_t)row * cols);
  float sum = 0;
  for (int c = lane; c < cols / 2; c += 32) {
    float2 v = __half22float2(x[c]);
    sum += v.x * v.x + v.y * v.y;
  }
  for (int o = 16; o; o >>= 1) sum += __shfl_down_sync(~0u, sum, o);
  sum = __shfl_sync(~0u, sum, 0);
  float scale = rsqrtf(sum / cols + eps);
  for (int c = lane; c < cols / 2; c += 32) {
    float2 v = __half22float2(x[c]);
    y[c] = __hmul2(__floats2half2_rn(v.x * scale, v.y * scale), w[c]);
  }
}
extern "C" __global__ void layernorm(float* out, const float4* in, const float* gamma, const float* beta, int cols) {
  __shared__ float sums[2][32];
  const float4* x = in + (size_t)blockIdx.x * (cols / 4);
  float s = 0, q = 0;
  for (int c = threadIdx.x; c < cols / 4; c += blockDim.x) {
    float4 v = x[c];
    s += v.x + v.y + v.z + v.w;
    q += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o), q += __shfl_xor_sync(~0u, q, o);
  if (threadIdx.x % 32 == 0) sums[0][threadIdx.x / 32] = s, sums[1][threadIdx.x / 32] = q;
  __syncthreads();
  s = q = 0;
  for (int w = 0; w < blockDim.x / 32; ++w) s += sums[0][w], q += sums[1][w];
  float mean = s / cols, rstd = rsqrtf(q / cols - mean * mean + 1e-5f);
  for (int c = threadIdx.x; c < cols / 4; c += blockDim.x) {
    float4 v = x[c];
    float* y = out + (size_t)blockIdx.x * cols + c * 4;
    y[0] = (v.x - mean) * rstd * gamma[c * 4] + beta[c * 4];
    y[1] = (v.y - mean) * rstd * gamma[c * 4 + 1] + beta[c * 4 + 1];
    y[2] = (v.z - mean) * rstd * gamma[c * 4 + 2] + beta[c * 4 + 2];
    y[3] = (v.w - mean) * rstd * gamma[c * 4 + 3] + beta[c * 4 + 3];
  }
}
