# breaks: gradients
# mistake: gradient.detached
import math

import torch


@torch.no_grad()
def scaled_dot_product_attention(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1) @ v
