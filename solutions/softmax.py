"""Softmax: the reference. Compare it with your own code."""

from torch import Tensor


def softmax(x: Tensor, dim: int) -> Tensor:
    """x (...), normalised along dim -> the same shape: exp(x_i) / (sum of exp(x_j))."""
    # Subtracting one number from a whole slice does not change the result: exp(x - c) = exp(x) / exp(c), and exp(c)
    # cancels. With the slice's own maximum every exponent is 0 or less, so exp cannot overflow. The sum is at least 1.
    # With one maximum for the whole tensor, all entries of a much lower slice would become 0.
    largest = x.detach().amax(dim=dim, keepdim=True)  # as x, 1 at dim; keepdim lines it up with x again

    # In a slice with only -inf the maximum is -inf, and -inf - (-inf) would be NaN. So subtract 0 there.
    largest = largest.masked_fill(largest == float("-inf"), 0.0)

    exps = (x - largest).exp()  # as x; exp(-inf) is exactly 0
    total = exps.sum(dim=dim, keepdim=True)  # as x, 1 at dim; 0 only for a slice with only -inf

    return exps / total.masked_fill(total == 0, 1.0)  # such a slice is 0 / 1 = 0
