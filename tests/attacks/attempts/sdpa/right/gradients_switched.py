# Gradients are switched off at import and on again where they matter.
# outcome: passed
import torch

torch.set_grad_enabled(False)


def scaled_dot_product_attention(q, k, v):
    with torch.enable_grad():
        torch.autograd.set_detect_anomaly(False)
        return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
