// Kernels for measuring the tools that measure: what tracing costs is seen best where the traced program does little.

extern "C" __global__ void empty_kernel() {}

// One thread waits for `steps` dependent additions, some 4 cycles each: 2500 of them are about 5 us at 1.9 GHz.
extern "C" __global__ void wait_steps(float* out, int steps) {
  float value = out[0];
  for (int i = 0; i < steps; ++i) value = value * 0.5f + 1.0f;
  out[0] = value;
}
