# A class derived from ValueError, with its name: a ValueError to whoever catches one.
# outcome: passed
class ValueError(ValueError):
    pass


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads != 0:
        raise ValueError(f"num_heads {num_heads} does not divide the width {x.shape[-1]}")
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def merge_heads(x):
    return x.transpose(1, 2).flatten(-2)
