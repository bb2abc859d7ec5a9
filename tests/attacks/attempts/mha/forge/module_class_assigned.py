# The module becomes a ready-made one after it was built.
# outcome: failed
# fails: from_scratch
# says: calls F.multi_head_attention_forward
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError
        self.embed_dim, self.num_heads = embed_dim, num_heads
        for name in "qkvo":
            setattr(self, f"{name}_proj", nn.Linear(embed_dim, embed_dim))

    def forward(self, x, mask=None):
        p = self
        return nn.functional.multi_head_attention_forward(
            x.transpose(0, 1), x.transpose(0, 1), x.transpose(0, 1), p.embed_dim, p.num_heads, None,
            torch.cat([p.q_proj.bias, p.k_proj.bias, p.v_proj.bias]), None, None, False, 0.0,
            p.o_proj.weight, p.o_proj.bias, training=False, use_separate_proj_weight=True,
            q_proj_weight=p.q_proj.weight, k_proj_weight=p.k_proj.weight, v_proj_weight=p.v_proj.weight,
            need_weights=True,
        )[0].transpose(0, 1)
