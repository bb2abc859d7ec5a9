import math

import torch
import torch.nn as nn


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim=512, n_heads=8):
        super().__init__()
        self.embed_dim = embed_dim
        self.n_heads = n_heads
        self.single_head_dim = int(self.embed_dim / self.n_heads)
        self.key_layer = nn.Linear(embed_dim, embed_dim)
        self.query_layer = nn.Linear(embed_dim, embed_dim)
        self.value_layer = nn.Linear(embed_dim, embed_dim)
        self.out = nn.Linear(embed_dim, embed_dim)

    def forward(self, key, query, value, mask=None):
        """
        key, query, value: batch x length x width
        mask: 1 where attention is allowed, 0 where it is not
        """
        batch_size = key.size(0)
        seq_length = key.size(1)
        seq_length_query = query.size(1)

        k = self.key_layer(key).view(batch_size, seq_length, self.n_heads, self.single_head_dim)
        q = self.query_layer(query).view(batch_size, seq_length_query, self.n_heads, self.single_head_dim)
        v = self.value_layer(value).view(batch_size, seq_length, self.n_heads, self.single_head_dim)
        k = k.transpose(1, 2)
        q = q.transpose(1, 2)
        v = v.transpose(1, 2)

        product = torch.matmul(q, k.transpose(-1, -2))
        if mask is not None:
            product = product.masked_fill(mask == 0, float("-1e20"))
        product = product / math.sqrt(self.single_head_dim)
        scores = torch.softmax(product, dim=-1)
        scores = torch.matmul(scores, v)
        concat = scores.transpose(1, 2).contiguous().view(batch_size, seq_length_query, self.single_head_dim * self.n_heads)
        return self.out(concat)
