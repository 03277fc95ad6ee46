// The other kernels of a small transformer's decode step: one token, batch of one, float32 activations, float16 KV cache.
//
// Together with softmax.cu and rmsnorm.cu (modules of their own, since those two are what candidates replace) one layer is
//
//     rmsnorm_rows  normed = rmsnorm(hidden)                      grid 1, block 128
//     matvec        q, k, v = W normed                            grid cdiv(rows, 4), block 128
//     rotary        q, k in place                                 grid heads, block head_dim / 2
//     cache_append  cache[position] = k, v                        grid cdiv(width, 128), block 128
//     attention_scores  scores[head, token] = q . k * scale       grid (cdiv(length, 4), heads), block 128
//     softmax_rows  probabilities                                 grid heads, block 128
//     attention_mix attended[head] = probabilities . v            grid heads, block head_dim
//     matvec, residual_add  hidden += W attended                  grid cdiv(n, 128), block 128
//     rmsnorm_rows, matvec, silu_mul, matvec, residual_add        the MLP
//
// Sizes are parameters: hidden 256, 4 heads of 64 and 128 tokens of cache are quick on the virtual GPU, and the same module serves
// larger ones on a real GPU. There are no headers, so that NVRTC needs no include path; that is why half conversion is spelt in PTX.

static __device__ float from_half(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

static __device__ unsigned short to_half(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

static __device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// out[rows] = w[rows, cols] x[cols]; a warp a row.
extern "C" __global__ void matvec(float* out, const float* w, const float* x, int rows, int cols) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  w += (long long)row * cols;
  float sum = 0.0f;
  for (int c = threadIdx.x % 32; c < cols; c += 32) sum += w[c] * x[c];
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) out[row] = sum;
}

// x[heads, head_dim] in place; element i of the first half turns with element i of the second. The tables hold
// [positions, head_dim / 2] cosines and sines.
extern "C" __global__ void rotary(float* x, const float* cosines, const float* sines, int head_dim, int position) {
  const int half = head_dim / 2;
  x += (long long)blockIdx.x * head_dim;
  for (int i = threadIdx.x; i < half; i += blockDim.x) {
    const float c = cosines[(long long)position * half + i], s = sines[(long long)position * half + i];
    const float a = x[i], b = x[i + half];
    x[i] = a * c - b * s;
    x[i + half] = b * c + a * s;
  }
}

// cache[tokens, width] (float16): row `position` becomes x[width].
extern "C" __global__ void cache_append(unsigned short* cache, const float* x, int position, int width) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < width) cache[(long long)position * width + i] = to_half(x[i]);
}

// scores[heads, length] = scale * q[heads, head_dim] . k_cache[length, heads, head_dim]; a warp a token, blockIdx.y the head.
extern "C" __global__ void attention_scores(float* scores, const float* q, const unsigned short* k_cache, int length, int head_dim,
                                            float scale) {
  const int head = blockIdx.y, heads = gridDim.y;
  const int token = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (token >= length) return;
  q += (long long)head * head_dim;
  k_cache += ((long long)token * heads + head) * head_dim;
  float sum = 0.0f;
  for (int i = threadIdx.x % 32; i < head_dim; i += 32) sum += q[i] * from_half(k_cache[i]);
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) scores[(long long)head * length + token] = sum * scale;
}

// out[heads, head_dim] = probabilities[heads, length] . v_cache[length, heads, head_dim]; blockIdx.x the head.
extern "C" __global__ void attention_mix(float* out, const float* probabilities, const unsigned short* v_cache, int length,
                                         int head_dim) {
  const int head = blockIdx.x, heads = gridDim.x;
  probabilities += (long long)head * length;
  for (int i = threadIdx.x; i < head_dim; i += blockDim.x) {
    float sum = 0.0f;
    for (int token = 0; token < length; ++token)
      sum += probabilities[token] * from_half(v_cache[((long long)token * heads + head) * head_dim + i]);
    out[(long long)head * head_dim + i] = sum;
  }
}

// out[n] = a[n] + b[n]; out may be a or b.
extern "C" __global__ void residual_add(float* out, const float* a, const float* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

// out[n] = silu(gate[n]) * up[n].
extern "C" __global__ void silu_mul(float* out, const float* gate, const float* up, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
}
