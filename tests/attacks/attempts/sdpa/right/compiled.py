# torch.compile as a decorator, with a backend, and as a call.
# outcome: passed
import torch


@torch.compile
def scores(q, k):
    return q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5


@torch.compile(backend="eager", dynamic=True)
def weights(q, k):
    return scores(q, k).softmax(-1)


def attend(q, k, v):
    return weights(q, k) @ v


scaled_dot_product_attention = torch.compile(attend, backend="eager")
