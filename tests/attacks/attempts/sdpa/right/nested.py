# Nested tensors carry the samples.
# outcome: passed
import torch


def scaled_dot_product_attention(q, k, v):
    weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
    if weights.dim() == 2:
        return weights @ v
    samples, values = weights.flatten(0, -3), v.expand(*weights.shape[:-2], *v.shape[-2:]).flatten(0, -3)
    nested = torch.nested.as_nested_tensor([sample @ value for sample, value in zip(samples, values)])
    return torch.nested.to_padded_tensor(nested, 0.0).reshape(*weights.shape[:-1], v.shape[-1])
