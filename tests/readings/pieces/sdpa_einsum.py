import torch


def sdpa_einsum(q, k, v, *, bias=None, need_weights=False):
    """bias is added to the scores."""
    scores = torch.einsum("...qd,...kd->...qk", q, k)
    scores = scores * q.shape[-1] ** -0.5
    if bias is not None:
        scores = scores + bias
    weights = scores.softmax(-1)
    out = torch.einsum("...qk,...kd->...qd", weights, v)
    return (out, weights) if need_weights else out
