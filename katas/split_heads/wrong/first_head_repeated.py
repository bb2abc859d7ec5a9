# breaks: split_values, merge_values, round_trip
# mistake: none
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError
    D = x.shape[-1] // num_heads
    return x[:, None, :, :D].expand(-1, num_heads, -1, -1)


def merge_heads(x):
    return x[:, 0].repeat(1, 1, x.shape[1])
