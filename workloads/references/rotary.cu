// rotary_ref: what rotary must compute, in double; x arrives widened. The grid is the number of heads, as it is for the kernel; any
// block will do: the block's first thread works alone.

extern "C" __global__ void rotary_ref(double* x, const float* cosines, const float* sines, int head_dim, int position) {
  if (threadIdx.x != 0 || threadIdx.y != 0 || threadIdx.z != 0) return;
  const int half = head_dim / 2;
  x += (long long)blockIdx.x * head_dim;
  for (int i = 0; i < half; ++i) {
    const double c = cosines[(long long)position * half + i], s = sines[(long long)position * half + i];
    const double a = x[i], b = x[i + half];
    x[i] = a * c - b * s;
    x[i + half] = b * c + a * s;
  }
}
