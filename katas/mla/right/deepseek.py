# style: as DeepSeek's modelling code: parts concatenated into whole queries and keys, the rotary key expanded; complex turn
# edge fails: float64_throughout
import torch
import torch.nn.functional as F
from torch import nn


def precompute(dim, seqlen, device):
    freqs = 1.0 / (10000.0 ** (torch.arange(0, dim, 2, dtype=torch.float32, device=device) / dim))
    freqs = torch.outer(torch.arange(seqlen, device=device), freqs)
    return torch.polar(torch.ones_like(freqs), freqs)


def apply_rotary_emb(x, freqs_cis):
    dtype = x.dtype
    x = x if dtype == torch.float64 else x.float()
    x = torch.view_as_complex(x.contiguous().view(*x.shape[:-1], -1, 2))
    y = torch.view_as_real(x * freqs_cis.view(1, x.size(1), 1, x.size(-1))).flatten(3)
    return y.to(dtype)


class LatentAttention(nn.Module):
    def __init__(self, dim, n_heads, qk_nope_head_dim, kv_lora_rank, qk_rope_head_dim):
        super().__init__()
        if qk_rope_head_dim % 2:
            raise ValueError("qk_rope_head_dim")
        self.n_heads, self.nope, self.rope = n_heads, qk_nope_head_dim, qk_rope_head_dim
        self.softmax_scale = (self.nope + self.rope) ** -0.5
        self.q_proj = nn.Linear(dim, n_heads * (self.nope + self.rope), bias=False)
        self.kv_down = nn.Linear(dim, kv_lora_rank, bias=False)
        self.k_rope = nn.Linear(dim, self.rope, bias=False)
        self.k_up = nn.Linear(kv_lora_rank, n_heads * self.nope, bias=False)
        self.v_up = nn.Linear(kv_lora_rank, n_heads * self.nope, bias=False)
        self.o_proj = nn.Linear(n_heads * self.nope, dim, bias=False)

    def forward(self, x):
        bsz, seqlen, _ = x.size()
        freqs_cis = precompute(self.rope, seqlen, x.device)
        q = self.q_proj(x).view(bsz, seqlen, self.n_heads, self.nope + self.rope)
        q_nope, q_pe = torch.split(q, [self.nope, self.rope], dim=-1)
        q = torch.cat([q_nope, apply_rotary_emb(q_pe, freqs_cis)], dim=-1)
        k_pe = apply_rotary_emb(self.k_rope(x).unsqueeze(2), freqs_cis)
        kv = self.kv_down(x)
        k_nope = self.k_up(kv).view(bsz, seqlen, self.n_heads, self.nope)
        k = torch.cat([k_nope, k_pe.expand(-1, -1, self.n_heads, -1)], dim=-1)
        v = self.v_up(kv).view(bsz, seqlen, self.n_heads, self.nope)
        scores = torch.einsum("bshd,bthd->bsht", q, k) * self.softmax_scale
        mask = torch.full((seqlen, seqlen), float("-inf"), device=x.device).triu_(1)
        scores = scores + mask.unsqueeze(1)
        scores = F.softmax(scores, dim=-1, dtype=torch.promote_types(x.dtype, torch.float32)).type_as(x)
        return self.o_proj(torch.einsum("bsht,bthd->bshd", scores, v).flatten(2))
