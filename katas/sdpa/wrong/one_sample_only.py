# breaks: values, leading_dimensions_are_independent
# mistake: none
import math


def scaled_dot_product_attention(q, k, v):
    w = (q[:1] @ k[:1].transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1)
    return w @ v if q.dim() > 2 else (q @ k.T / math.sqrt(q.shape[-1])).softmax(-1) @ v
