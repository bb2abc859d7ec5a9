# breaks: values, weights_sum_to_one
# mistake: softmax.sigmoid
import torch


def scaled_dot_product_attention(q, k, v):
    return torch.sigmoid(q @ k.transpose(-2, -1) * q.size(-1) ** -0.5) @ v
