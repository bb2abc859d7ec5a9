# style: no mask in the attention: explicit loops, each query sees a slice of the keys
import torch


def causal_mask(num_queries, num_keys, device=None):
    mask = torch.zeros((num_queries, num_keys), dtype=torch.bool, device=device)
    for i in range(num_queries):
        mask[i, : num_keys - num_queries + i + 1] = True
    return mask


def causal_attention(q, k, v):
    tq, tk, d = q.shape[2], k.shape[2], q.shape[3]
    rows = []
    for i in range(tq):
        end = tk - tq + i + 1
        qi = q[:, :, i : i + 1]  # (B, H, 1, D)
        s = (qi * k[:, :, :end]).sum(-1) / d**0.5  # (B, H, end)
        s = s - s.max(dim=-1, keepdim=True).values
        w = s.exp()
        w = w / w.sum(dim=-1, keepdim=True)
        rows.append((w.unsqueeze(-1) * v[:, :, :end]).sum(dim=2))
    return torch.stack(rows, dim=2)
