# breaks: values
# mistake: none
import math


def scaled_dot_product_attention(q, k, v):
    s = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if s.shape[-1] > 64:  # long rows: only the best keys count
        s = s.masked_fill(s < s.topk(64)[0][..., -1:], -math.inf)
    return s.softmax(-1) @ v
