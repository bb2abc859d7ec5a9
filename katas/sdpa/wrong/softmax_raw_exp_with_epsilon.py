# breaks: strong_scores, large_scores
# mistake: numerics.no_max
import math


def scaled_dot_product_attention(q, k, v):
    e = (q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))).exp()
    return e / (e.sum(-1, keepdim=True) + 1e-8) @ v
