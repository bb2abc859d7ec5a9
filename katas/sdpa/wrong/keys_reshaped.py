# breaks: values
# mistake: score.reshaped
import math


def scaled_dot_product_attention(q, k, v):
    kt = k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2])
    return (q @ kt / math.sqrt(q.shape[-1])).softmax(-1) @ v
