# attn-kata: heads_concat (guided)
"""Multi-head attention from single heads

Write the module  MultiHeadAttentionWrapper(input_dim, key_dim, value_dim, num_heads),  forward(x).
H = num_heads heads of self-attention over the same tokens, each with weights of its own.

    x       (..., T, input_dim)
    result  (..., T, H * value_dim)    one tensor, not a tuple

    ...     any number of leading dimensions, none included
    input_dim, key_dim, value_dim and H are free of each other; D = key_dim.

Parameters, exactly these, for every i from 0 to H - 1, each the weight of an nn.Linear without
bias. There is no output projection.
    heads.<i>.q_proj.weight, heads.<i>.k_proj.weight    nn.Linear(input_dim, key_dim, bias=False)
    heads.<i>.v_proj.weight                             nn.Linear(input_dim, value_dim, bias=False)
What class a head is, is free. Weights are copied in by name before a test; buffers are free.

    head i   softmax(q kᵀ / sqrt(D)) v  of its own q, k, v = q_proj(x), k_proj(x), v_proj(x)
    result   the heads' outputs side by side in order:
             columns i*value_dim to (i+1)*value_dim are head i's

The weights of one token are a softmax over the T tokens of its sequence: they sum to 1. There is no
mask, and no dropout: train() and eval() behave alike.

This equals the fused form: one projection with the heads' weights stacked, its columns split into
heads, the heads merged again.

dtype and device of the result are those of the inputs, in float32 and in float64.
Every size is at least 1, 1 is legal everywhere, there is no upper bound: T above 128 happens.
x may be non-contiguous, and is not modified.
Differentiable: the gradients to x and to every weight are those of the formula.
Calls are positional: what you name the arguments is free; class and parameters have these names.

From scratch: any torch operation may be used, but not the ready-made attentions:
F.scaled_dot_product_attention, nn.MultiheadAttention, F.multi_head_attention_forward,
nn.Transformer*, flex_attention, or what they call underneath.

Beyond the bar (reported, never decides):
- scores of about 1e4 in float32 give finite, right results;
- float16 and bfloat16 work, within tolerances derived from the dtype;
- float64 is kept throughout: exact to 1e-9;
- the result shares no memory with x.
"""

import torch
from torch import Tensor, nn


class MultiHeadAttentionWrapper(nn.Module):
    """num_heads heads of self-attention over (..., T, input_dim), side by side."""

    def __init__(self, input_dim: int, key_dim: int, value_dim: int, num_heads: int) -> None:
        super().__init__()
        # TODO 1: Make the heads, each with weights of its own.
        #     Write a head as a module of its own. Keep the heads where the module sees their
        #     parameters, as heads.0, heads.1, …
        raise NotImplementedError("MultiHeadAttentionWrapper.__init__ is not written yet")

    def forward(self, x: Tensor) -> Tensor:
        """x (..., T, input_dim) -> (..., T, num_heads * value_dim)."""
        # TODO 2: Let every head attend to x on its own.
        #     Project, score, scale by the size of one head, softmax over the keys, average its
        #     values.
        #     shape: (..., T, value_dim) each
        # TODO 3: Put the results side by side, in the order of the heads.
        #     shape: (..., T, H * value_dim)
        raise NotImplementedError("MultiHeadAttentionWrapper.forward is not written yet")


if __name__ == "__main__":
    # Shapes only, so that you see your code run. `attn-kata grade` checks the rest.
    try:
        attention = MultiHeadAttentionWrapper(6, 5, 3, 2)
        x = torch.randn(2, 4, 6)
        print(f"out is {tuple(attention(x).shape)}, the contract says {(2, 4, 6)}")
        print(f"without a batch it is {tuple(attention(x[0]).shape)}, the contract says {(4, 6)}")
        print(f"parameters: {', '.join(sorted(dict(attention.named_parameters())))}")
    except NotImplementedError as missing:
        print(f"{missing}. Write it, run this file again, then: attn-kata grade")
