# breaks: output_dtype, float64_throughout, half_precision
# mistake: numerics.forced_float32
import math


def scaled_dot_product_attention(q, k, v):
    q, k, v = q.float(), k.float(), v.float()
    return (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1) @ v
