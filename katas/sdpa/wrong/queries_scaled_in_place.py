# breaks: inputs_unmodified, gradients
# mistake: inputs.modified
import math


def scaled_dot_product_attention(q, k, v):
    q /= math.sqrt(q.shape[-1])
    return (q @ k.transpose(-2, -1)).softmax(-1) @ v
