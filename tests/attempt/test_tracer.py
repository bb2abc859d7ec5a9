"""What the operations of a call gave, as the handle tells it."""

from __future__ import annotations

import types

import pytest
import torch

from attn_kata.grading.local import Local
from attn_kata.properties.failures import AttemptRaised
from attn_kata.properties.handle import Handle
from attn_kata.properties.results import Operand, RaisingOperation

CODE = """
import torch
from torch import nn


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.twice = nn.Linear(2, 2, bias=False)
        nn.init.constant_(self.twice.weight, 2.0)

    def forward(self, x):
        y = self.twice(x)
        y[:, 0] = 0.0
        return y.softmax(-1)


def in_place(x):
    y = x + 1
    y.mul_(2)
    return y


def joins(x):
    y = x + 1
    y.mul_(2)
    z = torch.einsum("a b, c b -> a c", y, x)
    return torch.cat([z, y])


def ends_early(x):
    y = x * 3
    raise ValueError(y)


def does_not_fit(x):
    y = x.unsqueeze(0)
    return y @ torch.cat([y, y])


def goes_on(x):
    try:
        x = x @ x.view(3, 7)
    except RuntimeError:
        x = x + 1
    raise ValueError(x)


def many(x):
    for _ in range(1000):
        x = x + 1
    return x


def whole(x):
    return (x > 1).long()
"""


@pytest.fixture
def handle() -> Handle:
    namespace = types.ModuleType("attempt")
    namespace.__file__ = "attempt.py"
    exec(compile(CODE, "attempt.py", "exec"), namespace.__dict__)
    return Handle(Local(namespace))


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(CODE.split("\n"), 1) if text in line)


def test_every_operation_is_told_with_its_line(handle):
    x = torch.tensor([[1.0, 2.0]], dtype=torch.float64)

    steps = handle.Attend().trace(x.float(), training=False).steps

    assert [(step.line, step.operation) for step in steps] == [
        (line_of("self.twice(x)"), "linear"),
        (line_of("y[:, 0]"), "__setitem__"),
        (line_of("softmax"), "softmax"),
    ]
    assert steps[0].value.tolist() == [[6.0, 6.0]]  # as it was before the next line wrote into it
    assert torch.equal(steps[1].value, torch.tensor([[0.0, 6.0]], dtype=torch.float64))
    assert steps[2].value.shape == (1, 2)


def test_each_step_tells_which_steps_made_what_it_was_given(handle):
    steps = handle.joins.trace(torch.ones(2, 2)).steps

    assert [(step.operation, step.sources, step.pattern) for step in steps] == [
        ("add", (None,), ""),
        ("mul_", (0,), ""),
        ("einsum", (1, None), "ab,cb->ac"),
        ("cat", (2, 1), ""),
    ]


def test_a_result_is_told_as_it_was_before_it_was_changed_in_place(handle):
    first, second = handle.in_place.trace(torch.zeros(2)).steps

    assert first.value.tolist() == [1.0, 1.0]
    assert second.value.tolist() == [2.0, 2.0]


def test_what_it_raises_ends_the_steps(handle):
    steps = handle.ends_early.trace(torch.ones(2)).steps

    assert [step.value.tolist() for step in steps] == [[3.0, 3.0]]


def test_the_operation_that_raises_is_told_with_what_it_was_given(handle):
    told = handle.does_not_fit.trace(torch.ones(3))

    assert [step.operation for step in told.steps] == ["unsqueeze", "cat"]
    assert told.raising == RaisingOperation(
        line=line_of("y @ torch.cat"),
        operation="matmul",
        operands=(Operand(shape=(1, 3), source=0), Operand(shape=(2, 3), source=1)),
    )


def test_what_was_caught_or_raised_by_no_operation_is_not_told(handle):
    assert handle.goes_on.trace(torch.ones(2)).raising is None
    assert handle.ends_early.trace(torch.ones(2)).raising is None


def test_a_long_loop_is_cut_off(handle):
    assert len(handle.many.trace(torch.ones(2)).steps) == 400


def test_whole_numbers_are_left_out(handle):
    assert handle.whole.trace(torch.ones(2)).steps == []


def test_a_function_that_is_missing_is_said(handle):
    with pytest.raises(Exception, match="other") as raised:
        handle.other.trace(torch.ones(2))
    assert not isinstance(raised.value, AttemptRaised)
