// Good: maximum and sum in one pass, a running sum being rescaled whenever the maximum grows, and one barrier instead of two. Care is
// needed where a thread or a warp has seen only -inf (its sum must stay 0, not become NaN) and where a row holds NaN or +inf (all of it
// must become NaN).

extern "C" __global__ void __launch_bounds__(128) softmax_rows(float* __restrict__ out, const float* __restrict__ x, int cols) {
  __shared__ float maxima[4], sums[4];
  const float none = __int_as_float(0xff800000);  // -inf
  const long long row = blockIdx.x;
  const int first = threadIdx.x;
  x += row * cols;
  out += row * cols;

  const float kept = first < cols ? x[first] : none;
  float largest = fmaxf(none, kept), sum = kept == none ? 0.0f : kept - kept + 1.0f;  // NaN and inf - inf are NaN, the rest 1
  for (int c = first + 128; c < cols; c += 128) {
    const float value = x[c];
    if (value == none) continue;
    const float grown = fmaxf(largest, value);
    sum = sum * __expf(largest - grown) + expf(value - grown);
    largest = grown;
  }
  float of_warp = largest;
  for (int offset = 16; offset > 0; offset /= 2) of_warp = fmaxf(of_warp, __shfl_xor_sync(0xffffffffu, of_warp, offset));
  if (of_warp != none) sum *= __expf(largest - of_warp);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (first % 32 == 0) maxima[first / 32] = of_warp, sums[first / 32] = sum;
  __syncthreads();

  largest = fmaxf(fmaxf(maxima[0], maxima[1]), fmaxf(maxima[2], maxima[3]));
  sum = (sums[0] * __expf(maxima[0] - largest) + sums[1] * __expf(maxima[1] - largest)) +
        (sums[2] * __expf(maxima[2] - largest) + sums[3] * __expf(maxima[3] - largest));
  const float scale = 1.0f / sum;
  if (first < cols) out[first] = expf(kept - largest) * scale;
  for (int c = first + 128; c < cols; c += 128) out[c] = expf(x[c] - largest) * scale;
}
