# breaks: output_dtype, float32, half_precision
# mistake: none
import torch


def scaled_dot_product_attention(q, k, v):
    root = torch.tensor([q.shape[-1]], dtype=torch.float64, device=q.device).sqrt()
    return (q @ k.transpose(-2, -1) / root).softmax(-1).type_as(root) @ v
