# attn-kata: cross_attention (guided)
"""Cross-attention

Write the module  CrossAttention(embed_dim, context_dim, num_heads),
                  forward(x, context, keep=None).
E = embed_dim, H = num_heads, D = E / H. Queries come from x, keys and values from context.

    x        (B, Tq, E)
    context  (B, Tk, context_dim)
    keep     (B, Tk)    None, or bool over the context: True = may be attended to
    result   (B, Tq, E)    one tensor, not a tuple

    Tq, Tk   free of each other; context_dim is free of E and of H

Parameters, exactly these, each nn.Linear with its bias:
    q_proj  Linear(E, E)        k_proj  Linear(context_dim, E)
    o_proj  Linear(E, E)        v_proj  Linear(context_dim, E)
Weights are copied in by name before a test; buffers are free.

Each head computes softmax(q kᵀ / sqrt(D)) v. Head h owns columns h*D to (h+1)*D of a projection's
output. The heads' results stand side by side in that order and go through o_proj.

keep: a key that is not kept has weight 0 for every head and query of its sample; the weights of
the others sum to 1. Any way that makes those weights 0 is right. Kept tokens stand anywhere, every
sample has at least one. B may equal Tq, Tk or H. Without keep the whole context may be attended to.
Never causal: each query may attend to every kept key, whatever Tq and Tk are.

ValueError where H does not divide E (an assert is not enough).
There is no dropout: the module behaves alike in train and eval.

dtype and device of the result are those of the inputs, in float32 and in float64.
Every size is at least 1, 1 is legal everywhere, there is no upper bound: T above 128 happens.
Inputs may be non-contiguous, and neither x, context nor keep is modified.
Differentiable: the gradients to x, context and every parameter are those of the definition.
Calls are positional: what you name the arguments is free; class and parameters have these names.

From scratch: any torch operation may be used, but not the ready-made attentions:
F.scaled_dot_product_attention, nn.MultiheadAttention, F.multi_head_attention_forward,
nn.Transformer*, flex_attention, or what they call underneath.

Beyond the bar (reported, never decides):
- a query with nothing to attend to gets exactly 0 from every head (the result is then
  o_proj.bias), with finite gradients;
- scores of about 1e4 in float32 give finite, right results, masked keys included;
- float16 and bfloat16 work, within tolerances derived from the dtype;
- float64 is kept throughout: exact to 1e-9;
- the result shares no memory with an input.
"""

import torch
from torch import Tensor, nn


class CrossAttention(nn.Module):
    """Attention with num_heads heads from x (B, Tq, embed_dim) to context (B, Tk, context_dim)."""

    def __init__(self, embed_dim: int, context_dim: int, num_heads: int) -> None:
        super().__init__()
        # TODO 1: Refuse a num_heads that does not divide embed_dim.
        #     With ValueError. context_dim is never split, so it is free.
        # TODO 2: Make q_proj, k_proj, v_proj and o_proj, and keep what forward needs.
        #     Four nn.Linear; two of them read the context.
        raise NotImplementedError("CrossAttention.__init__ is not written yet")

    def forward(self, x: Tensor, context: Tensor, keep: Tensor | None = None) -> Tensor:
        """x (B, Tq, E), context (B, Tk, context_dim), keep (B, Tk) bool over the context -> (B, Tq, E)."""
        # TODO 3: Project x to queries, the context to keys and values.
        #     shape: (B, Tq, E), (B, Tk, E), (B, Tk, E)
        # TODO 4: Split each into heads.
        #     Head h owns columns h*D to (h+1)*D. Each of the three keeps its own length.
        #     shape: (B, H, Tq, D), (B, H, Tk, D), (B, H, Tk, D)
        # TODO 5: Score every query against every key, and scale.
        #     By the size of one head.
        #     shape: (B, H, Tq, Tk)
        # TODO 6: Apply keep, where there is one.
        #     True may be attended to. Every head and every query of a sample sees the same flags.
        #     shape: (B, H, Tq, Tk)
        # TODO 7: Turn the scores into weights.
        #     The weights of one query sum to 1 over the kept keys.
        #     shape: (B, H, Tq, Tk)
        # TODO 8: Average the values by the weights.
        #     shape: (B, H, Tq, D)
        # TODO 9: Merge the heads and project.
        #     The split, undone in reverse order; then o_proj.
        #     shape: (B, Tq, E)
        raise NotImplementedError("CrossAttention.forward is not written yet")


if __name__ == "__main__":
    # Shapes only, so that you see your code run. `attn-kata grade` checks the rest.
    try:
        B, Tq, Tk, E, context_dim, H = 2, 4, 7, 12, 10, 3
        attention = CrossAttention(E, context_dim, H)
        x, context = torch.randn(B, Tq, E), torch.randn(B, Tk, context_dim)
        keep = torch.arange(Tk) < torch.tensor([[5], [7]])
        print(f"without keep out is {tuple(attention(x, context).shape)}, the contract says {(B, Tq, E)}")
        print(f"with keep out is {tuple(attention(x, context, keep).shape)}, the contract says {(B, Tq, E)}")
    except NotImplementedError as missing:
        print(f"{missing}. Write it, run this file again, then: attn-kata grade")
