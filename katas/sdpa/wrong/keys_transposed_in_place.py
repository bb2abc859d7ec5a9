# breaks: inputs_unmodified
# mistake: inputs.modified
import math


def scaled_dot_product_attention(q, k, v):
    k.transpose_(-2, -1)
    return (q @ k / math.sqrt(q.shape[-1])).softmax(-1) @ v
