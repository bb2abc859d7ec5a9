# breaks: gradients
# mistake: gradient.detached
import math


def scaled_dot_product_attention(q, k, v):
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1)
    return weights.detach() @ v
