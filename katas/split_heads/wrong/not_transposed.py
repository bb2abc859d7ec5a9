# breaks: split_shape
# mistake: split.order
def split_heads(x, num_heads):
    B, T, E = x.shape
    if E % num_heads:
        raise ValueError
    return x.reshape(B, T, num_heads, E // num_heads)


def merge_heads(x):
    return x.transpose(1, 2).flatten(2)
