import torch


def dot_product_attention(queries, keys, values):
    """queries (batch, n, d), keys (batch, m, d), values (batch, m, e)."""
    d = queries.shape[-1]
    scores = torch.bmm(queries, keys.transpose(1, 2)) / d**0.5
    weights = torch.softmax(scores, dim=-1)
    return torch.bmm(weights, values)
