# breaks: values
# mistake: scale.inverted
import math

import torch


def scaled_dot_product_attention(q, k, v):
    scale = math.sqrt(q.shape[-1])
    return torch.softmax(torch.einsum("...qd,...kd->...qk", q, k) * scale, dim=-1) @ v
