# style: explicit loops over samples, heads and queries; what is masked is left out
import torch


def combine_masks(keep, causal):
    rows = [causal & keep[b] for b in range(len(keep))]
    return torch.stack(rows).unsqueeze(1)


def masked_attention(q, k, v, mask):
    B, H, Tq, D = q.shape
    mask = mask.expand(B, H, Tq, k.shape[2])
    out = q.new_zeros(B, H, Tq, v.shape[-1])
    for b in range(B):
        for h in range(H):
            for i in range(Tq):
                seen = mask[b, h, i]
                if seen.any():
                    scores = k[b, h][seen] @ q[b, h, i] / D**0.5
                    out[b, h, i] = torch.softmax(scores, dim=0) @ v[b, h][seen]
    return out
