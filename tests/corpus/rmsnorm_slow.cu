// Slow: right numbers, but at least 1.3 times the work, all of it on the critical path. A look for rows of zeros that would need no work
// (there are none), squares summed in two halves for a last digit, a division an element; and each of the three reductions goes through
// shared memory with a barrier a level.

static __device__ float tree(float value, float* shared) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int stride = 64; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) shared[threadIdx.x] += shared[threadIdx.x + stride];
    __syncthreads();
  }
  value = shared[0];
  __syncthreads();
  return value;
}

extern "C" __global__ void __launch_bounds__(128) rmsnorm_rows(float* out, const float* x, const float* weight, int cols, float eps) {
  __shared__ float shared[128];
  const long long row = blockIdx.x;
  x += row * cols;
  out += row * cols;

  float magnitude = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 128) magnitude += fabsf(x[c]);
  magnitude = tree(magnitude, shared);

  float even = 0.0f, odd = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 128) (c % 2 == 0 ? even : odd) += x[c] * x[c];
  even = tree(even, shared);
  odd = tree(odd, shared);

  const float root = sqrtf((even + odd) / cols + eps);
  for (int c = threadIdx.x; c < cols; c += 128) out[c] = magnitude == 0.0f ? x[c] * weight[c] : x[c] / root * weight[c];
}
