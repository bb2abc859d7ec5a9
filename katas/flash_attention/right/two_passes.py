# style: two passes over the tiles: first lse of each query, then the weights with it, which need no rescaling
# edge fails: future_skipped
import torch


def flash_attention(q, k, v, block_q, block_k, causal=False):
    Tq, Tk = q.shape[-2], k.shape[-2]

    def tiles(i):
        queries = q[:, :, i : i + block_q] * q.shape[-1] ** -0.5
        at = torch.arange(i, i + queries.shape[2], device=q.device).unsqueeze(1) + Tk - Tq
        for j in range(0, Tk, block_k):
            scores = queries @ k[:, :, j : j + block_k].swapaxes(-1, -2)
            if causal:
                scores = torch.where(torch.arange(j, j + scores.shape[-1], device=q.device) <= at, scores, -torch.inf)
            yield j, scores

    outs, lses = [], []
    for i in range(0, Tq, block_q):
        lse = None
        for _, scores in tiles(i):
            part = scores.logsumexp(-1)
            lse = part if lse is None else torch.logaddexp(lse, part)
        outs.append(sum((s - lse[..., None]).exp() @ v[:, :, j : j + block_k] for j, s in tiles(i)))
        lses.append(lse)
    return torch.cat(outs, -2), torch.cat(lses, -1)
