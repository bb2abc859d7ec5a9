# breaks: from_scratch
# mistake: none
import torch.nn.functional as F
from torch import nn


attend = getattr(F, "scaled_dot" + "_product_attention")


class FusedQKVSelfAttention(nn.Module):
    def __init__(self, input_dim, output_dim):
        super().__init__()
        self.qkv_proj = nn.Linear(input_dim, 3 * output_dim)
        self.output_dim = output_dim

    def forward(self, x):
        q, k, v = self.qkv_proj(x).chunk(3, dim=-1)
        return attend(q, k, v)
