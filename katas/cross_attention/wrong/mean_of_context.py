# breaks: values
# mistake: none
from torch import nn


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
        v = self.v_proj(context)
        if keep is None:
            mean = v.mean(dim=1, keepdim=True)
        else:
            flags = keep[..., None].to(v.dtype)
            mean = (v * flags).sum(dim=1, keepdim=True) / flags.sum(dim=1, keepdim=True)
        return self.o_proj(mean.expand(-1, x.size(1), -1))
