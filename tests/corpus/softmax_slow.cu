// Slow: right numbers, but at least 1.3 times the work, all of it on the critical path. The reductions go through shared memory with a
// barrier a level, and the row is normalised three times "to be safe": two passes and two reductions that change nothing but the last
// digit. Every test of numbers passes; only the clock, or exact counts, can tell.

static __device__ float tree(float value, float* shared, bool maximum) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int stride = 64; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) {
      const float other = shared[threadIdx.x + stride];
      shared[threadIdx.x] = maximum ? fmaxf(shared[threadIdx.x], other) : shared[threadIdx.x] + other;
    }
    __syncthreads();
  }
  value = shared[0];
  __syncthreads();
  return value;
}

extern "C" __global__ void __launch_bounds__(128) softmax_rows(float* out, const float* x, int cols) {
  __shared__ float shared[128];
  const long long row = blockIdx.x;
  x += row * cols;
  out += row * cols;

  float largest = __int_as_float(0xff800000);
  for (int c = threadIdx.x; c < cols; c += 128) largest = fmaxf(largest, x[c]);
  largest = tree(largest, shared, true);

  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 128) sum += expf(x[c] - largest);
  sum = tree(sum, shared, false);

  float scale = 1.0f / sum;
  for (int round = 0; round < 2; ++round) {
    float total = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 128) total += expf(x[c] - largest) * scale;
    scale /= tree(total, shared, false);
  }

  for (int c = threadIdx.x; c < cols; c += 128) out[c] = expf(x[c] - largest) * scale;
}
