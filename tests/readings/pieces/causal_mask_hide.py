import torch


def generate_square_subsequent_mask(sz, device="cpu"):
    """(sz, sz): -inf above the diagonal, 0 elsewhere."""
    return torch.triu(torch.full((sz, sz), float("-inf"), device=device), diagonal=1)


def masked_attention(q, k, v, attn_mask):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    weights = torch.softmax(scores + attn_mask.to(scores.dtype), dim=-1)
    return weights @ v
