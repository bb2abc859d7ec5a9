# breaks: split_columns, split_values, merge_columns, merge_values
# mistake: split.interleaved + merge.interleaved
def split_heads(x, num_heads):
    B, T, E = x.shape
    if E % num_heads:
        raise ValueError
    return x.reshape(B, T, E // num_heads, num_heads).permute(0, 3, 1, 2)


def merge_heads(x):
    B, H, T, D = x.shape
    return x.permute(0, 2, 3, 1).reshape(B, T, H * D)
