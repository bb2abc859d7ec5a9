import torch


def build_causal_mask(q_len, kv_len, device="cpu"):
    """(q_len, kv_len): True = attend. The queries are the last positions."""
    rows = torch.arange(q_len, device=device)[:, None] + (kv_len - q_len)
    return rows >= torch.arange(kv_len, device=device)
