# attn-kata: multiplicative_attention (standard)
"""Multiplicative attention

Write the module  MultiplicativeAttention(query_dim, key_dim),
                  forward(query, keys, values, keep=None).

    score(q, k) = qᵀ (k_proj k)      unscaled: divided by nothing

    query    (B, Tq, query_dim)
    keys     (B, Tk, key_dim)
    values   (B, Tk, Dv)
    keep     (B, Tk)         None, or bool, one flag per key: True = may be attended to
    result   (B, Tq, Dv)     one tensor, not a tuple

    Tq, Tk   free of each other; query_dim, key_dim and Dv too

The softmax of a query's scores over the keys gives its weights, and the result is the values
averaged by them. This is the score "general" of Luong et al., 2015.

Parameters, exactly this one: k_proj = nn.Linear(key_dim, query_dim, bias=False).
Weights are copied in by name before a test; buffers are free.

keep: a key that is not kept has weight 0 for every query of its sample; the weights of the others
sum to 1. Any way that makes those weights 0 is right. Kept keys stand anywhere, every sample has at
least one. B may equal Tq or Tk. Without keep every key may be attended to. Never causal.
There is no dropout: the module behaves alike in train and eval.

dtype and device of the result are those of the inputs, in float32 and in float64.
Every size is at least 1, 1 is legal everywhere, there is no upper bound: T above 128 happens.
Inputs may be non-contiguous, and none is modified: query, keys, values, keep.
Differentiable: the gradients to query, keys, values and k_proj.weight are those of the definition.
Calls are positional: what you name the arguments is free; class and parameter have these names.

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
from torch import Tensor, nn


class MultiplicativeAttention(nn.Module):
    """Attention whose score is qᵀ (k_proj k), unscaled."""

    def __init__(self, query_dim: int, key_dim: int) -> None:
        super().__init__()
        # TODO 1: Make k_proj.
        raise NotImplementedError("MultiplicativeAttention.__init__ is not written yet")

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, keep: Tensor | None = None) -> Tensor:
        """query (B, Tq, query_dim), keys (B, Tk, key_dim), values (B, Tk, Dv), keep (B, Tk) bool -> (B, Tq, Dv)."""
        # TODO 2: Project the keys.
        # TODO 3: Score every query against every key.
        # TODO 4: Apply keep, where there is one.
        # TODO 5: Turn the scores into weights.
        # TODO 6: Average the values by the weights.
        raise NotImplementedError("MultiplicativeAttention.forward is not written yet")


if __name__ == "__main__":
    # Shapes only, so that you see your code run. `attn-kata grade` checks the rest.
    try:
        B, Tq, Tk, query_dim, key_dim, Dv = 2, 3, 5, 6, 4, 7
        attention = MultiplicativeAttention(query_dim, key_dim)
        query, keys, values = torch.randn(B, Tq, query_dim), torch.randn(B, Tk, key_dim), torch.randn(B, Tk, Dv)
        keep = torch.arange(Tk) < torch.tensor([[3], [5]])
        print(f"without keep out is {tuple(attention(query, keys, values).shape)}, the contract says {(B, Tq, Dv)}")
        print(f"with keep out is {tuple(attention(query, keys, values, keep).shape)}, the contract says {(B, Tq, Dv)}")
    except NotImplementedError as missing:
        print(f"{missing}. Write it, run this file again, then: attn-kata grade")
