# breaks: output_shape
# mistake: project.swapped
import math


def scaled_dot_product_attention(q, k, v):
    scores = k @ q.transpose(-2, -1) / math.sqrt(q.size(-1))
    return scores.softmax(-1) @ v
