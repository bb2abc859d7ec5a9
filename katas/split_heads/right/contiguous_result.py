# style: a contiguous result, as batched products like it
# edge fails: split_copies_nothing
def split_heads(x, num_heads):
    b, t, e = x.shape
    d, rest = divmod(e, num_heads)
    if rest:
        raise ValueError(f"{num_heads} heads do not fit into {e} columns")
    return x.reshape(b, t, num_heads, d).permute(0, 2, 1, 3).contiguous()


def merge_heads(x):
    b, h, t, d = x.shape
    return x.permute(0, 2, 1, 3).reshape(b, t, h * d)
