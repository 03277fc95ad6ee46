// A heavy elementwise kernel: as many dependent multiply-adds an element as `steps` says. Baseline: 66 blocks, half of an
// H200's SMs, so that other streams find room beside it.
extern "C" __global__ void __launch_bounds__(256) poly(float* out, const float* x, int n, int steps) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float value = x[i];
    for (int s = 0; s < steps; ++s) value = value * 0.75f + 0.125f;
    out[i] = value;
  }
}

// The neighbour: small and short.
extern "C" __global__ void scale_small(float* out, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * 2.0f + 1.0f;
}
