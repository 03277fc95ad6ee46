// Reads past the end: four columns a step, the bound being checked for the first only; what was read too much is then thrown away. The
// results are right on every GPU until a buffer ends at the end of a mapping. The virtual GPU knows where each buffer ends.

extern "C" __global__ void __launch_bounds__(128) rmsnorm_rows(float* out, const float* x, const float* weight, int cols, float eps) {
  __shared__ float partial[4];
  const long long row = blockIdx.x;
  x += row * cols;
  out += row * cols;

  float sum = 0.0f;
  for (int c = threadIdx.x * 4; c < cols; c += 512) {
    float v[4];
    for (int i = 0; i < 4; ++i) v[i] = ((const volatile float*)x)[c + i];
    for (int i = 0; i < 4; ++i) sum += c + i < cols ? v[i] * v[i] : 0.0f;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = (partial[0] + partial[1]) + (partial[2] + partial[3]);

  const float scale = 1.0f / sqrtf(sum / cols + eps);
  for (int c = threadIdx.x; c < cols; c += 128) out[c] = x[c] * scale * weight[c];
}
