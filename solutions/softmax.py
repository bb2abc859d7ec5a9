"""Softmax: the reference, to be read beside your own."""

from torch import Tensor


def softmax(x: Tensor, dim: int) -> Tensor:
    """x (...), normalised along dim -> the same shape: exp(x_i) / (sum of exp(x_j))."""
    # Taking one number from a whole slice changes nothing: exp(x - c) = exp(x) / exp(c), above the line and below it.
    # The slice's own maximum leaves every exponent at 0 or below, so exp cannot overflow, and the sum is at least 1, so
    # it cannot vanish. One maximum for the whole tensor would let a slice far below it vanish.
    largest = x.detach().amax(dim=dim, keepdim=True)  # as x, 1 at dim; keepdim lines it up with x again

    # A slice that is -inf throughout has nothing to bring down, and -inf - (-inf) would be NaN.
    largest = largest.masked_fill(largest == float("-inf"), 0.0)

    exps = (x - largest).exp()  # as x; exp(-inf) is exactly 0
    total = exps.sum(dim=dim, keepdim=True)  # as x, 1 at dim; 0 only where a slice is -inf throughout

    return exps / total.masked_fill(total == 0, 1.0)  # such a slice is 0 / 1 = 0
