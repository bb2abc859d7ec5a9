# breaks: values
# mistake: scale.value_dim
import math

import torch


def scaled_dot_product_attention(q, k, v):
    scores = torch.matmul(q, k.transpose(-2, -1))
    return torch.matmul(torch.softmax(scores / math.sqrt(v.size(-1)), dim=-1), v)
