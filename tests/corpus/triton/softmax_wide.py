"""Slow: right numbers, but tuned for rows that production does not have. One warp carries a block of 4096 columns, 128 a lane, most of
them masked; and maximum and sum are taken from memory again for the result.
"""

import triton
import triton.language as tl

SIGNATURE = {"out": "*fp32", "x": "*fp32", "cols": "i32", "BLOCK": "constexpr"}
BUILDS = {"softmax_wide": {"constants": {"BLOCK": 4096}, "num_warps": 1}}


@triton.jit
def softmax_triton(out, x, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < cols
    values = tl.load(x + row * cols + offsets, mask=inside, other=-float("inf"))
    largest = tl.max(values, axis=0)
    total = tl.sum(tl.exp(values - largest), axis=0)
    again = tl.load(x + row * cols + offsets, mask=inside, other=-float("inf"), volatile=True)
    tl.store(out + row * cols + offsets, tl.exp(again - largest) / total, mask=inside)


KERNEL = softmax_triton
