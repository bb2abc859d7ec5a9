# attn-kata: softmax (standard)
"""Softmax

Write  softmax(x, dim):  along dim,  exp(x_i) / (the sum of exp(x_j) over the slice).

    x       (...)        at least one dimension, any number of them
    dim     an int       the dimension to normalise along; negative ones count from the end
    result  as x         one tensor

A slice is what one index of every other dimension leaves: the numbers along dim. Each slice is
normalised on its own: its results are positive and sum to 1.

Entries may be large: at +1e4 and -1e4 the results are finite and right, also where one slice lies
much further up or down than exp can hold, and where slices differ by that much.
Entries may be -inf (masked scores are): such an entry gets exactly 0, the rest of its slice sums
to 1. A slice that is -inf throughout gets 0 throughout, not NaN.
+inf and NaN do not occur in x.

dtype and device of the result are those of x, in float32 and in float64.
Every size is at least 1, 1 is legal everywhere, there is no upper bound: above 128 happens.
x may be non-contiguous, and is not modified.
Differentiable: the gradient to x is that of the definition, at large entries and beside -inf too
(0 at an entry of -inf).
Calls are positional: what you name the arguments is free, the function's name is not.

From scratch: any torch operation may be used, exp and logsumexp too, but not softmax, log_softmax,
softmin and their modules under whatever name, nor a ready-made attention.

Beyond the bar (reported, never decides):
- where a slice is -inf throughout, the gradient is finite;
- float16 and bfloat16 work, within tolerances derived from the dtype;
- float64 is kept throughout: exact to 1e-9;
- the result shares no memory with x.
"""

import torch
from torch import Tensor


def softmax(x: Tensor, dim: int) -> Tensor:
    """x (...), normalised along dim -> the same shape: exp(x_i) / (sum of exp(x_j))."""
    # TODO 1: Bring every slice down to where exp cannot overflow.
    # TODO 2: Exponentiate, and sum each slice along dim.
    # TODO 3: Divide.
    raise NotImplementedError("softmax is not written yet")


if __name__ == "__main__":
    # Shapes only, so that you see your code run. `attn-kata grade` checks the rest.
    try:
        x = torch.tensor([[0.0, 1.0, 2.0], [10000.0, 10001.0, float("-inf")]])
        out = softmax(x, -1)
        print(f"out is {tuple(out.shape)}, the contract says {(2, 3)}")
        print(f"its rows sum to {out.sum(-1).tolist()}")
        print(f"along dim 0 its columns sum to {softmax(x, 0).sum(0).tolist()}")
    except NotImplementedError as missing:
        print(f"{missing}. Write it, run this file again, then: attn-kata grade")
