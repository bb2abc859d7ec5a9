# The samples are computed in a pool of threads.
# outcome: passed
from concurrent.futures import ThreadPoolExecutor

import torch

pool = ThreadPoolExecutor(2)


def one(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v


def scaled_dot_product_attention(q, k, v):
    if q.dim() < 4:
        return one(q, k, v)
    return torch.stack([future.result() for future in [pool.submit(one, *sample) for sample in zip(q, k, v)]])
