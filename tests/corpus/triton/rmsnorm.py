"""Good: one program a row, the whole row in registers. BLOCK is the hidden size of the decode step."""

import triton
import triton.language as tl

SIGNATURE = {"out": "*fp32", "x": "*fp32", "weight": "*fp32", "cols": "i32", "eps": "fp32", "BLOCK": "constexpr"}
BUILDS = {"rmsnorm": {"constants": {"BLOCK": 256}, "num_warps": 4}}


@triton.jit
def rmsnorm_triton(out, x, weight, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < cols
    values = tl.load(x + row * cols + offsets, mask=inside, other=0.0)
    scale = tl.rsqrt(tl.sum(values * values, axis=0) / cols + eps)
    weights = tl.load(weight + offsets, mask=inside, other=0.0)
    tl.store(out + row * cols + offsets, values * scale * weights, mask=inside)


KERNEL = rmsnorm_triton
