# A TransformerEncoderLayer in half precision, eager or as a CUDA graph, to record. Usage: torch_encoder.py [graph]
import sys
import torch

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(512, 8, 1024, batch_first=True).half().cuda().eval()
x = torch.randn(8, 64, 512, device="cuda", dtype=torch.half)
with torch.no_grad():
    if "graph" in sys.argv:
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                y = layer(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = layer(x)
        for _ in range(20):
            graph.replay()
            torch.cuda.synchronize()
    else:
        for _ in range(20):
            y = layer(x)
            torch.cuda.synchronize()
print("sum %.4f" % y.float().sum().item())
