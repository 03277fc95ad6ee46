// Good and faster: a warp a row, four rows a block, no shared memory and no barrier. Another grid and another parameter order than
// the baseline's, so only a binding can put it in the baseline's place.

// Four values of a row a lane: neighbours in one 16-byte access where the rows are aligned, else 32 columns apart.
struct Quad {
  float v[4];
};

static __device__ Quad load(const float* x, int c, int step, int cols) {
  Quad q;
  if (step == 1) {
    const float4 all = *(const float4*)(x + c);
    q.v[0] = all.x, q.v[1] = all.y, q.v[2] = all.z, q.v[3] = all.w;
  } else {
    for (int i = 0; i < 4; ++i) q.v[i] = c + 32 * i < cols ? x[c + 32 * i] : __int_as_float(0xff800000);  // -inf adds nothing
  }
  return q;
}

extern "C" __global__ void __launch_bounds__(128) softmax_warp4(const float* __restrict__ x, float* __restrict__ out, int cols, int rows) {
  const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  x += (long long)row * cols;
  out += (long long)row * cols;
  const int step = cols % 4 == 0 ? 1 : 32, first = step == 1 ? lane * 4 : lane;

  float largest = __int_as_float(0xff800000);
  for (int c = first; c < cols; c += 128) {
    const Quad q = load(x, c, step, cols);
    largest = fmaxf(largest, fmaxf(fmaxf(q.v[0], q.v[1]), fmaxf(q.v[2], q.v[3])));
  }
  for (int offset = 16; offset > 0; offset /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));

  float sum = 0.0f;
  for (int c = first; c < cols; c += 128) {
    const Quad q = load(x, c, step, cols);
    sum += (expf(q.v[0] - largest) + expf(q.v[1] - largest)) + (expf(q.v[2] - largest) + expf(q.v[3] - largest));
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);

  const float scale = 1.0f / sum;
  for (int c = first; c < cols; c += 128) {
    Quad q = load(x, c, step, cols);
    for (int i = 0; i < 4; ++i) q.v[i] = expf(q.v[i] - largest) * scale;
    if (step == 1) {
      *(float4*)(out + c) = make_float4(q.v[0], q.v[1], q.v[2], q.v[3]);
    } else {
      for (int i = 0; i < 4; ++i)
        if (c + 32 * i < cols) out[c + 32 * i] = q.v[i];
    }
  }
}
