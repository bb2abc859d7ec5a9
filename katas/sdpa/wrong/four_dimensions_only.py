# breaks: any_leading_dimensions
# mistake: none
import math

import torch


def scaled_dot_product_attention(q, k, v):
    batch, heads, length, d = q.shape
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(d)
    return torch.einsum("bhij,bhje->bhie", torch.softmax(scores, dim=-1), v)
