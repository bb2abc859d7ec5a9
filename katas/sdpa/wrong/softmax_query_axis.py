# breaks: values, weights_sum_to_one, queries_are_independent
# mistake: softmax.query_axis
import math

import torch


def scaled_dot_product_attention(q, k, v):
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
    return torch.matmul(torch.softmax(scores, dim=-2), v)
