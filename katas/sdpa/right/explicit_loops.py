# style: one query at a time, plain loops, lists and stack
import math

import torch


def one_query(query, keys, values):
    scores = torch.stack([torch.dot(query, key) / math.sqrt(len(query)) for key in keys])
    weights = torch.softmax(scores, 0)
    result = 0
    for weight, value in zip(weights, values):
        result = result + weight * value
    return result


def scaled_dot_product_attention(q, k, v):
    if q.dim() > 2:
        return torch.stack([scaled_dot_product_attention(*parts) for parts in zip(q, k, v)])
    return torch.stack([one_query(row, k, v) for row in q])
