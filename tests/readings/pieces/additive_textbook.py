import torch
from torch import nn


def masked_softmax(X, valid_lens):
    """X (batch, queries, keys), valid_lens (batch,): softmax over the first keys only."""
    if valid_lens is None:
        return X.softmax(dim=-1)
    beyond = torch.arange(X.shape[-1], device=X.device)[None, None, :] >= valid_lens[:, None, None]
    return X.masked_fill(beyond, -1e6).softmax(dim=-1)


class AdditiveAttention(nn.Module):
    def __init__(self, key_size, query_size, num_hiddens, dropout):
        super().__init__()
        self.W_k = nn.Linear(key_size, num_hiddens, bias=False)
        self.W_q = nn.Linear(query_size, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        queries, keys = self.W_q(queries), self.W_k(keys)
        features = torch.tanh(queries.unsqueeze(2) + keys.unsqueeze(1))  # (batch, queries, keys, num_hiddens)
        scores = self.w_v(features).squeeze(-1)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)
