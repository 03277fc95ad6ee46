# A PyTorch program with a Triton kernel, for tracing: a small feed-forward step in fp16, a Triton softmax, eager and as a CUDA graph.
import sys

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(out, x, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < cols
    values = tl.load(x + row * cols + offsets, mask=mask, other=-float("inf"))
    values = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * cols + offsets, values / tl.sum(values, 0), mask=mask)


def step(x, w1, w2, out):
    y = torch.nn.functional.gelu(x @ w1) @ w2
    softmax_kernel[(y.shape[0],)](out, y, y.shape[1], BLOCK=triton.next_power_of_2(y.shape[1]))
    return out


loops = int(sys.argv[1]) if len(sys.argv) > 1 else 200
torch.manual_seed(0)
x = torch.randn(64, 512, device="cuda", dtype=torch.float16)
w1 = torch.randn(512, 2048, device="cuda", dtype=torch.float16) * 0.02
w2 = torch.randn(2048, 512, device="cuda", dtype=torch.float16) * 0.02
out = torch.empty(64, 512, device="cuda", dtype=torch.float16)
for _ in range(loops):
    step(x, w1, w2, out)
    torch.cuda.synchronize()

graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    step(x, w1, w2, out)
for _ in range(loops):
    graph.replay()
    torch.cuda.synchronize()
print(f"loops {loops}: softmax_kernel {2 * loops}, row sums {out.float().sum(1).mean().item():.3f}")
