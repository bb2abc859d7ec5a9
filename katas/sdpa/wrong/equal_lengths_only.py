# breaks: output_shape
# mistake: context.query_length
import math


def scaled_dot_product_attention(q, k, v):
    *lead, T, D = q.shape
    k = k.reshape(*lead, T, D)
    v = v.reshape(*lead, T, v.shape[-1])
    return (q @ k.transpose(-2, -1) / math.sqrt(D)).softmax(-1) @ v
