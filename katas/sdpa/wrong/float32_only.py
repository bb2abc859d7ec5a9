# breaks: output_shape
# mistake: numerics.forced_float32
import math

import torch


def scaled_dot_product_attention(q, k, v):
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1, dtype=torch.float32)
    return weights @ v
