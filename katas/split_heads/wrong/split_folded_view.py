# breaks: split_shape
# mistake: split.no_transpose
def split_heads(x, num_heads):
    B, T, E = x.shape
    if E % num_heads:
        raise ValueError
    return x.reshape(B * num_heads, T, E // num_heads)


def merge_heads(x):
    return x.transpose(1, 2).flatten(2)
