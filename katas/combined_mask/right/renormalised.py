# style: softmax first, then the mask, then divided by what is left, of which there may be nothing
# edge fails: large_scores
import torch


def combine_masks(keep, causal):
    B, Tk = keep.shape
    Tq = causal.shape[0]
    return keep.reshape(B, 1, 1, Tk).expand(B, 1, Tq, Tk) * causal


def masked_attention(q, k, v, mask):
    weights = torch.softmax(q @ k.transpose(2, 3) / q.shape[3] ** 0.5, dim=3)
    weights = weights * mask
    left = weights.sum(dim=3, keepdim=True)
    return weights / (left + (left == 0)) @ v
