# breaks: indivisible_heads
# mistake: arguments.unchecked
def split_heads(x, num_heads):
    assert x.shape[-1] % num_heads == 0, "num_heads must divide E"
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def merge_heads(x):
    return x.transpose(1, 2).flatten(2)
