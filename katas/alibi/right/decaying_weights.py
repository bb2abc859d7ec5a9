# style: the penalty as a factor exp(-slope * distance) on exp of the scores, 0 in the future
# edge fails: large_scores
import torch


def alibi_slopes(num_heads):
    ratio = lambda n: torch.tensor(0.5, dtype=torch.float64) ** (8 / n)  # noqa: E731
    n = 2 ** (len(bin(num_heads)) - 3)
    return torch.cat([ratio(n).repeat(n).cumprod(0), ratio(2 * n).repeat(2 * n).cumprod(0)[::2]])[:num_heads]


def alibi_attention(q, k, v):
    H, Tq, Tk = q.shape[1], q.shape[2], k.shape[2]
    age = (torch.arange(Tk, device=q.device)[Tk - Tq :, None] - torch.arange(Tk, device=q.device)).to(q.dtype)
    decay = torch.exp(-alibi_slopes(H).to(q)[:, None, None] * age.clamp_min(0)) * (age >= 0)
    s = q @ k.mT / q.shape[-1] ** 0.5
    e = (s - s.amax(-1, keepdim=True)).exp() * decay
    return (e / e.sum(-1, keepdim=True)) @ v
