# breaks: merge_keeps_tokens, merge_values, round_trip
# mistake: merge.no_transpose
def split_heads(x, num_heads):
    B, T, E = x.shape
    if E % num_heads:
        raise ValueError
    return x.reshape(B, T, num_heads, E // num_heads).transpose(1, 2)


def merge_heads(x):
    B, H, T, D = x.shape
    return x.contiguous().view(B, T, H * D)
