# breaks: values, weights_sum_to_one, leading_dimensions_are_independent
# mistake: softmax.head_axis
import math

import torch.nn.functional as F


def scaled_dot_product_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    return F.softmax(scores) @ v
