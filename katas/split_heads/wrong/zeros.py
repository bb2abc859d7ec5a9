# breaks: split_values, merge_values, round_trip
# mistake: none
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError
    return x.new_zeros(x.shape[0], num_heads, x.shape[1], x.shape[2] // num_heads)


def merge_heads(x):
    return x.new_zeros(x.shape[0], x.shape[2], x.shape[1] * x.shape[3])
