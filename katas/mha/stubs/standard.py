# attn-kata: mha (standard)
"""Multi-head self-attention

Write the module  MultiHeadAttention(embed_dim, num_heads, dropout=0.0),  forward(x, mask=None).
E = embed_dim, H = num_heads, D = E / H.

    x       (B, T, E)
    mask    None, or a bool tensor that broadcasts to (B, H, T, T) as it is:
            (T, T), (H, T, T), (B, 1, 1, T), (B, 1, T, T), (B, H, T, T).
            Add no dimensions of your own. The last is keys, the one before it queries.
    result  (B, T, E)    one tensor, not a tuple

Parameters, exactly these: q_proj, k_proj, v_proj, o_proj, each nn.Linear(E, E) with its bias.
Weights are copied in by name before a test; buffers are free.

Each head computes softmax(q kᵀ / sqrt(D)) v. Head h owns columns h*D to (h+1)*D of a projection's
output. The heads' results stand side by side in that order and go through o_proj.

Mask: True = may attend. A masked key has weight 0, and the other weights of that query sum to 1.
Any way that makes the masked weights 0 is right. Every query has at least one key to attend to.

Dropout acts in train() only, after the softmax, on each weight on its own (every sample, head,
query and key), anew on each call: each weight is dropped with probability `dropout`, and kept ones
are scaled by 1 / (1 - dropout).

ValueError where H does not divide E (an assert is not enough).

dtype and device of the result are those of the inputs, in float32 and in float64.
Every size is at least 1, 1 is legal everywhere, there is no upper bound: T above 128 happens.
Inputs may be non-contiguous, and neither x nor mask is modified.
Differentiable: the gradients to x and to every parameter are those of the definition.
Calls are positional: what you name the arguments is free; class and parameters have these names.

From scratch: any torch operation may be used, but not the ready-made attentions:
F.scaled_dot_product_attention, nn.MultiheadAttention, F.multi_head_attention_forward,
nn.Transformer*, flex_attention, or what they call underneath.

Beyond the bar (reported, never decides):
- a query with nothing to attend to gets exactly 0 from every head, with finite gradients;
- scores of about 1e4 in float32 give finite, right results, masked keys included;
- float16 and bfloat16 work, within tolerances derived from the dtype;
- float64 is kept throughout: exact to 1e-9;
- the result shares no memory with an input.
"""

import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    """Self-attention with num_heads heads over (B, T, E), E = embed_dim."""

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        # TODO 1: Refuse a num_heads that does not divide embed_dim.
        # TODO 2: Make q_proj, k_proj, v_proj and o_proj, and keep what forward needs.
        raise NotImplementedError("MultiHeadAttention.__init__ is not written yet")

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x (B, T, E), mask bool, broadcastable to (B, H, T, T), True = may attend -> (B, T, E)."""
        # TODO 3: Project x to queries, keys and values.
        # TODO 4: Split each into heads.
        # TODO 5: Score every query against every key, and scale.
        # TODO 6: Apply the mask, where there is one.
        # TODO 7: Turn the scores into weights, then dropout.
        # TODO 8: Average the values by the weights.
        # TODO 9: Merge the heads and project.
        raise NotImplementedError("MultiHeadAttention.forward is not written yet")


if __name__ == "__main__":
    # Shapes only, so that you see your code run. `attn-kata grade` checks the rest.
    try:
        B, T, E, H = 2, 5, 12, 3
        attention = MultiHeadAttention(E, H)
        x = torch.randn(B, T, E)
        causal = torch.ones(T, T, dtype=torch.bool).tril()
        print(f"without a mask out is {tuple(attention(x).shape)}, the contract says {(B, T, E)}")
        print(f"with a mask out is {tuple(attention(x, causal).shape)}, the contract says {(B, T, E)}")
    except NotImplementedError as missing:
        print(f"{missing}. Write it, run this file again, then: attn-kata grade")
