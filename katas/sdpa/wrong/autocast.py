# breaks: output_dtype, float32
# mistake: none
import math

import torch


@torch.autocast("cpu", dtype=torch.bfloat16)
def scaled_dot_product_attention(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1) @ v
