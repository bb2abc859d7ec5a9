# breaks: values, weights_sum_to_one
# mistake: scale.no_sqrt + softmax.sigmoid
import torch


def scaled_dot_product_attention(query, key, value):
    return torch.sigmoid(query @ key.transpose(-2, -1) / key.shape[-1]) @ value
