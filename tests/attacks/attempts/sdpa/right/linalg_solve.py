# The weights are the solution of a diagonal system.
# outcome: passed
import torch


def scaled_dot_product_attention(q, k, v):
    scores = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).to(torch.float64)
    raised = (scores - scores.amax(-1, keepdim=True)).exp()
    sums = torch.diag_embed(raised.sum(-1))
    return torch.linalg.solve(sums, raised).to(v.dtype) @ v
