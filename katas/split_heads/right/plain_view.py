# style: view of (B, T, E) as it comes: a dimension can always be cut in two without a copy
def split_heads(x, num_heads):
    B, T, E = x.shape
    head_dim = E // num_heads
    if head_dim * num_heads != E:
        raise ValueError(f"embed_dim {E} must be divisible by num_heads {num_heads}")
    return x.view(B, T, num_heads, head_dim).transpose(1, 2)


def merge_heads(x):
    batch, heads, length, size = x.shape
    out = x.transpose(1, 2).contiguous()
    return out.view(batch, length, -1)
