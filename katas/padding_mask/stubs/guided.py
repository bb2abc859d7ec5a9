# attn-kata: padding_mask (guided)
"""Padding mask

Write two functions.

padding_mask(lengths, max_len)

    lengths  (B,)            int32 or int64, each in [0, max_len]
    max_len  an int
    result   (B, max_len)    bool, True at real tokens: the first lengths[b] positions of row b;
                             on the device of lengths

padded_attention(q, k, v, keep)  =  softmax(q kᵀ / sqrt(D)) v  among the real keys of each sample.

    q        (B, H, Tq, D)   queries
    k        (B, H, Tk, D)   keys
    v        (B, H, Tk, Dv)  values
    keep     (B, Tk)         bool, one flag per key: True = real, may be attended to
    result   (B, H, Tq, Dv)  one tensor, not a tuple

Real tokens stand anywhere in keep: padding on the left, or between them, is legal too.
A padded key has weight 0 for every head and query of its sample; the weights of the real ones
sum to 1. Any way that makes the padded weights 0 is right. Every sample has at least one real key.
Padded queries are not masked: keep is about keys, every query gets its result.
Tq and Tk are free of each other, D and Dv too; D is the last size of q and k.
B may equal Tq, Tk or H.

dtype and device of the attention's result are those of q, k and v, in float32 and in float64.
Every size is at least 1 (only an entry of lengths may be 0), 1 is legal everywhere, there is no
upper bound: T above 128 happens.
Inputs may be non-contiguous, and none is modified: lengths, q, k, v, keep.
Differentiable: the gradients to q, k and v are those of the formula.
Calls are positional: what you name the arguments is free, the functions' names are not.

From scratch: any torch operation may be used, but not the ready-made attentions:
F.scaled_dot_product_attention, nn.MultiheadAttention, F.multi_head_attention_forward,
nn.Transformer*, flex_attention, or what they call underneath.

Beyond the bar (reported, never decides):
- a query with nothing to attend to gets exactly 0, with finite gradients;
- scores of about 1e4 in float32 give finite, right results, masked keys included;
- float16 and bfloat16 work, within tolerances derived from the dtype;
- float64 is kept throughout: exact to 1e-9;
- the result shares no memory with an input.
"""

import torch
from torch import Tensor


def padding_mask(lengths: Tensor, max_len: int) -> Tensor:
    """lengths (B,), int32 or int64 -> (B, max_len) bool, True at real tokens."""
    # TODO 1: Number the positions.
    #     As many as the mask is wide, where lengths lies.
    #     shape: (max_len,)
    # TODO 2: Compare every position with every sample's length.
    #     Give each of the two the dimension that it lacks. A length of 0 leaves its row empty.
    #     shape: (B, max_len)
    raise NotImplementedError("padding_mask is not written yet")


def padded_attention(q: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
    """q (B, H, Tq, D), k (B, H, Tk, D), v (B, H, Tk, Dv), keep (B, Tk) bool, True = real -> (B, H, Tq, Dv)."""
    # TODO 3: Score every query against every key, and scale.
    #     By the size that one dot product sums over.
    #     shape: (B, H, Tq, Tk)
    # TODO 4: Line keep up with the scores.
    #     Its first dimension is the sample, its last the key; every head and every query sees the
    #     same flags.
    #     shape: (B, 1, 1, Tk)
    # TODO 5: Turn the scores into weights, with none on padded keys.
    #     For each query the weights over the real keys sum to 1.
    #     shape: (B, H, Tq, Tk)
    # TODO 6: Average the values by these weights.
    #     shape: (B, H, Tq, Dv)
    raise NotImplementedError("padded_attention is not written yet")


if __name__ == "__main__":
    # Shapes only, so that you see your code run. `attn-kata grade` checks the rest.
    try:
        lengths = torch.tensor([3, 5])
        keep = padding_mask(lengths, 5)
        print(f"the mask is {tuple(keep.shape)} {keep.dtype}, the contract says {(2, 5)} torch.bool")
        q, k, v = torch.randn(2, 3, 4, 6), torch.randn(2, 3, 5, 6), torch.randn(2, 3, 5, 7)
        out = padded_attention(q, k, v, keep)
        print(f"out is {tuple(out.shape)}, the contract says {(2, 3, 4, 7)}")
    except NotImplementedError as missing:
        print(f"{missing}. Write it, run this file again, then: attn-kata grade")
