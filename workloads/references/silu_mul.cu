// silu_mul_ref: what silu_mul must compute, in double. Grid-stride: any one-dimensional grid and block.

extern "C" __global__ void silu_mul_ref(double* out, const float* gate, const float* up, int n) {
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x) {
    const double g = gate[i];
    out[i] = g / (1.0 + exp(-g)) * up[i];
  }
}
