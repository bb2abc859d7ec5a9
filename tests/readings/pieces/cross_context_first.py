import torch
import torch.nn as nn


class EncoderDecoderAttention(nn.Module):
    def __init__(self, d_model, d_memory, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.wq = nn.Linear(d_model, d_model)
        self.wk = nn.Linear(d_memory, d_model)
        self.wv = nn.Linear(d_memory, d_model)
        self.wo = nn.Linear(d_model, d_model)

    def _heads(self, t):
        return t.view(t.size(0), t.size(1), self.num_heads, self.d_k).transpose(1, 2)

    def forward(self, memory, x, memory_mask=None):
        # memory: what the encoder returned; memory_mask: 1 = token, 0 = padding
        q = self._heads(self.wq(x))
        k = self._heads(self.wk(memory))
        v = self._heads(self.wv(memory))
        scores = q @ k.transpose(2, 3) / self.d_k**0.5
        if memory_mask is not None:
            scores = scores.masked_fill(memory_mask == 0, -1e9)
        probs = torch.softmax(scores, dim=-1)
        out = probs @ v
        out = out.transpose(1, 2).contiguous().view(x.size(0), x.size(1), -1)
        return self.wo(out)
