# attn-kata: sdpa (standard)
"""Scaled dot-product attention

Write  scaled_dot_product_attention(q, k, v)  =  softmax(q kᵀ / sqrt(D)) v.

    q       (..., Tq, D)     queries
    k       (..., Tk, D)     keys
    v       (..., Tk, Dv)    values
    result  (..., Tq, Dv)    one tensor, not a tuple

    ...     any number of leading dimensions, none included, the same for q, k and v
            (no broadcasting between them)
    Tq, Tk  free of each other
    D, Dv   free of each other; D is the last size of q and k

The weights of one query are a softmax over the Tk keys: they sum to 1. There is no mask.

dtype and device of the result are those of the inputs, in float32 and in float64.
Every size is at least 1, 1 is legal everywhere, there is no upper bound: T above 128 happens.
Inputs may be non-contiguous, and are not modified.
Differentiable: the gradients to q, k and v are those of the formula.
Calls are positional: what you name the arguments is free, the function's name is not.

From scratch: any torch operation may be used, but not the ready-made attentions:
F.scaled_dot_product_attention, nn.MultiheadAttention, F.multi_head_attention_forward,
nn.Transformer*, flex_attention, or what they call underneath.

Beyond the bar (reported, never decides):
- scores of about 1e4 in float32 give finite, right results;
- float16 and bfloat16 work, within tolerances derived from the dtype;
- float64 is kept throughout: exact to 1e-9;
- the result shares no memory with an input.
"""

import torch
from torch import Tensor


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """q (..., Tq, D), k (..., Tk, D), v (..., Tk, Dv) -> (..., Tq, Dv)."""
    # TODO 1: Score every query against every key.
    # TODO 2: Scale the scores.
    # TODO 3: Turn the scores into weights.
    # TODO 4: Average the values by these weights.
    raise NotImplementedError("scaled_dot_product_attention is not written yet")


if __name__ == "__main__":
    # Shapes only, so that you see your code run. `attn-kata grade` checks the rest.
    try:
        q, k, v = torch.randn(2, 3, 5, 6), torch.randn(2, 3, 7, 6), torch.randn(2, 3, 7, 4)
        out = scaled_dot_product_attention(q, k, v)
        print(f"out is {tuple(out.shape)}, the contract says {(2, 3, 5, 4)}")
    except NotImplementedError as missing:
        print(f"{missing}. Write it, run this file again, then: attn-kata grade")
