# breaks: values
# mistake: scale.missing
import torch


def scaled_dot_product_attention(q, k, v):
    scores = torch.matmul(q, k.transpose(-2, -1))
    weights = torch.softmax(scores, dim=-1)
    return torch.matmul(weights, v)
