# style: exp by hand, with the maximum off; helpers, prints, a decorator, code under __main__
import functools

import torch

print("loading my attention")


def talks(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        out = function(*args, **kwargs)
        print(function.__name__, [tuple(a.shape) for a in args], "->", tuple(out.shape))
        return out

    return wrapper


def my_softmax(x, dim):
    x = x - x.max(dim=dim, keepdim=True).values.detach()
    e = x.exp()
    return e.div(e.sum(dim=dim, keepdim=True))


@talks
def scaled_dot_product_attention(q, k, v):
    root = torch.sqrt(torch.tensor(q.shape[-1], dtype=q.dtype))
    return torch.matmul(my_softmax(torch.matmul(q, k.transpose(-2, -1)) / root, -1), v)


if __name__ == "__main__":
    a = torch.randn(2, 5, 8)
    assert torch.allclose(scaled_dot_product_attention(a, a, a), torch.nn.functional.scaled_dot_product_attention(a, a, a))
