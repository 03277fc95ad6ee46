"""Misaligned: compiled as Triton does when the example arguments happened to be multiples of 16. The assumption is nowhere in the
kernel's source, only in the launch that it was specialised for; with rows of 31 columns its 16-byte accesses fault.
"""

import triton
import triton.language as tl

SIGNATURE = {"out": "*fp32", "x": "*fp32", "cols": "i32", "BLOCK": "constexpr"}
BUILDS = {"softmax_divisible": {"constants": {"BLOCK": 128}, "num_warps": 1, "divisible_by_16": ["out", "x", "cols"]}}


@triton.jit
def softmax_triton(out, x, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < cols
    values = tl.load(x + row * cols + offsets, mask=inside, other=-float("inf"))
    exponentials = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * cols + offsets, exponentials / tl.sum(exponentials, axis=0), mask=inside)


KERNEL = softmax_triton
