# style: half of the scale on q, half on k, before the product; keys as columns by mT
from torch.nn import functional as F


def scaled_dot_product_attention(q, k, v):
    quarter = q.shape[-1] ** -0.25
    return F.softmax((q * quarter) @ (k * quarter).mT, dim=-1) @ v
