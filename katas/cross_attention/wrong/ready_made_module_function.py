# breaks: from_scratch
# mistake: none
import torch
from torch import nn
from torch.nn.functional import multi_head_attention_forward as mha


class CrossAttention(nn.Module):
    def __init__(self, embed_dim, context_dim, num_heads):
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError("embed_dim must be divisible by num_heads")
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(context_dim, embed_dim)
        self.v_proj = nn.Linear(context_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, context, keep=None):
        out, _ = mha(
            x.transpose(0, 1), context.transpose(0, 1), context.transpose(0, 1), x.size(-1), self.num_heads,
            None, torch.cat([self.q_proj.bias, self.k_proj.bias, self.v_proj.bias]), None, None, False, 0.0,
            self.o_proj.weight, self.o_proj.bias, training=self.training,
            key_padding_mask=None if keep is None else ~keep, need_weights=True, use_separate_proj_weight=True,
            q_proj_weight=self.q_proj.weight, k_proj_weight=self.k_proj.weight, v_proj_weight=self.v_proj.weight,
        )  # fmt: skip
        return out.transpose(0, 1)
