# breaks: indivisible_heads
# mistake: arguments.unchecked
def split_heads(x, num_heads):
    B, T, E = x.shape
    D = E // num_heads
    return x[..., : D * num_heads].reshape(B, T, num_heads, D).transpose(1, 2)


def merge_heads(x):
    return x.transpose(1, 2).flatten(2)
