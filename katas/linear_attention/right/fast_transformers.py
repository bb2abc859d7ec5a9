# style: as the authors' fast-transformers: (N, L, H, E), a normaliser Z with an epsilon, a product by einsum of three
# edge fails: far_below_zero, float64_throughout
import torch


def elu_feature_map(x):
    return torch.nn.functional.elu(x) + 1


def linear_attention(queries, keys, values, causal=False, eps=1e-6):
    Q, K, values = (part.transpose(1, 2) for part in (elu_feature_map(queries), elu_feature_map(keys), values))
    if not causal:
        KV = torch.einsum("nshd,nshm->nhmd", K, values)
        Z = 1 / (torch.einsum("nlhd,nhd->nlh", Q, K.sum(dim=1)) + eps)
        V = torch.einsum("nlhd,nhmd,nlh->nlhm", Q, KV, Z)
    else:
        Z = 1 / (torch.einsum("nlhi,nlhi->nlh", Q, K.cumsum(1)) + eps)
        V = causal_product(Q, K, values) * Z[:, :, :, None]
    return V.transpose(1, 2).contiguous()


def causal_product(Q, K, V):
    state = torch.zeros(*K[:, 0].shape, V.shape[-1], dtype=V.dtype, device=V.device)
    out = []
    for t in range(Q.shape[1]):
        state = state + K[:, t, :, :, None] * V[:, t, :, None, :]
        out.append((Q[:, t, :, :, None] * state).sum(-2))
    return torch.stack(out, dim=1)
