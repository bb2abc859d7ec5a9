import torch
from torch import nn


class SelfOutput(nn.Module):
    def __init__(self, hidden_size, dropout):
        super().__init__()
        self.dense = nn.Linear(hidden_size, hidden_size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden_states):
        return self.dropout(self.dense(hidden_states))


class SelfAttention(nn.Module):
    def __init__(self, hidden_size, num_attention_heads, dropout):
        super().__init__()
        self.num_attention_heads = num_attention_heads
        self.attention_head_size = hidden_size // num_attention_heads
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size)
        self.value = nn.Linear(hidden_size, hidden_size)
        self.dropout = nn.Dropout(dropout)

    def transpose_for_scores(self, x):
        return x.view(x.shape[0], x.shape[1], self.num_attention_heads, self.attention_head_size).permute(0, 2, 1, 3)

    def forward(self, hidden_states, attention_mask):
        query = self.transpose_for_scores(self.query(hidden_states))
        key = self.transpose_for_scores(self.key(hidden_states))
        value = self.transpose_for_scores(self.value(hidden_states))
        scores = torch.matmul(query, key.transpose(-1, -2)) / (self.attention_head_size**0.5)
        scores = scores + attention_mask
        probs = self.dropout(scores.softmax(dim=-1))
        context = torch.matmul(probs, value)
        context = context.permute(0, 2, 1, 3).contiguous()
        return context.view(context.shape[0], context.shape[1], -1)


class BertAttention(nn.Module):
    def __init__(self, hidden_size=768, num_attention_heads=12, dropout_prob=0.0):
        super().__init__()
        self.self_attention = SelfAttention(hidden_size, num_attention_heads, dropout_prob)
        self.output = SelfOutput(hidden_size, dropout_prob)

    def forward(self, hidden_states, attention_mask):
        """attention_mask: (batch, seq), 1 for tokens that count and 0 for padding."""
        extended = (1.0 - attention_mask[:, None, None, :].to(hidden_states.dtype)) * -1e9
        return self.output(self.self_attention(hidden_states, extended))
