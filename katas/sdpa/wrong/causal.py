# breaks: values
# mistake: none
import torch


def scaled_dot_product_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
    keep = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
    return scores.masked_fill(~keep, float("-inf")).softmax(-1) @ v
