"""Traces: what a call does is noted, and comes out the same where it is carried out again, for other numbers."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from attn_kata.engine import wire
from attn_kata.engine.replay import operations, running, tracing


def traced(call: Callable[..., Tensor], *arguments: object, weights: dict[str, Tensor] | None = None) -> Tensor:
    with tracing.Tracing(arguments, weights or {}) as noting:
        output = call(*arguments)
    return noting.told([output])


def run(trace: Tensor, arguments: Sequence[object], weights: dict[str, Tensor] | None = None, forbidden=()) -> Tensor:
    (output,) = running.run(trace, arguments, weights or {}, forbidden)
    assert output is not None
    return output


def written(*steps: object) -> Tensor:
    """A trace by hand; what it gives is that of its last step."""
    outputs = [{"tensor": ["step", len(steps) - 1, 0]}]
    steps = tuple([*step, None] if isinstance(step, list) else step for step in steps)
    return wire.source_tensor(json.dumps({"steps": steps, "outputs": outputs}).encode())


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def by_loops(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    out = torch.zeros_like(v[..., : q.shape[-2], :])
    for row in range(q.shape[-2]):
        scores = torch.stack([(q[:, row] * k[:, key]).sum(-1) for key in range(k.shape[-2])], dim=-1)
        for key, weight in enumerate(scores.div(math.sqrt(q.shape[-1])).softmax(-1).unbind(-1)):
            out[:, row] += weight[:, None] * v[:, key]
    return out


def by_einsum(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.einsum("bqd,bkd->bqk", q, k).mul_(q.shape[-1] ** -0.5)
    hidden = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1)
    scores[:, hidden] = -torch.inf
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    return torch.einsum("bqk,bkd->bqd", weights / weights.sum(-1, keepdim=True), v)


def by_vmap(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    out = torch.empty_like(v)
    torch.matmul(torch.vmap(lambda a, b: functional.softmax(a @ b.mT, dim=-1))(q, k), v, out=out)
    return out


def past_autograd(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    with torch.no_grad():
        largest = (q.data @ k.data.mT).max(dim=-1, keepdim=True).values
    return torch.where(largest > 0, (q @ k.mT - largest).exp(), torch.tensor(2.0, dtype=q.dtype)) @ v


def by_complex(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.complex(q, v) @ k.to(torch.complex128).mH * torch.tensor(2j)
    return torch.view_as_real(scores.conj().resolve_conj()).sum(-1) + scores.imag


def by_a_sparse_mask(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    places = torch.tril_indices(4, 4)
    hidden = torch.sparse_coo_tensor(places, torch.ones_like(places[0]), (4, 4)).bool().to_dense().logical_not()
    bias = torch.zeros(4, 4, dtype=q.dtype).masked_fill_(hidden, -torch.inf)
    bias[0] += q[0, 0, 0]
    return torch.softmax(q @ k.mT + bias, dim=-1) @ v * torch.nested.nested_tensor([places[0]]).to_padded_tensor(0).sum()


@pytest.mark.parametrize("call", [by_loops, by_einsum, by_vmap, past_autograd, by_complex, by_a_sparse_mask])
def test_a_trace_gives_for_other_numbers_what_the_call_gives(call):
    trace = traced(call, *(draw(2, 4, 5) for _ in range(3)))
    others = [draw(2, 4, 5) for _ in range(3)]

    assert torch.equal(run(trace, others), call(*others))


class Layers(nn.Module):
    """One weight is read through a view that was kept since the module was built, one number is a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(6, 12)
        self.first = self.qkv.weight.detach()[:6]
        self.register_buffer("scale", torch.tensor([2.0, 3.0]))

    def forward(self, x: Tensor) -> Tensor:
        return self.qkv(x)[..., :6] + x @ self.first.t() * self.scale[0]


def test_weights_are_followed_by_name_and_through_views_that_are_kept():
    module, x = Layers(), torch.randn(3, 6)
    trace = traced(module, x, weights=dict(module.named_parameters()))
    other = Layers()

    made = run(trace, [x], dict(other.named_parameters()), ())

    assert torch.allclose(made, other(x))
    assert not torch.allclose(made, module(x))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.sparse_coo_tensor([[0, 1]], x.data).to_dense(),
        lambda x: torch.ones(2).copy_(x).to_sparse().to_dense(),
        lambda x: x * torch.zeros(2).to_sparse(),
    ],
)
def test_what_depends_on_numbers_that_are_drawn_is_never_a_constant(call):
    with pytest.raises(running.NotATrace):
        run(traced(call, torch.ones(2)), [torch.zeros(2)])


def test_a_constant_is_what_it_was_when_it_was_used():
    def call(x: Tensor) -> Tensor:
        held = torch.frombuffer(bytearray(16), dtype=torch.float64)
        first = x + held
        held += 1
        return first + held

    assert run(traced(call, draw(2)), [torch.zeros(2)]).tolist() == [1.0, 1.0]


def test_a_number_that_left_the_tensors_stays_what_it_was():
    trace = traced(lambda x: x * x.sum().item(), torch.ones(2))

    assert run(trace, [torch.ones(2) * 3]).tolist() == [6.0, 6.0]  # and not 18


def scaled(x: Tensor) -> Tensor:
    return x.softmax(-1).cumsum(-1)[..., 1:].relu() * x[..., :-1].sigmoid()


class Doubled(torch.autograd.Function):
    """Its backward pass is its own: four times as much as that of its operations."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        return 8 * gradient


@pytest.mark.parametrize(
    "call", [by_loops, by_einsum, past_autograd, lambda q, k, v: scaled(q), lambda q, k, v: Doubled.apply(k)]
)
def test_gradients_are_followed_as_they_are_made(call):
    def gradients(*given: Tensor) -> list[Tensor | None]:
        leaves = [part.clone().requires_grad_() for part in given]
        return list(torch.autograd.grad(call(*leaves).square().sum(), leaves, allow_unused=True))

    given, others = ([draw(2, 4, 5) for _ in range(3)] for _ in range(2))
    leaves = [part.requires_grad_() for part in given]
    with tracing.Tracing(leaves, {}) as noting:
        noted = torch.autograd.grad(call(*leaves).square().sum(), leaves, allow_unused=True)
    made = running.run(noting.told(noted), others, {}, ())

    assert [one is None for one in made] == [one is None for one in noted]
    for one, other in zip(made, gradients(*others), strict=True):
        assert one is None or torch.allclose(one, other)


@pytest.mark.parametrize("reentrant", [True, False])
def test_what_is_computed_again_for_its_gradients_drops_the_same(reentrant):
    x = torch.ones(99, requires_grad=True)
    with tracing.Tracing([x], {}) as noting:
        out = checkpoint(lambda y: functional.dropout(y, 0.5) * y, x, use_reentrant=reentrant)
        out.sum().backward()  # a reentrant one takes no torch.autograd.grad
    trace = noting.told([out, x.grad])

    torch.manual_seed(3)
    first, gradient = running.run(trace, [torch.ones(99)], {}, ())
    again, _ = running.run(trace, [torch.ones(99)], {}, ())
    assert torch.equal(gradient, 2 * first)
    assert not torch.equal(first, again)


def test_a_generator_draws_in_each_step_and_each_time_what_it_did_not_draw_before():
    def call(x: Tensor) -> Tensor:
        drawing = torch.Generator().manual_seed(1)
        return torch.stack([torch.empty_like(x).bernoulli_(0.5, generator=drawing) for _ in range(2)])

    trace = traced(call, draw(99))
    first, second = run(trace, [draw(99)])
    assert not torch.equal(first, second)
    assert not torch.equal(first, run(trace, [draw(99)])[0])


def test_a_name_that_is_none_is_not_repeated():
    with pytest.raises(running.NotATrace, match="names no operation") as refused:
        run(written(["aten.\x1b[2Jsoftmax" + "A" * 70000 + ".int", [], {}]), [torch.ones(4)], {}, ("softmax",))
    assert str(refused.value).isprintable()


def test_a_write_into_an_argument_lands_there():
    given = torch.ones(2)
    run(traced(lambda x: x.mul_(3), torch.ones(2)), [given])

    assert given.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: functional.scaled_dot_product_attention(x, x, x),
        lambda x: torch.ops.aten._scaled_dot_product_attention_math(x, x, x)[0],
    ],
)
def test_what_is_forbidden_is_refused_by_its_name(call):
    with pytest.raises(running.Forbidden, match=r"aten\._"):
        run(traced(call, torch.randn(2, 3, 4, 5)), [torch.randn(2, 3, 4, 5)], {}, ("scaled_dot", "_safe_softmax"))


MINUS_ONE = base64.b64encode(b"\xff" * 8).decode()
MINUS = {"tensor": ["constant", "int64", [1], MINUS_ONE]}
COUNTS = {"tensor": ["constant", "int64", [2], "CAAAAAABAAAAAAAAAP///w=="]}  # 2^40 + 8 and -2^40
EMPTY = {"tensor": ["constant", "float32", [0, 3], ""]}


@pytest.mark.parametrize(
    "step",
    [
        ["aten._reshape_alias.default", [{"tensor": ["argument", 0]}, [1000], [1]], {}],
        ["aten.from_file.default", ["/etc/passwd"], {}],
        ["aten.set_.source_Tensor", [{"tensor": ["argument", 0]}, {"tensor": ["argument", 0]}], {}],
        ["aten.mul.left_t", [[1], 1 << 40], {}],  # TorchScript's, on lists
        ["aten.remainder.default", [1, 0], {}],  # TorchScript's, on numbers
        ["prim.device.default", [{"tensor": ["argument", 0]}], {}],
        ["aten.__class__.default", [], {}],
        ["aten.add.__init__", [1, 1], {}],
        ["aten.add", [], {}],
        ["aten.as_strided.default", [{"tensor": ["argument", 0]}, [1000], [1]], {}],
        ["aten.as_strided_.default", [{"tensor": ["argument", 0]}, [4], [1], (1 << 62) - 500], {}],  # 2000 bytes before it
        ["aten.index_select.default", [{"tensor": ["argument", 0]}, 0, MINUS], {}],
        ["aten.empty.memory_format", [[1 << 60]], {}],
        ["aten.add.Tensor", [{"tensor": ["argument", 7]}, 1], {}],
        ["aten.add.Tensor", [{"tensor": ["step", 0, 0]}, 1], {}],
        ["aten.add.Tensor", [{"tensor": ["nowhere"]}, 1], {}],
        ["aten.add.Tensor", [{"tensor": ["constant", "bool", [1], "Bw=="]}, 1], {}],
        ["aten.add.Tensor", [{"unknown": "Generator"}, 1], {}],
        ["aten.sum.default", [{"tensor": ["argument", 0]}], {"dtype": {"dtype": "complex32"}}],
        ["aten.sum.default", [{"tensor": ["argument", 0]}], {"dtype": 7}],  # double, as a number
        ["aten.zeros.default", [[4], 7], {}],
        ["aten.zeros.default", [[4]], {"layout": 1}],  # sparse
        ["aten.zeros.default", [[4]], {"dtype": {"tensor": ["constant", "uint8", [], "Bw=="]}}],
        ["aten.contiguous.default", [{"tensor": ["argument", 0]}], {"memory_format": 0}],
        ["aten.add\x1b[2J.Tensor", [{"tensor": ["argument", 0]}, 1], {}],
        # Torch's own kernels write or read past the ends of these, and most end the process.
        ["aten._softmax_backward_data.default", [{"tensor": ["argument", 0]}, EMPTY, 0, {"dtype": "float32"}], {}],
        ["aten.gelu_backward.default", [{"tensor": ["argument", 0]}, EMPTY], {}],
        ["aten.tanh_backward.grad_input", [{"tensor": ["argument", 0]}] * 2, {"grad_input": EMPTY}],
        ["aten._cdist_backward.default", [{"tensor": ["argument", 0]}, EMPTY, EMPTY, 2.0, EMPTY], {}],
        ["aten.embedding_dense_backward.default", [{"tensor": ["argument", 0]}, MINUS, 5, -2, True], {}],
        ["aten.repeat_interleave.Tensor", [COUNTS], {"output_size": 8}],
        7,
    ],
)  # fmt: skip
def test_a_trace_that_asks_for_what_is_not_carried_out_is_none(step):
    with pytest.raises(running.NotATrace):
        run(written(step), [torch.ones(4)])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.floats() | st.text(max_size=9)
    | st.sampled_from([{"tensor": ["argument", 0]}, {"tensor": ["step", 0, 0]}, {"dtype": "float32"}, {"device": "cpu"}]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=8,
)  # fmt: skip
VIEWS = [f"aten.{name}.default" for name in ("view", "expand", "permute", "squeeze", "unsqueeze", "as_strided", "flip", "t")]
STEP = st.tuples(st.sampled_from(VIEWS) | st.text(max_size=20), st.lists(JSON, max_size=3), st.just({}), st.none() | JSON)


STEPS = st.lists(st.just(("aten.add.Tensor", [{"tensor": ["argument", 0]}, 1], {}, None)) | STEP, max_size=4)
TRACE = st.fixed_dictionaries({"steps": STEPS, "outputs": st.lists(JSON, min_size=1, max_size=2)})


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60) | st.builds(lambda told: json.dumps(told).encode(), JSON | TRACE))
def test_no_bytes_do_anything_but_give_a_tensor_or_be_no_trace(data):
    try:
        made = running.run(wire.source_tensor(data), [torch.ones(2, 3)], {}, ())
    except running.NotATrace:
        return
    assert all(output is None or isinstance(output, Tensor) for output in made)


def random_like(x: Tensor) -> Tensor:
    return torch.randn_like(x)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.cdist(x, random_like(x)),
        lambda x: functional.conv1d(x, random_like(x)[:, :, :2], torch.ones(2, dtype=x.dtype, requires_grad=True), padding=1),
        lambda x: functional.embedding(torch.tensor([[0, 2], [2, 1]]), x[0], padding_idx=1),
        lambda x: x.unfold(1, 2, 1) * x.diagonal(dim1=1, dim2=2).sum(),
        lambda x: functional.gelu(x) + functional.silu(x) * x.log_softmax(0) * functional.dropout(x, 0.5, False),
    ],
)
def test_a_backward_pass_gives_what_torch_gives(call):
    given, other = (torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))

    def gradient(x: Tensor) -> Tensor:
        torch.manual_seed(1)
        return torch.autograd.grad(call(x).square().sum(), x)[0]

    with tracing.Tracing([given], {}) as noting:
        noted = gradient(given)
    torch.manual_seed(1)
    assert torch.allclose(run(noting.told([noted]), [other.detach()]), gradient(other))


def test_every_operation_that_is_listed_is_one_of_torchs():
    for name in operations._CARRIED_OUT:
        assert hasattr(torch.ops.aten, name) or hasattr(torch.ops.aten, f"{name}_"), name
