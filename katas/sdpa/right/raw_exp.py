# style: exp without taking the maximum off, sums by einsum
# edge fails: large_scores
import torch


def scaled_dot_product_attention(q, k, v):
    e = torch.einsum("...id,...jd->...ij", q, k).div(q.shape[-1] ** 0.5).exp()
    return (e @ v) / e.sum(-1, keepdim=True)
