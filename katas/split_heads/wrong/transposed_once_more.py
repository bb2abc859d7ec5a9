# breaks: split_shape, merge_shape
# mistake: split.order + merge.order
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError
    return x.unflatten(-1, (num_heads, -1)).permute(0, 2, 3, 1)


def merge_heads(x):
    return x.permute(0, 3, 1, 2).flatten(2)
