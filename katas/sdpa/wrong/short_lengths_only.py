# breaks: values
# mistake: none
import math

BLOCK = 128


def scaled_dot_product_attention(q, k, v):
    q, k, v = q, k[..., :BLOCK, :], v[..., :BLOCK, :]
    return (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1) @ v
