# breaks: from_scratch
# mistake: none
import torch
import torch.nn.functional as F
from torch import nn


class FusedQKVSelfAttention(nn.Module):
    def __init__(self, input_dim, output_dim):
        super().__init__()
        self.qkv_proj = nn.Linear(input_dim, 3 * output_dim)
        self.output_dim = output_dim

    def forward(self, x):
        D = self.output_dim
        eye = torch.eye(D, dtype=x.dtype, device=x.device)
        qkv = self.qkv_proj(x).transpose(0, 1)
        out, _ = F.multi_head_attention_forward(
            *qkv.chunk(3, dim=-1), D, 1, torch.cat([eye] * 3), None, None, None, False, 0.0, eye, None
        )
        return out.transpose(0, 1)
