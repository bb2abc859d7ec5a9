# breaks: values
# mistake: scale.floor_division
import math

import torch.nn.functional as F


def scaled_dot_product_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) // math.sqrt(q.size(-1))
    return F.softmax(scores, dim=-1) @ v
