# Vector addition, softmax and matrix product in Triton, to record; and a second softmax, which takes four rows a program,
# written as a cubin for another grid. Usage: triton_softmax.py [CUBIN]
import sys
import torch
import triton
import triton.language as tl


@triton.jit
def add(out, a, b, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(a + i, i < n) + tl.load(b + i, i < n), i < n)


@triton.jit
def softmax(out, x, stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + i, i < cols, -float("inf"))
    v = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * stride + i, v / tl.sum(v, 0), i < cols)


@triton.jit
def softmax_four(out, x, stride, cols, rows, BLOCK: tl.constexpr):
    for k in range(4):
        row = tl.program_id(0) * 4 + k
        if row < rows:
            i = tl.arange(0, BLOCK)
            v = tl.load(x + row * stride + i, i < cols, -float("inf"))
            v = tl.exp(v - tl.max(v, 0))
            tl.store(out + row * stride + i, v / tl.sum(v, 0), i < cols)


@triton.jit
def matmul(c, a, b, n, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, n, BLOCK):
        i = k + tl.arange(0, BLOCK)
        acc += tl.dot(tl.load(a + r[:, None] * n + i[None, :]), tl.load(b + i[:, None] * n + q[None, :]))
    tl.store(c + r[:, None] * n + q[None, :], acc)


torch.manual_seed(0)
n, rows, cols = 1 << 16, 256, 1000
a, b = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
c = torch.empty_like(a)
x = torch.randn(rows, cols, device="cuda")
y = torch.empty_like(x)
m = torch.randn(256, 256, device="cuda")
p = torch.empty_like(m)
for _ in range(20):
    add[(triton.cdiv(n, 1024),)](c, a, b, n, BLOCK=1024)
    softmax[(rows,)](y, x, cols, cols, BLOCK=1024, num_warps=4)
    matmul[(4, 4)](p, m, m, 256, BLOCK=64)
    torch.cuda.synchronize()
print("sum %.4f" % (c.sum() + y.sum() + p.sum()).item())
if len(sys.argv) > 1:
    kernel = softmax_four.warmup(y, x, cols, cols, rows, BLOCK=1024, num_warps=4, grid=(rows // 4,))
    with open(sys.argv[1], "wb") as file:
        file.write(kernel.asm["cubin"])
    print("second softmax: %d bytes of shared memory" % kernel.metadata.shared)
