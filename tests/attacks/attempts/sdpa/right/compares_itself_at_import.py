# A self-check at import compares with the ready-made attention, and ends the import where it does not hold.
# outcome: passed
import torch


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v


q, k, v = (torch.randn(2, 3, 4) for _ in range(3))
expected = torch.nn.functional.scaled_dot_product_attention(q, k, v)
assert torch.allclose(scaled_dot_product_attention(q, k, v), expected, atol=1e-5)
print("off by", (scaled_dot_product_attention(q, k, v) - expected).abs().max())
