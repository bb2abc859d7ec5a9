# breaks: split_keeps_tokens, split_values, merge_keeps_tokens, merge_values
# mistake: split.no_transpose + merge.no_transpose
def split_heads(x, num_heads):
    B, T, E = x.shape
    if E % num_heads:
        raise ValueError
    return x.reshape(B, num_heads, T, E // num_heads)


def merge_heads(x):
    B, H, T, D = x.shape
    return x.reshape(B, T, H * D)
