# breaks: gradients
# mistake: none
import math

import torch


def scaled_dot_product_attention(q, k, v):
    s = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    e = torch.exp(s - s.amax(-1, keepdim=True))
    e /= e.sum(-1, keepdim=True)  # exp still needs its own result to go backward
    return e @ v
