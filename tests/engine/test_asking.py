"""What the hidden tests ask is traced with other numbers, and answered where the traces are carried out."""

from __future__ import annotations

import types
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from attn_kata.engine import wire
from attn_kata.engine.replay import asking, decoys
from attn_kata.engine.replay.asking import Replayed, Traced
from attn_kata.properties.local import Local


class Seen(Local):
    """An attempt in this process, and what it was asked."""

    def __init__(self, source: str) -> None:
        namespace = types.ModuleType("attempt")
        exec(source, namespace.__dict__)
        super().__init__(namespace)
        self.requests: list[wire.Request] = []
        self.posted: list[bytes] = []
        self.ahead: list[bytes] = []

    def post(self, request: wire.Request) -> None:
        self.posted.append(wire.encode_question(request))

    def ask_ahead(self, questions: list[bytes]) -> None:
        self.ahead = questions

    def ask(self, request: wire.Request) -> wire.Reply:
        self.requests.append(request)
        return super().ask(request)


ADDS = "import torch\ndef add(x, y, keep): return torch.where(keep, x + y, x)\n"
COMPARES = "import torch\ndef add(x, y, keep): return torch.where(keep, x + y, x) if x.max() > 1 else x\n"
WRITES = "def add(x, y, keep): return x.add_(y)\n"
RAISES = "def add(x, y, keep): raise ValueError('no')\n"
SCALE = """
from torch import nn
class Scale(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = nn.Linear(size, size)
        self.drop = nn.Dropout(0.5)
    def forward(self, x):
        return self.drop(self.layer(x))
"""


def request(*tensors: Tensor, **fields: object) -> wire.Request:
    args = [{"tensor": place} for place in range(len(tensors))]
    return wire.Request(op="call", fields={"name": "add", "args": args, "seed": 1, **fields}, tensors=tensors)


def traced(attempt: Seen, *asked: wire.Request, reference: str = ADDS, near: bool = False) -> Traced:
    both = Traced(attempt, Seen(reference), near=near)
    for one in asked:
        both.ask(one)
    both.collect()
    return both


def xy(size: int = 6) -> tuple[Tensor, Tensor, Tensor]:
    return torch.randn(size), torch.randn(size), torch.ones(size) > 0


def test_an_attempt_is_traced_with_other_numbers_than_are_asked_about():
    attempt = Seen(ADDS)
    x = torch.tensor([[1.5, 0.0, -torch.inf], [torch.nan, 2.5, 3.5]]).t()
    y, keep = torch.randn(3, 2), torch.rand(3, 2) < 0.5
    asked = request(x, y, keep)
    both = Traced(attempt, Seen(ADDS))
    right = both.ask(asked)
    both.collect()

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


def test_an_attempt_is_not_told_what_the_numbers_were_drawn_from():
    source = """
import torch
class Adds(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(3))
    def forward(self, x):
        return x + self.weight
"""
    case = 4321  # what the tests' seeds and modules' numbers are made of
    attempt = Seen(source)
    build = {"module": case, "seed": case, "name": "Adds", "args": [], "names": ["weight"]}
    call = {"module": case, "seed": case + 1, "args": [{"tensor": 0}], "training": None}
    asked = (
        wire.Request(op="build", fields=build, tensors=(torch.randn(3),)),
        wire.Request(op="call", fields=call, tensors=(torch.randn(3),)),
    )
    traced(attempt, *asked, reference=source)
    told = [one.fields for one in attempt.requests]

    assert {one.op for one in attempt.requests} == {"build", "trace"}
    assert {fields["module"] for fields in told} == {0}
    assert not {case, case + 1} & {fields["seed"] for fields in told}


def test_what_is_asked_is_posted_before_it_is_waited_for():
    attempt, asked = Seen(ADDS), [request(*xy(size)) for size in (3, 4, 5, 6, 7)]
    cases = [(0, "values", 0), (0, "mask", 0), (0, "mask", 1)]
    both = Traced(attempt, Seen(ADDS))
    for case, of_case in zip(cases, (asked[:2], asked[2:4], asked[4:]), strict=True):
        both.begin(case)
        for one in of_case:
            both.ask(one)
    assert len(attempt.posted) == 5
    assert not attempt.requests
    both.collect()
    assert list(map(wire.encode_question, attempt.requests)) == attempt.posted

    elsewhere = Seen("")
    replayed = Replayed(elsewhere, both, [])
    replayed.begin(cases[0])
    for one in asked:
        assert replayed.ask(one).status == wire.OK
    assert list(map(wire.encode_question, elsewhere.requests))[:4] == elsewhere.ahead
    replayed.begin(cases[2])
    assert len(elsewhere.ahead) == 1
    replayed.begin(None)
    assert not elsewhere.ahead


def test_calls_that_differ_by_what_their_tensors_hold_alone_share_a_trace():
    attempt = Seen(ADDS)
    keep = torch.tensor([True, False])
    alike = [request(*torch.randn(2, 2), keep, seed=seed) for seed in range(3)]
    others = [
        request(*torch.randn(2, 2), ~keep),
        request(*torch.randn(2, 2).double(), keep),
        request(*torch.randn(2, 3, 2), keep),
        request(torch.randn(2, 3).t(), torch.randn(3, 2), keep),
    ]
    both = traced(attempt, *alike, *others)

    assert len(attempt.requests) == 4
    replayed = Replayed(Seen(""), both, [])
    for one in (*alike, *others):
        x, y, keep = one.tensors
        assert torch.equal(replayed.ask(one).tensors[0].data, torch.where(keep, x + y, x))


def test_near_each_call_has_a_trace_of_its_own_for_numbers_near_its_own():
    attempt = Seen(COMPARES)
    asked = [request(*(torch.full((2,), value) for value in (low, 2.0)), torch.ones(2) > 0) for low in (0.5, 4.0, 0.25)]
    both = traced(attempt, *asked, near=True)

    for sent, one in zip(attempt.requests, asked, strict=True):
        away = (sent.tensors[0] - one.tensors[0]).abs()
        assert bool((away > 0).all())
        assert bool((away < 6 * decoys.NEAR).all())
    replayed = Replayed(Seen(""), both, [])
    assert [replayed.ask(one).tensors[0].data.tolist() for one in asked] == [[0.5, 0.5], [6.0, 6.0], [0.25, 0.25]]


def test_a_test_may_write_into_what_it_has_asked_with():
    attempt = Seen(COMPARES)
    x, y, keep = torch.full((2,), 4.0), torch.ones(2), torch.ones(2) > 0
    both = Traced(attempt, Seen(ADDS), near=True)
    both.ask(request(x, y, keep))
    x.zero_()
    both.collect()

    assert Replayed(Seen(""), both, []).ask(request(torch.full((2,), 4.0), y, keep)).tensors[0].data.tolist() == [5.0, 5.0]


def test_gradients_are_those_of_the_trace():
    args = [{"tensor": 0}, {"tensor": 1}, {"tensor": 2}]
    asked = request(*xy(), torch.randn(6), args=args, cotangent=3)
    both = Traced(Seen(ADDS), Seen(ADDS))
    right = both.ask(asked)
    both.collect()
    made = Replayed(Seen(""), both, []).ask(asked)

    assert len(made.tensors) == 3
    for one, other in zip(made.tensors, right.tensors, strict=True):
        assert torch.equal(one.data, other.data)

    detached = ADDS.replace("+ y", "+ y.detach()")
    made = Replayed(Seen(""), traced(Seen(detached), asked), []).ask(asked)
    assert [part.data is None for part in made.tensors] == [False, False, True]


def of_module(op: str, *tensors: Tensor, **fields: object) -> wire.Request:
    return wire.Request(op=op, fields={"module": 7, "seed": 7, **fields}, tensors=tensors)


def test_a_module_is_asked_with_other_weights_and_carried_out_with_those_it_was_given():
    names = ["layer.bias", "layer.weight"]
    weights = [torch.randn(3), torch.randn(3, 3)]
    others = [torch.randn(3), torch.randn(3, 3)]
    x = torch.randn(2, 3)
    build = of_module("build", *weights, name="Scale", args=[{"value": 3}], names=names)
    call = of_module("call", x, args=[{"tensor": 0}], training=False)
    load = of_module("load_weights", *others, names=names)
    train = of_module("call", x, args=[{"tensor": 0}], training=True)
    attempt = Seen(SCALE)
    both = traced(attempt, build, call, load, replace(call, fields={**call.fields, "training": None}), train, reference=SCALE)
    sent = [part for one in attempt.requests for part in one.tensors if part.is_floating_point()]
    assert not any(part.shape == own.shape and bool((part == own).any()) for part in sent for own in (*weights, *others, x))

    replayed = Replayed(Seen(""), both, [])
    assert list(replayed.ask(build).texts) == names
    assert torch.allclose(replayed.ask(call).tensors[0].data, x @ weights[1].T + weights[0])
    assert replayed.ask(load).status == wire.OK
    expected = x @ others[1].T + others[0]
    assert torch.allclose(replayed.ask(replace(call, fields={**call.fields, "training": None})).tensors[0].data, expected)
    dropped = replayed.ask(train).tensors[0].data
    assert bool(((dropped == 0) | torch.isclose(dropped, 2 * expected)).all())


def test_what_an_attempt_raises_is_its_answer_and_what_is_raised_elsewhere_is_none():
    asked = request(*xy())
    raised = Replayed(Seen(""), traced(Seen(RAISES), asked), []).ask(asked)
    assert raised.status == wire.RAISED
    assert raised.texts[0].startswith("ValueError")

    class Raising(Seen):
        def ask(self, request: wire.Request) -> wire.Reply:
            return wire.Reply(status=wire.RAISED, texts=("ValueError", "forged"), tensors=())

    both = traced(Seen(ADDS), asked)
    assert Replayed(Raising(""), both, []).ask(asked).status == wire.BAD_RESULT


def test_inputs_and_shared_memory_are_looked_at_where_the_trace_is_carried_out():
    asked = request(torch.ones(2), torch.ones(2), torch.ones(2), inputs_after=True)
    both = traced(Seen(WRITES), asked, reference=WRITES)

    result, *after = Replayed(Seen(""), both, []).ask(asked).tensors
    assert result.shares_input
    assert [part.data.tolist() for part in after] == [[2.0, 2.0], [1.0, 1.0], [1.0, 1.0]]


def test_the_attempt_is_not_told_that_its_inputs_are_looked_at_and_they_are_in_each_call():
    attempt = Seen(WRITES)
    asked = [request(*(torch.full((size,), 1.0),) * 3, inputs_after=after) for size in (2, 3) for after in (True, False)]
    both = traced(attempt, *asked, reference=WRITES)
    assert [one.fields["inputs_after"] for one in attempt.requests] == [False] * 2

    elsewhere = Replayed(Seen(""), both, [])
    assert [len(elsewhere.ask(one).tensors) for one in asked[:1]] == [4]
    assert elsewhere.changed is None  # the test sees it for itself
    assert [len(elsewhere.ask(one).tensors) for one in asked[1:2]] == [1]
    assert elsewhere.changed is not None
    assert elsewhere.changed.startswith("tensor argument 1 was changed by the call")


def test_traces_are_kept_up_to_a_size(monkeypatch):
    monkeypatch.setattr(asking, "MOST_BYTES", 2500)
    asked = [request(*xy(size)) for size in range(1, 31)]
    both = traced(Seen(ADDS), *asked)

    replayed = Replayed(Seen(""), both, [])
    statuses = [replayed.ask(one).status for one in asked]
    assert statuses[0] == wire.OK
    assert statuses[-1] == wire.BAD_RESULT
    assert both.not_followed is not None


def test_what_was_not_traced_is_not_answered():
    both = traced(Seen(ADDS))

    assert Replayed(Seen(""), both, []).ask(request(*torch.ones(3, 2))).status == wire.BAD_RESULT


@pytest.mark.parametrize("field", ["record", "mixing", "labels"])
def test_a_property_that_asks_for_what_is_not_traced_is_named(field):
    attempt = Seen(ADDS)
    both = Traced(attempt, Seen(ADDS))
    both.begin((0, "values", 0))
    both.ask(request(*xy()))
    both.begin((0, "device", 0))
    reply = both.ask(request(*xy(), **{field: True}))

    assert reply.status == wire.BAD_RESULT
    assert both.untold == {"device"}
    assert len(attempt.posted) == 1
