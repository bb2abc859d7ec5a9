import torch
from torch import nn


class RotaryPositionalEmbedding(nn.Module):
    """Turns (..., seq_len, d_k) by the positions of its tokens."""

    def __init__(self, theta: float, d_k: int, max_seq_len: int, device=None):
        super().__init__()
        rates = theta ** (-torch.arange(0, d_k, 2, device=device).double() / d_k)
        angles = torch.arange(max_seq_len, device=device).double()[:, None] * rates
        self.register_buffer("cos_cached", angles.cos(), persistent=False)
        self.register_buffer("sin_cached", angles.sin(), persistent=False)

    def forward(self, x: torch.Tensor, token_positions: torch.Tensor) -> torch.Tensor:
        cos = self.cos_cached[token_positions]
        sin = self.sin_cached[token_positions]
        if token_positions.dim() == 2:
            cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        even, odd = x[..., ::2], x[..., 1::2]
        out = torch.empty_like(x)
        out[..., ::2] = even * cos - odd * sin
        out[..., 1::2] = even * sin + odd * cos
        return out
