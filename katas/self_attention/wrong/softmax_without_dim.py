# breaks: values, samples_are_independent
# mistake: softmax.head_axis
import warnings

import torch.nn.functional as F
from torch import nn

warnings.simplefilter("ignore")


class SelfAttention(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        self.q_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.k_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.v_proj = nn.Linear(input_dim, value_dim, bias=False)

    def forward(self, x):
        q, k = self.q_proj(x), self.k_proj(x)
        return F.softmax(q @ k.mT / q.shape[-1] ** 0.5) @ self.v_proj(x)
