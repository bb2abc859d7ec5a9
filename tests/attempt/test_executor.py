"""What the executor answers: every request of a grading, against a small attempt."""

from __future__ import annotations

import pytest
import torch

from attn_kata.attempt.executor import Executor
from attn_kata.protocol import wire
from attn_kata.protocol.messages import AS_GIVEN, Build, Call, Load, LoadWeights, Request

SOURCE = """
import torch
from torch import nn

def double(x): return x * 2
def zeroed(x): return x.mul_(0)
def raises(x): raise ValueError("no")
def returns_none(x): return None
def dropped(x): return nn.functional.dropout(x, 0.5, training=True)
def lazily_negative(x): return torch.complex(torch.zeros_like(x), -x).conj().imag
def lazily_conjugate(x): return torch.complex(x, x).conj().real

class Layer(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.inner = nn.Linear(size, size)
        self.again = self.inner
    def forward(self, x): return self.inner(x) if self.training else x
"""
X = torch.arange(3.0)


@pytest.fixture
def executor() -> Executor:
    loaded = Executor()
    status, texts, _ = loaded.execute(
        Load(filename="attempt.py", wanted=("double",), tensors=(wire.source_tensor(SOURCE.encode()),))
    )
    assert status == wire.OK, texts
    return loaded


def call(name: str | None, **fields: object) -> Call:
    return Call(**{"name": name, "args": (("tensor", 0),), "tensors": (X.clone(),), **fields})


def numbers(executor: Executor, request: Request) -> list[list[float]]:
    """The tensors of an answer, as the grading decodes them."""
    status, texts, tensors = executor.execute(request)
    assert status == wire.OK, texts
    sent = memoryview(wire.encode_reply(1, status, texts, tensors))

    def read(count: int) -> bytearray:
        nonlocal sent
        part, sent = bytearray(sent[:count]), sent[count:]
        return part

    return [part.data.tolist() for part in wire.decode_reply(read, 1).tensors if part.data is not None]


def test_a_call_gives_its_result(executor):
    assert numbers(executor, call("double")) == [[0, 2, 4]]


def test_the_inputs_come_back_as_the_call_left_them(executor):
    assert numbers(executor, call("zeroed", inputs_after=True)) == [[0, 0, 0], [0, 0, 0]]
    assert numbers(executor, call("double", inputs_after=True)) == [[0, 2, 4], [0, 1, 2]]


def test_gradients_are_those_of_the_result_times_the_cotangent(executor):
    asked = call("double", cotangents=(1,), tensors=(X.clone(), torch.tensor([1.0, 10, 100])))

    assert numbers(executor, asked) == [[0, 2, 4], [2, 20, 200]]


@pytest.mark.parametrize("name", ["lazily_negative", "lazily_conjugate"])
def test_a_lazy_bit_arrives_as_the_numbers_that_it_stands_for(executor, name):
    assert numbers(executor, call(name)) == [[0, 1, 2]]


def test_the_same_seed_draws_the_same(executor):
    once, again, other = (
        numbers(executor, call("dropped", tensors=(torch.ones(64),), seed=seed)) for seed in (1, 1, 2)
    )

    assert once == again != other


@pytest.mark.parametrize(
    ("request_", "status", "text"),
    [
        (call("raises"), wire.RAISED, "ValueError,Exception,BaseException"),
        (call("returns_none"), wire.BAD_RESULT, "returned None; the contract asks for one torch.Tensor"),
        (call("nowhere"), wire.NO_ENTRY, "nowhere"),
        (Build(name="double", module=1, args=(("value", 3),)), wire.BAD_RESULT, "double(…) is an object of type"),
        (Build(name="Layer", module=1), wire.RAISED, "TypeError,Exception,BaseException"),
    ],
)
def test_what_is_no_answer_says_why(executor, request_, status, text):
    told, texts, tensors = executor.execute(request_)

    assert (told, tensors) == (status, ())
    assert texts[0].startswith(text)


def test_an_exception_is_told_with_the_attempts_own_line(executor):
    _, texts, _ = executor.execute(call("raises"))

    assert texts == ("ValueError,Exception,BaseException", "no", "7 raises")


def test_a_layer_with_two_names_is_one_layer_under_the_first(executor):
    status, names, shapes = executor.execute(Build(name="Layer", module=1, args=(("value", 3),)))

    assert (status, names) == (wire.OK, ("inner.bias", "inner.weight"))
    assert [tuple(tensor.shape) for tensor, _ in shapes] == [(3,), (3, 3)]


def test_a_module_takes_weights_by_name_and_is_called_in_the_mode_that_is_asked_for(executor):
    weights = ("inner.bias", "inner.weight")
    executor.execute(Build(name="Layer", module=1, args=(("value", 3),)))
    status, texts, _ = executor.execute(LoadWeights(module=1, weights=weights, tensors=(torch.ones(3), torch.eye(3))))
    assert status == wire.OK, texts

    assert numbers(executor, call(None, module=1, training=True)) == [[1, 2, 3]]
    assert numbers(executor, call(None, module=1, training=False)) == [[0, 1, 2]]


def test_weights_that_come_with_a_build_are_copied_in_if_they_are_all_of_its_parameters(executor):
    names, weights = ("inner.weight", "inner.bias"), (torch.eye(3), torch.ones(3))
    built = Build(name="Layer", module=1, args=(("value", 3),), weights=names, tensors=weights)
    assert executor.execute(built) == (wire.OK, (AS_GIVEN,), ())
    assert numbers(executor, call(None, module=1, training=True)) == [[1, 2, 3]]

    other = Build(name="Layer", module=2, args=(("value", 3),), weights=names[:1], tensors=weights[:1])
    status, names, shapes = executor.execute(other)
    assert (status, names) == (wire.OK, ("inner.bias", "inner.weight"))
    assert [tuple(tensor.shape) for tensor, _ in shapes] == [(3,), (3, 3)]


def test_what_is_recorded_names_the_operations_that_ran(executor):
    status, texts, tensors = executor.execute(call("double", record=True))

    assert (status, len(tensors)) == (wire.OK, 1)
    assert "op aten::mul" in texts


@pytest.mark.parametrize(
    ("source", "status", "text"),
    [
        ("def f(: pass", wire.SYNTAX, "invalid syntax"),
        ("x = 1\0", wire.SYNTAX, "source code"),
        ("1 / 0", wire.RAISED, "ZeroDivisionError,"),
        ("def other(): pass", wire.NO_ENTRY, "double"),
        ("double = 3", wire.NO_ENTRY, "double"),
    ],
)
def test_a_source_that_does_not_load_says_why(source, status, text):
    load = Load(filename="a.py", wanted=("double",), tensors=(wire.source_tensor(source.encode()),))
    told, texts, _ = Executor().execute(load)

    assert told == status
    assert texts[0].startswith(text)
