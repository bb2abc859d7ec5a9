# attn-kata: additive_attention (blank)
"""Additive attention

Write the module  AdditiveAttention(query_dim, key_dim, hidden_dim),
                  forward(query, keys, values, keep=None).
The attention of Bahdanau et al. (2015): a small network scores each pair of a query and a key.

    query    (B, Tq, query_dim)
    keys     (B, Tk, key_dim)
    values   (B, Tk, Dv)
    keep     (B, Tk)    None, or bool over the keys: True = may be attended to
    result   (B, Tq, Dv)    one tensor, not a tuple

    Tq, Tk, query_dim, key_dim, hidden_dim and Dv are free of each other

Parameters, exactly these, each the weight of an nn.Linear without bias:
    q_proj.weight      nn.Linear(query_dim, hidden_dim, bias=False)
    k_proj.weight      nn.Linear(key_dim, hidden_dim, bias=False)
    score_proj.weight  nn.Linear(hidden_dim, 1, bias=False)
Weights are copied in by name before a test; buffers are free.

    score(q, k) = score_proj(tanh(q_proj(q) + k_proj(k)))    one number, not scaled
    result      = the values averaged by the softmax of a query's scores over the keys

keep: a key that is not kept has weight 0 for every query of its sample; the weights of the others
sum to 1. Any way that makes those weights 0 is right. Kept keys stand anywhere, every sample has
at least one. B may equal Tq or Tk. Without keep all keys may be attended to. Never causal.
There is no dropout: the module behaves alike in train and eval.

dtype and device of the result are those of the inputs, in float32 and in float64.
Every size is at least 1, 1 is legal everywhere, there is no upper bound: T above 128 happens.
Inputs may be non-contiguous, and none is modified: query, keys, values, keep.
Differentiable: the gradients to query, keys, values and every parameter are those of the
definition.
Calls are positional: what you name the arguments is free; class and parameters have these names.

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


class AdditiveAttention(nn.Module):
    """Attention whose score is score_proj(tanh(q_proj(q) + k_proj(k)))."""

    def __init__(self, query_dim: int, key_dim: int, hidden_dim: int) -> None:
        super().__init__()
        raise NotImplementedError("AdditiveAttention.__init__ is not written yet")

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, keep: Tensor | None = None) -> Tensor:
        """query (B, Tq, query_dim), keys (B, Tk, key_dim), values (B, Tk, Dv), keep (B, Tk) -> (B, Tq, Dv)."""
        raise NotImplementedError("AdditiveAttention.forward is not written yet")


if __name__ == "__main__":
    # Shapes only, so that you see your code run. `attn-kata grade` checks the rest.
    try:
        attention = AdditiveAttention(6, 5, 7)
        query, keys, values = torch.randn(2, 3, 6), torch.randn(2, 4, 5), torch.randn(2, 4, 8)
        keep = torch.tensor([[True, True, True, False], [True, False, False, False]])
        print(f"without keep out is {tuple(attention(query, keys, values).shape)}, the contract says {(2, 3, 8)}")
        print(f"with keep out is {tuple(attention(query, keys, values, keep).shape)}, the contract says {(2, 3, 8)}")
        print(f"parameters: {', '.join(sorted(dict(attention.named_parameters())))}")
    except NotImplementedError as missing:
        print(f"{missing}. Write it, run this file again, then: attn-kata grade")
