import torch


def get_causal_mask(seq_len):
    """(1, 1, seq_len, seq_len), True where a key is hidden: later positions."""
    return torch.triu(torch.ones(1, 1, seq_len, seq_len), diagonal=1).bool()
