import torch
import torch.nn as nn


class RoPE(nn.Module):
    def __init__(self, head_dim, base=10000):
        super().__init__()
        self.head_dim = head_dim
        self.base = base

    def forward(self, x):
        B, T, H, D = x.shape
        pair = torch.arange(D // 2, device=x.device, dtype=torch.float64)
        freq = self.base ** (-2 * pair / D)
        angle = torch.arange(T, device=x.device).unsqueeze(1) * freq.unsqueeze(0)
        cos = angle.cos()[None, :, None, :].to(x.dtype)
        sin = angle.sin()[None, :, None, :].to(x.dtype)
        first, second = x[..., 0::2], x[..., 1::2]
        turned = torch.stack((first * cos - second * sin, first * sin + second * cos), dim=-1)
        return turned.reshape(B, T, H, D)
