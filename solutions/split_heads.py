"""Split and merge heads: the reference, to be read beside your own."""

from torch import Tensor


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """x (B, T, E) -> (B, H, T, D), D = E / H; ValueError where H does not divide E."""
    if x.shape[-1] % num_heads != 0:
        raise ValueError(f"num_heads {num_heads} does not divide the width {x.shape[-1]}")

    # Two moves. The columns of each token are cut first, heads outside: neighbouring columns belong to one head. Only
    # then do the heads move in front of time. A reshape straight to (B, H, T, D) would give head 0 the first tokens
    # whole, because in memory one token's columns come before the next token's.
    cut = x.unflatten(-1, (num_heads, -1))  # (B, T, H, D)
    return cut.transpose(1, 2)  # (B, H, T, D), a view: no number has moved


def merge_heads(x: Tensor) -> Tensor:
    """x (B, H, T, D) -> (B, T, E), E = H * D: split_heads undone."""
    # The same two moves backwards. After the transpose the dimensions no longer lie in memory in their order, so view
    # would raise; flatten (like reshape) copies where it has to.
    return x.transpose(1, 2).flatten(-2)  # (B, T, H, D) -> (B, T, E)
