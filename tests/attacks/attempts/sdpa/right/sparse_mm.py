# The weights are a sparse matrix, sample by sample.
# outcome: passed
import torch

HALF = (torch.float16, torch.bfloat16)


def scaled_dot_product_attention(q, k, v):
    if q.dtype in HALF:
        return scaled_dot_product_attention(q.float(), k.float(), v.float()).to(q.dtype)
    weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
    if weights.dim() == 2:
        return torch.sparse.mm(weights.to_sparse(), v)
    samples, values = weights.flatten(0, -3), v.expand(*weights.shape[:-2], *v.shape[-2:]).flatten(0, -3)
    out = [torch.sparse.mm(one.to_sparse(), other) for one, other in zip(samples, values)]
    return torch.stack(out).reshape(*weights.shape[:-1], v.shape[-1])
