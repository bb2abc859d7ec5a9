# attn-kata: causal_mask (guided)
"""Causal mask and causal attention

Write two functions.

causal_mask(num_queries, num_keys, device=None)

    result  (Tq, Tk)  bool, True = may attend;  Tq = num_queries, Tk = num_keys, Tq <= Tk

    The queries are the last Tq of the Tk positions, as when a few new tokens attend to all that
    came before. So query i may attend to key j when  j <= i + Tk - Tq:  to itself and to what is
    earlier.
    device is where the mask lies: a torch.device, a string, or None for the default.

causal_attention(q, k, v)  =  softmax(q kᵀ / sqrt(D)) v  under this mask

    q       (B, H, Tq, D)     queries, the last Tq of the Tk positions
    k       (B, H, Tk, D)     keys
    v       (B, H, Tk, Dv)    values
    result  (B, H, Tq, Dv)    one tensor, not a tuple

    Tq <= Tk; D and Dv are free of each other; D is the last size of q and k

A masked key has weight 0, and the other weights of that query sum to 1. Any way that makes the
masked weights 0 is right. Whether causal_attention calls causal_mask is free.

dtype and device of the attention's result are those of the inputs, in float32 and in float64.
Every size is at least 1, 1 is legal everywhere, there is no upper bound: T above 128 happens.
Inputs may be non-contiguous, and are not modified.
Differentiable: the gradients to q, k and v are those of the formula.
Calls are positional: what you name the arguments is free, the functions' names are not.

From scratch: any torch operation may be used, but not the ready-made attentions:
F.scaled_dot_product_attention, nn.MultiheadAttention, F.multi_head_attention_forward,
nn.Transformer*, flex_attention, or what they call underneath.

Beyond the bar (reported, never decides):
- scores of about 1e4 in float32 give finite, right results, masked keys included;
- float16 and bfloat16 work, within tolerances derived from the dtype;
- float64 is kept throughout: exact to 1e-9;
- the result of causal_attention shares no memory with an input.
"""

import torch
from torch import Tensor


def causal_mask(num_queries: int, num_keys: int, device: torch.device | str | None = None) -> Tensor:
    """bool (num_queries, num_keys), True where query i may attend to key j; the queries are the last positions."""
    # TODO 1: Give every query and every key its position in the sequence, on the device asked for.
    #     Keys begin at 0. The last query is at the same position as the last key.
    #     shape: (Tq,) and (Tk,)
    # TODO 2: Compare every query's position with every key's.
    #     A query may attend to its own position and to earlier ones.
    #     shape: (Tq, Tk), bool
    raise NotImplementedError("causal_mask is not written yet")


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """q (B, H, Tq, D), k (B, H, Tk, D), v (B, H, Tk, Dv) -> (B, H, Tq, Dv)."""
    # TODO 3: Score every query against every key, and scale.
    #     By the size that one dot product sums over.
    #     shape: (B, H, Tq, Tk)
    # TODO 4: Apply the causal mask.
    #     Broadcast over samples and heads. A masked key ends with weight 0, and the others still
    #     sum to 1.
    #     shape: (B, H, Tq, Tk)
    # TODO 5: Turn the scores into weights.
    #     For each query the weights over the keys sum to 1.
    #     shape: (B, H, Tq, Tk)
    # TODO 6: Average the values by these weights.
    #     shape: (B, H, Tq, Dv)
    raise NotImplementedError("causal_attention is not written yet")


if __name__ == "__main__":
    # Shapes only, so that you see your code run. `attn-kata grade` checks the rest.
    try:
        print(causal_mask(2, 5))
        q, k, v = torch.randn(2, 3, 5, 6), torch.randn(2, 3, 7, 6), torch.randn(2, 3, 7, 4)
        out = causal_attention(q, k, v)
        print(f"out is {tuple(out.shape)}, the contract says {(2, 3, 5, 4)}")
    except NotImplementedError as missing:
        print(f"{missing}. Write it, run this file again, then: attn-kata grade")
