# breaks: strong_scores, large_scores
# mistake: none
import math

import torch


def scaled_dot_product_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = torch.clamp(scores, -10, 10)  # against overflow
    return scores.softmax(-1) @ v
