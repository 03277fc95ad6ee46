// Hangs: a hand-made block barrier counts one arrival a warp, but a warp without columns goes straight to waiting and never arrives.
// Rows of at least 97 columns finish; shorter ones wait for ever. A gate must end it, and say that it was the candidate's doing.

static __device__ void all_warps(volatile int* arrived, bool has_columns) {
  __syncwarp();
  if (threadIdx.x % 32 == 0 && has_columns) atomicAdd((int*)arrived, 1);
  while (*arrived < 4) {
  }
  __threadfence_block();
}

extern "C" __global__ void __launch_bounds__(128) softmax_rows(float* out, const float* x, int cols) {
  __shared__ float maxima[4], sums[4];
  __shared__ int arrived[2];
  const long long row = blockIdx.x;
  x += row * cols;
  out += row * cols;
  if (threadIdx.x < 2) arrived[threadIdx.x] = 0;
  __syncthreads();
  const bool has_columns = threadIdx.x / 32 * 32 < cols;

  float largest = __int_as_float(0xff800000);
  for (int c = threadIdx.x; c < cols; c += 128) largest = fmaxf(largest, x[c]);
  for (int offset = 16; offset > 0; offset /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
  if (threadIdx.x % 32 == 0) maxima[threadIdx.x / 32] = largest;
  all_warps(&arrived[0], has_columns);
  largest = fmaxf(fmaxf(maxima[0], maxima[1]), fmaxf(maxima[2], maxima[3]));

  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 128) sum += expf(x[c] - largest);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  all_warps(&arrived[1], has_columns);
  sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);

  for (int c = threadIdx.x; c < cols; c += 128) out[c] = expf(x[c] - largest) * (1.0f / sum);
}
