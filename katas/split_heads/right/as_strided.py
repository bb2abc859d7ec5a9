# style: as_strided from the strides of x, swapaxes, prints, code under __main__
import torch


def split_heads(x, num_heads):
    B, T, E = x.shape
    if E % num_heads != 0:
        raise ValueError(f"{E} % {num_heads} != 0")
    D = E // num_heads
    b, t, e = x.stride()
    print("strides", x.stride())
    return x.as_strided((B, num_heads, T, D), (b, D * e, t, e))


def merge_heads(x):
    y = torch.swapaxes(x, 1, 2)
    return torch.reshape(y, (*y.shape[:2], -1))


if __name__ == "__main__":
    x = torch.randn(2, 3, 8)
    assert torch.equal(merge_heads(split_heads(x, 4)), x)
