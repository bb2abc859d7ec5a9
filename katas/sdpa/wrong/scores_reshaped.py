# breaks: values, queries_are_independent
# mistake: score.reshaped
import math


def scaled_dot_product_attention(q, k, v):
    # keys against queries, then reshape where a transpose is meant
    scores = (k @ q.transpose(-2, -1)).reshape(*q.shape[:-1], k.shape[-2])
    return (scores / math.sqrt(q.shape[-1])).softmax(-1) @ v
