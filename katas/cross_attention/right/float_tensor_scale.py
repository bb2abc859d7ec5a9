# style: the scale as a float32 tensor made on the first call, view(B, -1, H, D) and permute, -1e10
# edge fails: nothing_to_attend_to, half_precision, float64_throughout
import torch
import torch.nn as nn


class CrossAttention(nn.Module):
    def __init__(self, embed_dim, context_dim, num_heads):
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError("embed_dim % num_heads must be 0")
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(context_dim, embed_dim)
        self.v_proj = nn.Linear(context_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)
        self.scale = None

    def forward(self, x, context, keep=None):
        if self.scale is None:
            self.scale = torch.sqrt(torch.FloatTensor([self.head_dim])).to(x.device)
        B = x.shape[0]
        Q = self.q_proj(x).view(B, -1, self.num_heads, self.head_dim).permute(0, 2, 1, 3)
        K = self.k_proj(context).view(B, -1, self.num_heads, self.head_dim).permute(0, 2, 1, 3)
        V = self.v_proj(context).view(B, -1, self.num_heads, self.head_dim).permute(0, 2, 1, 3)
        energy = torch.matmul(Q, K.permute(0, 1, 3, 2)) / self.scale
        if keep is not None:
            energy = energy.masked_fill(keep[:, None, None, :] == 0, -1e10)
        out = torch.matmul(torch.softmax(energy, dim=-1), V)
        out = out.permute(0, 2, 1, 3).contiguous().view(B, -1, self.num_heads * self.head_dim)
        return self.o_proj(out)
