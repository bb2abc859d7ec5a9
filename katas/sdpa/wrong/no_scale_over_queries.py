# breaks: values, weights_sum_to_one, queries_are_independent
# mistake: scale.missing + softmax.query_axis
import torch


def scaled_dot_product_attention(query, key, value):
    attn = torch.softmax(query @ key.transpose(-2, -1), dim=-2)
    return attn @ value
