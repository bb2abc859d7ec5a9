# attn-kata: fused_qkv (standard)
"""Self-attention with one fused projection

Write the module  FusedQKVSelfAttention(input_dim, output_dim),  forward(x).
One head of self-attention whose queries, keys and values come from one projection.

    x       (B, T, input_dim)
    result  (B, T, output_dim)    one tensor, not a tuple

    T, input_dim and output_dim are free of each other; D = output_dim.

Parameters, exactly these: qkv_proj, an nn.Linear(input_dim, 3 * output_dim) with its bias. There is
no output projection. Its rows are ordered q, k, v: rows 0 to D make the queries, D to 2D the keys,
2D to 3D the values. Weights are copied in by name before a test; buffers are free.

    result = softmax(q kᵀ / sqrt(D)) v,  for each sample on its own

The weights of one token are a softmax over the T tokens of its sequence: they sum to 1. There is no
mask, and no dropout: train() and eval() behave alike.

Cost: in one call exactly one matrix product reads qkv_proj.weight. Three products on slices of it
are three, one for each sample in a loop are B. Products are counted as they run, never timed.

dtype and device of the result are those of the inputs, in float32 and in float64.
Every size is at least 1, 1 is legal everywhere, there is no upper bound: T above 128 happens.
x may be non-contiguous, and is not modified.
Differentiable: the gradients to x and to both parameters are those of the formula.
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


class FusedQKVSelfAttention(nn.Module):
    """One head of self-attention over (B, T, input_dim), projected by one linear layer."""

    def __init__(self, input_dim: int, output_dim: int) -> None:
        super().__init__()
        # TODO 1: Make qkv_proj, the one layer that holds queries, keys and values.
        raise NotImplementedError("FusedQKVSelfAttention.__init__ is not written yet")

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, input_dim) -> (B, T, output_dim)."""
        # TODO 2: Project x once.
        # TODO 3: Cut the projection into queries, keys and values.
        # TODO 4: Score every token's query against every token's key of the same sample, and scale.
        # TODO 5: Turn the scores into weights.
        # TODO 6: Average the values by these weights.
        raise NotImplementedError("FusedQKVSelfAttention.forward is not written yet")


if __name__ == "__main__":
    # Shapes only, so that you see your code run. `attn-kata grade` checks the rest.
    try:
        B, T, input_dim, output_dim = 2, 5, 6, 3
        attention = FusedQKVSelfAttention(input_dim, output_dim)
        out = attention(torch.randn(B, T, input_dim))
        print(f"out is {tuple(out.shape)}, the contract says {(B, T, output_dim)}")
        print(f"parameters: {[name for name, _ in attention.named_parameters()]}")
    except NotImplementedError as missing:
        print(f"{missing}. Write it, run this file again, then: attn-kata grade")
