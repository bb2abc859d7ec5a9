# breaks: split_of_strided
# mistake: layout.view_of_strided
def split_heads(x, num_heads):
    B, T, E = x.shape
    if E % num_heads:
        raise ValueError
    return x.view(B, T, num_heads, E // num_heads).contiguous().view(B * T, num_heads, -1).view(B, T, num_heads, -1).transpose(1, 2)


def merge_heads(x):
    return x.transpose(1, 2).flatten(2)
