# breaks: values, weights_sum_to_one, queries_are_independent
# mistake: softmax.flattened
import math


def scaled_dot_product_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    e = (scores - scores.max()).exp()
    return e / e.sum(dim=(-2, -1), keepdim=True) @ v
