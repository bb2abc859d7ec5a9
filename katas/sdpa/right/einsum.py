# style: einsum over an ellipsis
import torch


def scaled_dot_product_attention(query, key, value):
    d = query.size(-1)
    logits = torch.einsum("...qd,...kd->...qk", query, key) * d**-0.5
    attn = torch.softmax(logits, dim=-1)
    return torch.einsum("...qk,...kv->...qv", attn, value)
