# breaks: split_keeps_tokens, split_values, round_trip
# mistake: split.no_transpose
def split_heads(x, num_heads):
    B, T, E = x.shape
    if E % num_heads:
        raise ValueError
    return x.reshape(B, num_heads, T, E // num_heads)


def merge_heads(x):
    B, H, T, D = x.shape
    return x.transpose(1, 2).reshape(B, T, H * D)
