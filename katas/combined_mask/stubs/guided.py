# attn-kata: combined_mask (guided)
"""Padding and causal mask together

Write two functions.

combine_masks(keep, causal)

    keep     (B, Tk)           bool, one flag per key of each sample: True = real
    causal   (Tq, Tk)          bool, True where a query may attend to a key
    result   (B, 1, Tq, Tk)    bool, True where both allow; on the device of keep and causal

Both take any flags: real tokens may stand anywhere, and causal need not be a triangle.
B may equal Tq or Tk.

masked_attention(q, k, v, mask)  =  softmax(q kᵀ / sqrt(D)) v  among the keys that mask allows.

    q        (B, H, Tq, D)     queries
    k        (B, H, Tk, D)     keys
    v        (B, H, Tk, Dv)    values
    mask     a bool tensor that broadcasts to (B, H, Tq, Tk) as it is, True = may attend:
             (Tq, Tk), (H, Tq, Tk), (B, 1, 1, Tk), (B, 1, Tq, Tk), (B, H, Tq, Tk), ...
             Add no dimensions of your own.
    result   (B, H, Tq, Dv)    one tensor, not a tuple

A masked key has weight 0; the other weights of that query sum to 1. Any way that makes the masked
weights 0 is right.
A query with nothing to attend to gets exactly 0, and all gradients stay finite. Under a causal
mask left padding makes such queries; a whole sample may be empty too.
Tq and Tk are free of each other, D and Dv too; D is the last size of q and k.

dtype and device of the attention's result are those of q, k and v, in float32 and in float64.
Every size is at least 1, 1 is legal everywhere, there is no upper bound: T above 128 happens.
Inputs may be non-contiguous, and none is modified: keep, causal, q, k, v, mask.
Differentiable: the gradients to q, k and v are those of the formula; a query that gets 0 adds
nothing to them.
Calls are positional: what you name the arguments is free, the functions' names are not.

From scratch: any torch operation may be used, but not the ready-made attentions:
F.scaled_dot_product_attention, nn.MultiheadAttention, F.multi_head_attention_forward,
nn.Transformer*, flex_attention, or what they call underneath.

Beyond the bar (reported, never decides):
- scores of about 1e4 in float32 give finite, right results, masked keys included;
- float16 and bfloat16 work, within tolerances derived from the dtype;
- float64 is kept throughout: exact to 1e-9;
- the attention's result shares no memory with an input.
"""

import torch
from torch import Tensor


def combine_masks(keep: Tensor, causal: Tensor) -> Tensor:
    """keep (B, Tk) bool, causal (Tq, Tk) bool -> (B, 1, Tq, Tk) bool, True where both allow."""
    # TODO 1: Give each mask the dimensions that it lacks.
    #     keep says nothing about heads and queries, causal nothing about samples and heads.
    #     shape: (B, 1, 1, Tk) and (1, 1, Tq, Tk)
    # TODO 2: Join them.
    #     True only where both are.
    #     shape: (B, 1, Tq, Tk)
    raise NotImplementedError("combine_masks is not written yet")


def masked_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """q (B, H, Tq, D), k (B, H, Tk, D), v (B, H, Tk, Dv), mask broadcasts to (B, H, Tq, Tk) -> (B, H, Tq, Dv)."""
    # TODO 3: Score every query against every key, and scale.
    #     By the size that one dot product sums over.
    #     shape: (B, H, Tq, Tk)
    # TODO 4: Turn the scores into weights, with none on masked keys.
    #     True may attend. For each query the weights over its open keys sum to 1.
    #     shape: (B, H, Tq, Tk)
    # TODO 5: Give a query with nothing to attend to no weights at all.
    #     Exactly 0, without a NaN on the way: the backward pass sees those too.
    #     shape: (B, H, Tq, Tk)
    # TODO 6: Average the values by these weights.
    #     shape: (B, H, Tq, Dv)
    raise NotImplementedError("masked_attention is not written yet")


if __name__ == "__main__":
    # Shapes only, so that you see your code run. `attn-kata grade` checks the rest.
    try:
        B, H, T, D = 2, 3, 4, 6
        keep = torch.tensor([[False, True, True, True], [True, True, True, True]])
        causal = torch.ones(T, T, dtype=torch.bool).tril()
        mask = combine_masks(keep, causal)
        print(f"the mask is {tuple(mask.shape)} {mask.dtype}, the contract says {(B, 1, T, T)} torch.bool")
        out = masked_attention(torch.randn(B, H, T, D), torch.randn(B, H, T, D), torch.randn(B, H, T, 5), mask)
        print(f"out is {tuple(out.shape)}, the contract says {(B, H, T, 5)}")
        print(f"for the padded first query of sample 0 out is {out[0, 0, 0].tolist()}, the contract says 0")
    except NotImplementedError as missing:
        print(f"{missing}. Write it, run this file again, then: attn-kata grade")
