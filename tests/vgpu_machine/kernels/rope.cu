// Rotary embedding on pairs (2i, 2i+1), f16 and bf16.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
extern "C" __global__ void rope_f16(__half2* x, const float* theta, int pairs) {
  int p = threadIdx.x, pos = blockIdx.x;
  if (p >= pairs) return;
  float s, c;
  __sincosf(pos * theta[p], &s, &c);
  float2 v = __half22float2(x[pos * pairs + p]);
  x[pos * pairs + p] = __floats2half2_rn(v.x * c - v.y * s, v.x * s + v.y * c);
}
extern "C" __global__ void rope_bf16(__nv_bfloat162* x, const float* theta, int pairs) {
  int p = threadIdx.x, pos = blockIdx.x;
  if (p >= pairs) return;
  float a = pos * theta[p], s = sinf(a), c = cosf(a);
  float2 v = __bfloat1622float2(x[pos * pairs + p]);
  x[pos * pairs + p] = __floats2bfloat162_rn(v.x * c - v.y * s, v.x * s + v.y * c);
}
