# attn-kata: attention_dropout (standard)
"""Dropout on attention weights

Write  attention_with_dropout(q, k, v, p, training):  softmax(q kᵀ / sqrt(D)) v  with dropout on the
weights.

    q         (B, H, Tq, D)     queries
    k         (B, H, Tk, D)     keys
    v         (B, H, Tk, Dv)    values
    p         a number          the probability to drop a weight, 0 <= p < 1
    training  a bool            dropout acts only where it is True
    result    (B, H, Tq, Dv)    one tensor, not a tuple

With training=True, after the softmax: each weight is dropped on its own, for every sample, head,
query and key, with probability p. A dropped weight is exactly 0; a kept one is divided by 1 - p.
They are not normalised again. Which ones are dropped is drawn anew on each call.
With training=False, and with p = 0, the result is exactly softmax(q kᵀ / sqrt(D)) v.

ValueError unless 0 <= p < 1, whatever training is (an assert is not enough).

Tq and Tk are free of each other, D and Dv too; D is the last size of q and k. There is no mask.

dtype and device of the result are those of q, k and v, in float32 and in float64.
Every size is at least 1, 1 is legal everywhere, there is no upper bound: T above 128 happens.
Inputs may be non-contiguous, and none is modified.
Differentiable: the gradients to q, k and v are those of the formula; in training those of the
weights that were kept.
Calls are positional: what you name the arguments is free, the function's name is not.

From scratch: any torch operation may be used, dropout too, but not the ready-made attentions:
F.scaled_dot_product_attention, nn.MultiheadAttention, F.multi_head_attention_forward,
nn.Transformer*, flex_attention, or what they call underneath.

Beyond the bar (reported, never decides), with training=False:
- scores of about 1e4 in float32 give finite, right results;
- float16 and bfloat16 work, within tolerances derived from the dtype;
- float64 is kept throughout: exact to 1e-9;
- the result shares no memory with an input.
"""

import torch
from torch import Tensor


def attention_with_dropout(q: Tensor, k: Tensor, v: Tensor, p: float, training: bool) -> Tensor:
    """q (B, H, Tq, D), k (B, H, Tk, D), v (B, H, Tk, Dv), p, training -> (B, H, Tq, Dv)."""
    # TODO 1: Refuse a p that is no probability to drop with.
    # TODO 2: Score every query against every key, and scale.
    # TODO 3: Turn the scores into weights.
    # TODO 4: In training, drop weights and scale the others up.
    # TODO 5: Average the values by these weights.
    raise NotImplementedError("attention_with_dropout is not written yet")


if __name__ == "__main__":
    # Shapes only, so that you see your code run. `attn-kata grade` checks the rest.
    try:
        B, H, Tq, Tk, D, Dv = 2, 3, 4, 5, 6, 7
        q, k, v = torch.randn(B, H, Tq, D), torch.randn(B, H, Tk, D), torch.randn(B, H, Tk, Dv)
        for training in (False, True):
            out = attention_with_dropout(q, k, v, 0.5, training)
            print(f"with training={training} out is {tuple(out.shape)}, the contract says {(B, H, Tq, Dv)}")
        weights = attention_with_dropout(q[:1, :1], k[:1, :1], torch.eye(Tk)[None, None], 0.5, True)  # v = I
        print(f"of {weights.numel()} weights {int((weights == 0).sum())} are 0, with p=0.5")
    except NotImplementedError as missing:
        print(f"{missing}. Write it, run this file again, then: attn-kata grade")
