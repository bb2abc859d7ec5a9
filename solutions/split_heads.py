"""Split and merge heads: the reference. Compare it with your own code."""

from torch import Tensor


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """x (B, T, E) -> (B, H, T, D), D = E / H. Raises ValueError if H does not divide E."""
    if x.shape[-1] % num_heads != 0:
        raise ValueError(f"num_heads {num_heads} does not divide the width {x.shape[-1]}")

    # Two steps. First split the columns of each token, with H before D: neighbouring columns belong to one head. Then
    # move H before T. A reshape directly to (B, H, T, D) would give head 0 all columns of the first tokens, because in
    # memory all columns of one token come before the next token.
    cut = x.unflatten(-1, (num_heads, -1))  # (B, T, H, D)
    return cut.transpose(1, 2)  # (B, H, T, D), a view: nothing is copied


def merge_heads(x: Tensor) -> Tensor:
    """x (B, H, T, D) -> (B, T, E), E = H * D. The inverse of split_heads."""
    # The same two steps in reverse order. After the transpose the memory is not in the order of the dimensions, so view
    # would raise. flatten (like reshape) copies if it has to.
    return x.transpose(1, 2).flatten(-2)  # (B, T, H, D) -> (B, T, E)
