# style: bmm, the textbook lines, -inf before the softmax
# edge fails: nothing_to_attend_to
import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiplicativeAttention(nn.Module):
    def __init__(self, query_dim, key_dim):
        super(MultiplicativeAttention, self).__init__()
        self.k_proj = nn.Linear(key_dim, query_dim, bias=False)

    def forward(self, query, keys, values, keep=None):
        energy = torch.bmm(query, self.k_proj(keys).permute(0, 2, 1))
        if keep is not None:
            energy = energy.masked_fill(keep.unsqueeze(1) == 0, float("-inf"))
        return torch.bmm(F.softmax(energy, dim=2), values)
