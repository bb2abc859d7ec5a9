# breaks: from_scratch
# mistake: none
import torch.nn.functional as F


def combine_masks(keep, causal):
    return keep[:, None, None, :] & causal


attend = F.scaled_dot_product_attention


def masked_attention(q, k, v, mask):
    out = attend(q, k, v, attn_mask=mask | ~mask.any(-1, keepdim=True))
    return out * mask.any(-1, keepdim=True)
