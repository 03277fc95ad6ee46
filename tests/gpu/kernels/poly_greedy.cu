// A candidate for poly: one element a thread, as many threads as the whole GPU holds. Alone it is several times faster;
// while it runs nothing else finds a free SM.
extern "C" __global__ void __launch_bounds__(256, 8) poly(float* out, const float* x, int n, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float value = x[i];
  for (int s = 0; s < steps; ++s) value = value * 0.75f + 0.125f;
  out[i] = value;
}
