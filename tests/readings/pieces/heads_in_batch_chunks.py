import torch
import torch.nn as nn


class MultiheadAttention(nn.Module):
    def __init__(self, num_units, num_heads=8):
        super().__init__()
        self.num_heads = num_heads
        self.Q_proj = nn.Linear(num_units, num_units)
        self.K_proj = nn.Linear(num_units, num_units)
        self.V_proj = nn.Linear(num_units, num_units)

    def forward(self, queries, keys, key_masks=None):
        """
        queries: (N, T_q, C)
        keys: (N, T_k, C)
        key_masks: (N, T_k), 1 for words and 0 for padding
        """
        Q = self.Q_proj(queries)
        K = self.K_proj(keys)
        V = self.V_proj(keys)

        # split along the features, stack along the batch: (h*N, T, C/h)
        Q_ = torch.cat(torch.chunk(Q, self.num_heads, dim=2), dim=0)
        K_ = torch.cat(torch.chunk(K, self.num_heads, dim=2), dim=0)
        V_ = torch.cat(torch.chunk(V, self.num_heads, dim=2), dim=0)

        outputs = torch.bmm(Q_, K_.permute(0, 2, 1))
        outputs = outputs / (K_.size(-1) ** 0.5)

        if key_masks is not None:
            masks = key_masks.repeat(self.num_heads, 1).unsqueeze(1)  # (h*N, 1, T_k)
            outputs = outputs.masked_fill(masks == 0, -(2.0**32) + 1)

        outputs = torch.softmax(outputs, dim=-1)
        outputs = torch.bmm(outputs, V_)
        return torch.cat(torch.chunk(outputs, self.num_heads, dim=0), dim=2)
