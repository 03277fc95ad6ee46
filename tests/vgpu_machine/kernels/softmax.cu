// Row softmax: warp shuffles, then shared memory across warps.
__device__ float block_reduce(float v, bool maximum) {
  __shared__ float parts[32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
  for (int o = 16; o; o >>= 1) {
    float w = __shfl_xor_sync(0xffffffff, v, o);
    v = maximum ? fmaxf(v, w) : v + w;
  }
  __syncthreads();
  if (lane == 0) parts[warp] = v;
  __syncthreads();
  v = lane < warps ? parts[lane] : (maximum ? -INFINITY : 0.f);
  for (int o = 16; o; o >>= 1) {
    float w = __shfl_xor_sync(0xffffffff, v, o);
    v = maximum ? fmaxf(v, w) : v + w;
  }
  return v;
}
extern "C" __global__ void softmax(float* out, const float* in, int cols) {
  const float* x = in + (size_t)blockIdx.x * cols;
  float* y = out + (size_t)blockIdx.x * cols;
  float m = -INFINITY;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) m = fmaxf(m, x[c]);
  m = block_reduce(m, true);
  float s = 0;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) s += __expf(x[c] - m);
  s = block_reduce(s, false);
  for (int c = threadIdx.x; c < cols; c += blockDim.x) y[c] = __expf(x[c] - m) / s;
}
