# attn-kata: split_heads (guided)
"""Split and merge heads

Write two functions, each the other's inverse. E = H * D.

split_heads(x, num_heads)

    x          (B, T, E)
    num_heads  an int, H
    result     (B, H, T, D)    D = E / H

merge_heads(x)

    x          (B, H, T, D)
    result     (B, T, E)       E = H * D

Head h owns columns h*D to (h+1)*D of every token: result[b, h, t, d] of split_heads is
x[b, t, h*D + d], and result[b, t, h*D + d] of merge_heads is x[b, h, t, d].

split_heads raises ValueError where H does not divide E (an assert is not enough).

dtype and device of the results are those of x, in float32 and in float64.
Every size is at least 1, 1 is legal everywhere, there is no upper bound: T above 128 happens.
x may be non-contiguous (what split_heads returns usually is), and is not modified.
Differentiable: the gradients to x are those of the definition.
Calls are positional: what you name the arguments is free, the functions' names are not.
Any torch operation may be used. The results may share memory with x.

Beyond the bar (reported, never decides):
- splitting a contiguous x copies nothing: the result lies in the memory of x;
- float16 and bfloat16 work;
- float64 is kept throughout: exact to 1e-9.
"""

import torch
from torch import Tensor


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """x (B, T, E) -> (B, H, T, D), D = E / H; ValueError where H does not divide E."""
    # TODO 1: Refuse a num_heads that does not divide E.
    #     With ValueError.
    # TODO 2: Cut the columns of each token into heads.
    #     E = H * D: which of the two is the outer factor when head h owns neighbouring columns?
    #     shape: (B, T, H, D)
    # TODO 3: Bring the heads in front of time.
    #     This moves no number in memory.
    #     shape: (B, H, T, D)
    raise NotImplementedError("split_heads is not written yet")


def merge_heads(x: Tensor) -> Tensor:
    """x (B, H, T, D) -> (B, T, E), E = H * D: split_heads undone."""
    # TODO 4: Bring time in front of the heads again.
    #     shape: (B, T, H, D)
    # TODO 5: Lay the heads of each token side by side.
    #     The tensor does not lie in memory in this order now: use what can handle that.
    #     shape: (B, T, E)
    raise NotImplementedError("merge_heads is not written yet")


if __name__ == "__main__":
    # Shapes only, so that you see your code run. `attn-kata grade` checks the rest.
    try:
        x = torch.arange(2 * 3 * 10.0).reshape(2, 3, 10)
        heads = split_heads(x, 5)
        print(f"split is {tuple(heads.shape)}, the contract says {(2, 5, 3, 2)}")
        print(f"merged is {tuple(merge_heads(heads).shape)}, the contract says {(2, 3, 10)}")
        print(f"the round trip gives x back: {torch.equal(merge_heads(heads), x)}")
    except NotImplementedError as missing:
        print(f"{missing}. Write it, run this file again, then: attn-kata grade")
