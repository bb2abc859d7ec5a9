# A self-check against the ready-made attention, for when the file is run.
# outcome: passed
import torch
from torch.nn.functional import scaled_dot_product_attention as ready_made


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v


def check():
    q, k, v = torch.randn(3, 2, 3, 4, 5).unbind()
    torch.testing.assert_close(scaled_dot_product_attention(q, k, v), ready_made(q, k, v))


if __name__ == "__main__":
    check()
