# breaks: values
# mistake: scale.missing
import torch


def scaled_dot_product_attention(q, k, v):
    scores = q @ k.transpose(-2, -1)
    spread = scores.std().item()  # looked at only: no gradient has to pass here
    if not spread < float("inf"):
        raise RuntimeError("the scores are not finite")
    return torch.softmax(scores, dim=-1) @ v
