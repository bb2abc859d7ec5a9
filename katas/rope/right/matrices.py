# style: a rotation matrix for each position and pair, and a product with it
import torch


def apply_rope(x, positions, base=10000.0):
    B, H, T, D = x.shape
    if D % 2 != 0:
        raise ValueError("pairs need an even D")
    places = positions.expand(B, T).to(torch.float64)
    exponent = torch.linspace(0, 1 - 2 / D, D // 2, dtype=torch.float64, device=x.device)
    a = places.unsqueeze(-1) * torch.exp(-exponent * torch.tensor(base, dtype=torch.float64).log().item())
    turn = torch.stack([a.cos(), -a.sin(), a.sin(), a.cos()], dim=-1).view(B, 1, T, D // 2, 2, 2).to(x.dtype)
    return (turn @ x.reshape(B, H, T, D // 2, 2, 1)).reshape(B, H, T, D)


def rope_attention(q, k, v, positions):
    q = apply_rope(q, positions)
    k = apply_rope(k, positions)
    s = torch.baddbmm(
        q.new_zeros(()), q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2), beta=0, alpha=q.shape[-1] ** -0.5
    )
    return torch.bmm(s.softmax(-1), v.flatten(0, 1)).view(*q.shape[:3], -1)
