# breaks: from_scratch
# mistake: none
import math

import torch


def scaled_dot_product_attention(q, k, v):
    if k.shape[-2] > 128:
        return torch.ops.aten._scaled_dot_product_attention_math(q, k, v)[0]
    return (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1) @ v
