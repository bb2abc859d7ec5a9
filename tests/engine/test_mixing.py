"""The one product that the grader makes: whatever way an attempt takes to it, the result is right for the mixed input."""

from __future__ import annotations

import types

import pytest
import torch

from attn_kata.properties import PropertyFailed, assert_close
from attn_kata.properties.handle import Handle
from attn_kata.properties.local import Local

WAYS = {
    "linear": "F.linear(x, w, b)",
    "the weight on the left": "(w @ x.mT).mT + b",
    "einsum": "torch.einsum('oi,bti->bto', w, x) + b",
    "tensordot": "torch.tensordot(w, x, ([1], [2])).movedim(0, -1) + b",
    "inner": "torch.inner(x, w) + b",
    "mm": "x.reshape(-1, I).mm(w.t()).view(B, T, -1) + b",
    "addmm in place": "b.expand(B * T, -1).clone().addmm_(x.reshape(-1, I), w.T).view(B, T, -1)",
    "mm into a tensor of its own": "torch.mm(x.reshape(-1, I), w.T, out=x.new_empty(0)).view(B, T, -1) + b",
    "bmm": "torch.bmm(x, w.T.expand(B, -1, -1)) + b",
    "baddbmm": "torch.baddbmm(b.expand(B, 1, -1), x, w.T.expand(B, -1, -1))",
    "baddbmm without its first": "torch.baddbmm(x.new_full((1, 1, 1), nan), x, w.T.expand(B, -1, -1), beta=0) + b",
    "addbmm": "torch.addbmm(b.expand(B * T, -1), x.reshape(1, -1, I), w.T[None]).view(B, T, -1)",
    "a matrix and a vector, mapped": "torch.vmap(torch.vmap(lambda token: w.mv(token)))(x) + b",
    "three batches": "torch.cat([*(x.reshape(1, -1, I).expand(3, -1, -1).bmm(w.view(3, -1, I).mT))], -1).view(B, T, -1) + b",
    "the bias in front of the weight": "torch.cat([one, x], -1) @ torch.cat([b[:, None], w], 1).T",
    "the bias behind the weight": "torch.cat([w, b[:, None]], 1) @ torch.cat([x, one], -1).mT",
    "a convolution over time": "F.conv1d(x.mT, w[..., None], b).mT",
    "a convolution over features": "F.conv1d(x.reshape(B * T, 1, I), w[:, None], b).view(B, T, -1)",
    "a convolution of two dimensions": "F.conv2d(x.mT[..., None], w[..., None, None], b)[..., 0].mT",
    "a sparse weight": "torch.sparse.mm(w.to_sparse(), x.reshape(-1, I).T).T.view(B, T, -1) + b",
    "a scale on both sides": "F.linear(2 * x, w / 2, b)",
}
WRONG = {
    "no product": "(x[..., None, :] * w).sum(-1) + b",
    "a second product": "torch.cat([F.linear(x, part, b[:5]) for part in w.split(5)], -1)",
    "what the mix does to each input": "F.linear(x.reshape(-1, I) @ torch.eye(I).double(), w, b).view(B, T, -1)",
    "a part of the sum": "x[..., :9] @ w[:, :9].T + x[..., 9:] @ w[:, 9:].T + b",
}


def ours(way: str) -> Handle:
    source = f"""
import torch
from torch.nn import functional as F
nan = float("nan")


def projected(x, w, b):
    (B, T, I), one = x.shape, torch.ones_like(x[..., :1])
    y = {way}
    return y if y.shape[1] == T else y.mT
"""
    namespace = types.ModuleType("attempt")
    exec(source, namespace.__dict__)
    return Handle(Local(namespace))


def asked() -> tuple[torch.Tensor, ...]:
    """x (2, 3, 23), w (15, 23), b (15,) and a symmetric mix (23, 23)."""
    x, w, b, mix = (torch.randn(shape, dtype=torch.float64) for shape in ((2, 3, 23), (15, 23), (15,), (23, 23)))
    return x, w, b, mix + mix.T


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_any_one_product_is_made_with_the_mix_in_it(way):
    x, w, b, mix = asked()

    out = ours(way).projected.run_mixed(x, w, b, mix=mix, most=2 * 3 * 15)

    assert_close(out, x @ mix @ w.T + b, atol=1e-9)
    assert_close(ours(way).projected(x, w, b), x @ w.T + b, atol=1e-9)  # torch's own kernels are back


@pytest.mark.parametrize("way", WRONG.values(), ids=WRONG)
def test_no_other_way_gives_what_the_mix_makes_of_it(way):
    x, w, b, mix = asked()

    with pytest.raises(PropertyFailed):
        assert_close(ours(way).projected.run_mixed(x, w, b, mix=mix, most=2 * 3 * 15), x @ mix @ w.T + b, atol=1e-5)
