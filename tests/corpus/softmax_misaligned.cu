// Misaligned: 16-byte accesses without asking whether the row starts on a 16-byte boundary. It does where cols is a multiple of four;
// elsewhere every row but each fourth faults.

static __device__ float block_reduce(float value, float* partial, bool maximum) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, value, offset);
    value = maximum ? fmaxf(value, other) : value + other;
  }
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  return maximum ? fmaxf(fmaxf(partial[0], partial[1]), fmaxf(partial[2], partial[3]))
                 : (partial[0] + partial[1]) + (partial[2] + partial[3]);
}

extern "C" __global__ void __launch_bounds__(128) softmax_rows(float* out, const float* x, int cols) {
  __shared__ float maxima[4], sums[4];
  const long long row = blockIdx.x;
  x += row * cols;
  out += row * cols;
  const int quads = cols / 4, tail = quads * 4 + threadIdx.x;
  const float4* x4 = (const float4*)x;

  float largest = tail < cols ? x[tail] : __int_as_float(0xff800000);
  for (int q = threadIdx.x; q < quads; q += 128) {
    const float4 v = x4[q];
    largest = fmaxf(largest, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
  }
  largest = block_reduce(largest, maxima, true);

  float sum = tail < cols ? expf(x[tail] - largest) : 0.0f;
  for (int q = threadIdx.x; q < quads; q += 128) {
    const float4 v = x4[q];
    sum += (expf(v.x - largest) + expf(v.y - largest)) + (expf(v.z - largest) + expf(v.w - largest));
  }
  const float scale = 1.0f / block_reduce(sum, sums, false);

  if (tail < cols) out[tail] = expf(x[tail] - largest) * scale;
  for (int q = threadIdx.x; q < quads; q += 128) {
    const float4 v = x4[q];
    ((float4*)out)[q] = make_float4(expf(v.x - largest) * scale, expf(v.y - largest) * scale, expf(v.z - largest) * scale,
                                    expf(v.w - largest) * scale);
  }
}
