import math

import torch
from torch import nn


def sequence_mask(X, valid_len, value=0.0):
    """Entries of each row from its valid length on get `value`."""
    positions = torch.arange(X.size(1), device=X.device)[None, :]
    return X.masked_fill(positions >= valid_len[:, None], value)


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    shape = X.shape
    rows = torch.repeat_interleave(valid_lens, shape[1]) if valid_lens.dim() == 1 else valid_lens.reshape(-1)
    return torch.softmax(sequence_mask(X.reshape(-1, shape[-1]), rows, -1e6).reshape(shape), dim=-1)


class DotProductAttention(nn.Module):
    def __init__(self, dropout, **kwargs):
        super().__init__(**kwargs)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        d = queries.shape[-1]
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(d)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)
