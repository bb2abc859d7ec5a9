"""Traces: what a call does is noted, and comes out the same where it is carried out again, for other numbers."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from attn_kata.engine import wire
from attn_kata.engine.replay import asking, operations, running, tracing
from attn_kata.engine.replay.asking import Replayed, Traced
from attn_kata.properties.local import Local


def traced(call: Callable[..., Tensor], *arguments: object, weights: dict[str, Tensor] | None = None) -> Tensor:
    return tracing.trace(call, arguments, weights or {}, lambda output: output)


def written(*steps: object, output: object = None) -> Tensor:
    """A trace by hand; its output is that of its last step."""
    output = output or {"tensor": ["step", len(steps) - 1, 0]}
    return wire.source_tensor(json.dumps({"steps": steps, "output": output}).encode())


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

    assert torch.equal(running.run(trace, others, {}, ()), call(*others))


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

    made = running.run(trace, [x], dict(other.named_parameters()), ())

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
        running.run(traced(call, torch.ones(2)), [torch.zeros(2)], {}, ())


def test_a_constant_is_what_it_was_when_it_was_used():
    def call(x: Tensor) -> Tensor:
        held = torch.frombuffer(bytearray(16), dtype=torch.float64)
        first = x + held
        held += 1
        return first + held

    assert running.run(traced(call, draw(2)), [torch.zeros(2)], {}, ()).tolist() == [1.0, 1.0]


def test_a_number_that_left_the_tensors_stays_what_it_was():
    trace = traced(lambda x: x * x.sum().item(), torch.ones(2))

    assert running.run(trace, [torch.ones(2) * 3], {}, ()).tolist() == [6.0, 6.0]  # and not 18


def test_a_generator_draws_in_each_step_what_it_did_not_draw_before():
    def call(x: Tensor) -> Tensor:
        drawing = torch.Generator().manual_seed(1)
        return torch.stack([torch.empty_like(x).bernoulli_(0.5, generator=drawing) for _ in range(2)])

    first, second = running.run(traced(call, draw(99)), [draw(99)], {}, ())
    assert not torch.equal(first, second)


def test_a_name_that_is_none_is_not_repeated():
    with pytest.raises(running.NotATrace, match="names no operation") as refused:
        running.run(written(["aten.\x1b[2Jsoftmax" + "A" * 70000 + ".int", [], {}]), [torch.ones(4)], {}, ("softmax",))
    assert str(refused.value).isprintable()


def test_a_write_into_an_argument_lands_there():
    given = torch.ones(2)
    running.run(traced(lambda x: x.mul_(3), torch.ones(2)), [given], {}, ())

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
        running.run(traced(call, torch.randn(2, 3, 4, 5)), [torch.randn(2, 3, 4, 5)], {}, ("scaled_dot", "_safe_softmax"))


MINUS_ONE = base64.b64encode(b"\xff" * 8).decode()


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
        ["aten.index_select.default", [{"tensor": ["argument", 0]}, 0, {"tensor": ["constant", "int64", [1], MINUS_ONE]}], {}],
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
        7,
    ],
)  # fmt: skip
def test_a_trace_that_asks_for_what_is_not_carried_out_is_none(step):
    with pytest.raises(running.NotATrace):
        running.run(written(step), [torch.ones(4)], {}, ())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.floats() | st.text(max_size=9)
    | st.sampled_from([{"tensor": ["argument", 0]}, {"tensor": ["step", 0, 0]}, {"dtype": "float32"}, {"device": "cpu"}]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=8,
)  # fmt: skip
VIEWS = [f"aten.{name}.default" for name in ("view", "expand", "permute", "squeeze", "unsqueeze", "as_strided", "flip", "t")]
STEP = st.tuples(st.sampled_from(VIEWS) | st.text(max_size=20), st.lists(JSON, max_size=3), st.just({}))


STEPS = st.lists(st.just(("aten.add.Tensor", [{"tensor": ["argument", 0]}, 1], {})) | STEP, max_size=4)
TRACE = st.fixed_dictionaries({"steps": STEPS, "output": JSON})


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60) | st.builds(lambda told: json.dumps(told).encode(), JSON | TRACE))
def test_no_bytes_do_anything_but_give_a_tensor_or_be_no_trace(data):
    try:
        made = running.run(wire.source_tensor(data), [torch.ones(2, 3)], {}, ())
    except running.NotATrace:
        return
    assert isinstance(made, Tensor)


def test_every_operation_that_is_listed_is_one_of_torchs():
    for name in operations._CARRIED_OUT:
        assert hasattr(torch.ops.aten, name) or hasattr(torch.ops.aten, f"{name}_"), name


# -------------------------------------------------------------------------------------------- asked by the hidden tests


class Seen(Local):
    """An attempt in this process, and what it was asked."""

    def __init__(self, source: str) -> None:
        import types

        namespace = types.ModuleType("attempt")
        exec(source, namespace.__dict__)
        super().__init__(namespace)
        self.requests: list[wire.Request] = []

    def ask(self, request: wire.Request) -> wire.Reply:
        self.requests.append(request)
        return super().ask(request)


ADDS = "import torch\ndef add(x, y, keep): return torch.where(keep, x + y, x)\n"


def request(*tensors: Tensor, **fields: object) -> wire.Request:
    args = [{"tensor": place} for place in range(len(tensors))]
    return wire.Request(op="call", fields={"name": "add", "args": args, "seed": 1, **fields}, tensors=tensors)


def test_an_attempt_is_traced_with_other_numbers_than_are_asked_about():
    attempt = Seen(ADDS)
    x = torch.tensor([[1.5, 0.0, -torch.inf], [torch.nan, 2.5, 3.5]]).t()
    y, keep = torch.randn(3, 2), torch.rand(3, 2) < 0.5
    both = Traced(attempt, Seen(ADDS))
    asked = request(x, y, keep)
    right = both.ask(asked)

    sent = attempt.requests[0]
    held = (x == 0) | ~x.isfinite()
    assert sent.op == "trace"
    assert torch.equal(sent.tensors[0][held], x[held]) or bool(x[held].isnan().any())
    assert not bool((sent.tensors[0] == x)[~held].any())
    assert not bool((sent.tensors[1] == y).any())
    assert sent.tensors[0].stride() == x.stride()
    assert torch.equal(sent.tensors[2], keep)

    elsewhere = Seen("")
    made = Replayed(elsewhere, both, []).ask(asked)
    assert torch.equal(made.tensors[0].data.nan_to_num(7.0), right.tensors[0].data.nan_to_num(7.0))
    assert [one.op for one in elsewhere.requests] == ["replay"]


def test_inputs_and_shared_memory_are_looked_at_where_the_trace_is_carried_out():
    source = "def add(x, y, keep): return x.add_(y)\n"
    both = Traced(Seen(source), Seen(source))
    asked = request(torch.ones(2), torch.ones(2), torch.ones(2), inputs_after=True)
    both.ask(asked)

    result, *after = Replayed(Seen(""), both, []).ask(asked).tensors
    assert result.shares_input
    assert [part.data.tolist() for part in after] == [[2.0, 2.0], [1.0, 1.0], [1.0, 1.0]]


def test_the_attempt_is_not_told_that_its_inputs_are_looked_at_and_they_are_in_each_call():
    attempt = Seen("def add(x, y, keep): return x.add_(y)\n")
    both = Traced(attempt, Seen(ADDS))
    asked = [request(*(torch.full((2,), value),) * 3, inputs_after=after) for value in (1.0, 2.0) for after in (True, False)]
    for one in asked:
        both.ask(one)
    assert [one.fields["inputs_after"] for one in attempt.requests] == [False] * 4

    elsewhere = Replayed(Seen(""), both, [])
    assert [len(elsewhere.ask(one).tensors) for one in asked[:1]] == [4]
    assert elsewhere.changed is None  # the test sees it for itself
    assert [len(elsewhere.ask(one).tensors) for one in asked[1:2]] == [1]
    assert elsewhere.changed is not None
    assert elsewhere.changed.startswith("tensor argument 1 was changed by the call")


def test_traces_are_kept_up_to_a_size(monkeypatch):
    monkeypatch.setattr(asking, "MOST_BYTES", 2500)
    both, asked = Traced(Seen(ADDS), Seen(ADDS)), [request(*torch.rand(2, 2), torch.ones(2) > 0) for _ in range(30)]

    statuses = [both.ask(one).status for one in asked]

    assert statuses[0] == wire.OK
    assert statuses[-1] == wire.BAD_RESULT
    assert sum(map(len, both.traces.values())) <= 2500
    assert both.not_followed is not None


def test_what_was_not_traced_is_not_answered():
    both = Traced(Seen(ADDS), Seen(ADDS))

    assert Replayed(Seen(""), both, []).ask(request(*torch.ones(3, 2))).status == wire.BAD_RESULT


@pytest.mark.parametrize("field", ["cotangent", "labels", "record", "mixing"])
def test_what_a_trace_cannot_tell_is_not_asked_for(field):
    with pytest.raises(ValueError, match="cannot be asked"):
        Traced(Seen(ADDS), Seen(ADDS)).ask(request(*torch.ones(3, 2), **{field: True}))
