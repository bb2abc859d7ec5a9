# attn-kata: self_attention (standard)
"""Self-attention

Write the module  SelfAttention(input_dim, key_dim, value_dim),  forward(x).
One head of self-attention: queries, keys and values are three projections of the same tokens.

    x       (..., T, input_dim)
    result  (..., T, value_dim)    one tensor, not a tuple

    ...     any number of leading dimensions, none included
    input_dim, key_dim and value_dim are free of each other; D = key_dim.

Parameters, exactly these, each the weight of an nn.Linear without bias:
    q_proj.weight, k_proj.weight    nn.Linear(input_dim, key_dim, bias=False)
    v_proj.weight                   nn.Linear(input_dim, value_dim, bias=False)
Weights are copied in by name before a test; buffers are free.

    q, k, v = q_proj(x), k_proj(x), v_proj(x)
    result  = softmax(q kᵀ / sqrt(D)) v,  for each sequence on its own

The weights of one token are a softmax over the T tokens of its sequence: they sum to 1. There is no
mask, and no dropout: train() and eval() behave alike.

dtype and device of the result are those of the inputs, in float32 and in float64.
Every size is at least 1, 1 is legal everywhere, there is no upper bound: T above 128 happens.
x may be non-contiguous, and is not modified.
Differentiable: the gradients to x and to every parameter are those of the formula.
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


class SelfAttention(nn.Module):
    """One head of self-attention over (..., T, input_dim)."""

    def __init__(self, input_dim: int, key_dim: int, value_dim: int) -> None:
        super().__init__()
        # TODO 1: Make q_proj, k_proj and v_proj.
        raise NotImplementedError("SelfAttention.__init__ is not written yet")

    def forward(self, x: Tensor) -> Tensor:
        """x (..., T, input_dim) -> (..., T, value_dim)."""
        # TODO 2: Project x to queries, keys and values.
        # TODO 3: Score every token against every token, and scale.
        # TODO 4: Turn the scores into weights.
        # TODO 5: Average the values by these weights.
        raise NotImplementedError("SelfAttention.forward is not written yet")


if __name__ == "__main__":
    # Shapes only, so that you see your code run. `attn-kata grade` checks the rest.
    try:
        attention = SelfAttention(6, 5, 3)
        x = torch.randn(2, 4, 6)
        print(f"out is {tuple(attention(x).shape)}, the contract says {(2, 4, 3)}")
        print(f"without a batch it is {tuple(attention(x[0]).shape)}, the contract says {(4, 3)}")
        print(f"parameters: {', '.join(sorted(dict(attention.named_parameters())))}")
    except NotImplementedError as missing:
        print(f"{missing}. Write it, run this file again, then: attn-kata grade")
