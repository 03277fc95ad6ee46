// Default tolerances. They are a floor: the judge of the numbers also compares the candidate's error with the
// baseline's own against the same fp64 reference, so a long reduction does not need a wider constant here.
//
// f32, f16, bf16: the defaults of torch.testing.assert_close (rtol 1.3e-6, 1e-3, 1.6e-2, all with atol 1e-5), widened
// where kernels accumulate in another order: 1e-5 is 84 float ulps, 2e-3 is two half ulps, 1.6e-2 two bfloat16 ulps.
// tf32: ten explicit bits of mantissa (PTX ISA, "Alternate Floating-Point Data Formats"): 2^-10, inputs are rounded
// once. e4m3, e5m2: half an ulp is 2^-4 and 2^-3 of the value (OCP 8-bit Floating Point Specification, 3 and 2 bits of
// mantissa); the absolute term is the smallest subnormal. f64: 1e-12 is 4500 ulps, for sums in another order. Integers
// and bools are exact.
#include "contract/contract.h"

namespace kgate {

Tolerance default_tolerance(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return {1e-12, 1e-14};
    case Dtype::f32:
      return {1e-5, 1e-6};
    case Dtype::tf32:
      return {1e-3, 1e-5};
    case Dtype::f16:
      return {2e-3, 1e-5};
    case Dtype::bf16:
      return {1.6e-2, 1e-5};
    case Dtype::e4m3:
      return {0.0625, 0.001953125};  // 2^-4, 2^-9
    case Dtype::e5m2:
      return {0.125, 0.0000152587890625};  // 2^-3, 2^-16
    default:
      return {0, 0};
  }
}

}  // namespace kgate
