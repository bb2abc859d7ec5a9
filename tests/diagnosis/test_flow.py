"""Mistakes that the operations of a call show by themselves, without the right numbers."""

from __future__ import annotations

import textwrap
import types

import pytest
import torch

from attn_kata.diagnosis import flow
from attn_kata.diagnosis.flow.shown import Flow
from attn_kata.grading.local import Local
from attn_kata.properties.handle import Handle
from attn_kata.properties.results import Step

HEAD = "import math\n\nimport torch\nimport torch.nn.functional as F\n\n\ndef mix(x, y):\n"
B, T, S, E = 3, 5, 7, 24
HEADS = """
w = torch.linspace(-1, 1, 24 * 24).reshape(24, 24).sin()
q, k, v = x @ w, y @ w.T, y @ w.flip(0)
q, k, v = (one.view(len(one), -1, 4, 6).transpose(1, 2) for one in (q, k, v))
weights = (q @ k.transpose(-2, -1) / math.sqrt(6)).softmax(-1)
return (weights @ v).transpose(1, 2).reshape(3, -1, 24)
"""


def told(body: str, *edits: tuple[str, str]) -> list[tuple[str, str]]:
    """The mistakes that a call of `mix` shows, each with the text of its line."""
    for old, new in edits:
        assert body.count(old) == 1
        body = body.replace(old, new)
    text = HEAD + textwrap.indent(body, "    ")
    namespace = types.ModuleType("attempt")
    namespace.__file__ = "attempt.py"
    exec(compile(text, "attempt.py", "exec"), namespace.__dict__)
    draw = torch.Generator().manual_seed(0)
    x, y = (torch.randn(B, length, E, generator=draw) for length in (T, S))
    steps = Handle(Local(namespace), {}).mix.trace(x, y).steps
    return [(one.id, text.split("\n")[one.line - 1].strip()) for one in flow.of(steps, E).mistakes]


RIGHT = {
    "heads": HEADS,
    "einsum": HEADS.replace("q @ k.transpose(-2, -1)", "torch.einsum('bhid,bhjd->bhij', q, k)").replace(
        "weights @ v", "torch.einsum('...ij,...jd->...id', weights, v)"
    ),
    "a scaled query": HEADS.replace("q, k, v = x @ w,", "q, k, v = x @ w * 6**-0.5,").replace(" / math.sqrt(6)", ""),
    "keys first": HEADS.replace("q @ k.transpose(-2, -1)", "k @ q.transpose(-2, -1)")
    .replace("softmax(-1)", "softmax(-2)")
    .replace("weights @ v", "weights.transpose(-2, -1) @ v"),
    "values first": HEADS.replace("(weights @ v).transpose(1, 2)", "(v.mT @ weights.mT).permute(0, 3, 1, 2)"),
    "weighted sum": "scores = (x[:, :1] * y).sum(-1)\nreturn (scores.softmax(1)[..., None] * y).sum(1)",
    "weights of slots, divided again": HEADS.replace("softmax(-1)", "softmax(-2)").replace(
        "return (weights @ v)", "weights = weights / weights.sum(-1, keepdim=True)\nreturn (weights @ v)"
    ),
    "heads that talk": HEADS.replace(
        "return (weights @ v)", "weights = torch.einsum('bhij,hg->bgij', weights, w[:4, :4])\nreturn (weights @ v)"
    ),
    "linear attention": "q, k = x.softmax(-1), y.softmax(1)\nreturn q @ (k.transpose(1, 2) @ y)",
    "two directions": "s = x @ y.mT\nreturn s.softmax(2) @ s.softmax(1).mT @ x",
    "slots that compete": "s = x @ y.mT\nreturn s.softmax(2).mT @ x, s.softmax(1) @ y",
    "channels": "s = (x.mT * 24**-0.5) @ x\nreturn x @ s.softmax(-1).mT",
    "a mixture of softmaxes": "parts = x.view(3, 5, 4, 6).softmax(-1)\n"
    "return torch.einsum('bk,btkj->btj', x[:, 0, :4].softmax(-1), parts)",
    "a mask": HEADS.replace("math.sqrt(6))", "math.sqrt(6)).masked_fill(torch.ones(5, 7).tril() == 0, -1e9)"),
    "a table of distances": "y = x\n"
    + HEADS.replace(
        "weights = (",
        "far = F.pad(q @ w[:6, :5], (1, 0)).view(3, 4, 6, 5)[:, :, 1:].reshape(3, 4, 5, 5)\nweights = (far + ",
    ),
    "time first": "q, k = (one.transpose(0, 1) for one in (x, y))\n"
    "q, k = (one.reshape(-1, 3 * 4, 6).transpose(0, 1) for one in (q, k))\n"
    "out = (q @ k.mT / 6**0.5).softmax(-1) @ k\nreturn out.transpose(0, 1).reshape(-1, 3, 24)",
}


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right_code_shows_nothing(body: str) -> None:
    assert told(body) == []


SPLIT = "q, k, v = (one.view(len(one), -1, 4, 6).transpose(1, 2) for one in (q, k, v))"
WRONG = [
    ("softmax(-1)", "softmax(-2)", "softmax.query_axis"),
    ("softmax(-1)", "softmax(1)", "softmax.head_axis"),
    ("softmax(-1)", "softmax(0)", "softmax.head_axis"),
    ("math.sqrt(6)", "math.sqrt(24)", "scale.embed_dim"),
    ("math.sqrt(6)", "math.sqrt(4)", "scale.heads"),
    ("math.sqrt(6)", "math.sqrt(7)", "scale.key_length"),
    ("math.sqrt(6)", "6", "scale.no_sqrt"),
    ("/ math.sqrt(6)", "* math.sqrt(6)", "scale.inverted"),
    (SPLIT, "q, k, v = (one.view(len(one), 4, -1, 6) for one in (q, k, v))", "split.no_transpose"),
    (SPLIT, SPLIT.replace(".transpose(1, 2)", ".reshape(3, 4, -1, 6)"), "split.no_transpose"),
    (".transpose(1, 2).reshape(3, -1, 24)", ".reshape(3, -1, 24)", "merge.no_transpose"),
]


@pytest.mark.parametrize(("old", "new", "id"), WRONG)
@pytest.mark.parametrize("how", ["heads", "einsum", "a mask"])
def test_a_mistake_is_shown_with_its_line(how: str, old: str, new: str, id: str) -> None:
    ((shown, line),) = told(RIGHT[how], (old, new))

    assert (shown, new.strip() in line) == (id, True)


LAYERS = """
a, b, c = (torch.linspace(-1, 1, 24 * 24).mul(n).sin().reshape(24, 24) for n in (30, 31, 32))
q, k, v = F.linear(x, a), F.linear(x, b), F.linear(x, c)
q, k, v = (one.view(len(one), -1, 4, 6).transpose(1, 2) for one in (q, k, v))
scores = q @ k.transpose(-2, -1) / math.sqrt(6)
weights = scores.softmax(-1)
out = weights @ v
return out.transpose(1, 2).reshape(3, -1, 24)
"""
OF_LAYERS = [
    (
        "scores.softmax(-1)",
        "F.dropout(scores, 0.1, False).softmax(-1)",
        "dropout.before_softmax",
        "weights = F.dropout",
    ),
    ("scores.softmax(-1)", "scores.softmax(-1).softmax(-1)", "softmax.twice", "weights = "),
    ("scores.softmax(-1)", "scores.softmax(-1) / math.sqrt(6)", "scale.after_softmax", "weights = "),
    (
        "q, k, v = (one.view(len(one), -1, 4, 6).transpose(1, 2) for one in (q, k, v))",
        "q, k, v = (one[..., None, :6].expand(-1, -1, 4, -1).transpose(1, 2) for one in (q, k, v))",
        "module.repeated",
        "weights = ",
    ),
]


def test_right_layers_show_nothing() -> None:
    assert told(LAYERS) == []
    assert told(LAYERS, ("scores.softmax(-1)", "F.dropout(scores.softmax(-1), 0.1, False)")) == []


@pytest.mark.parametrize(("old", "new", "id", "line"), OF_LAYERS)
def test_what_is_done_beside_the_softmax_is_shown(old: str, new: str, id: str, line: str) -> None:
    ((shown, text),) = told(LAYERS, (old, new))

    assert shown == id
    assert text.startswith(line)


def test_heads_whose_scores_are_all_zeros_are_not_alike() -> None:
    assert told(LAYERS, ("for n in (30, 31, 32))", "for n in (0, 0, 0))")) == []


def test_one_layer_for_keys_and_values_may_be_meant() -> None:
    assert told(LAYERS, ("F.linear(x, c)", "F.linear(x, b)")) == []


BESIDE = """
w, v = (torch.linspace(-1, 1, 48 * n).mul(30).sin().reshape(n, 48) for n in (24, 1))
q = x[:, :1].expand(-1, 7, -1)
energy = torch.tanh(F.linear(torch.cat([q, y], -1), w))
weights = F.linear(energy, v[:, :24]).squeeze(-1).softmax(1)
return (weights[:, None] @ y).squeeze(1)
"""
NO_TANH = [
    ("F.linear(energy, v[:, :24])", "F.linear(torch.cat([q, y], -1), v)"),
    ("F.linear(energy, v[:, :24])", "F.linear(F.linear(x[:, :1], w[:, :24]) + F.linear(y, w[:, 24:]), v[:, :24])"),
]


@pytest.mark.parametrize(("old", "new"), NO_TANH)
def test_a_score_that_is_linear_in_query_and_key_is_shown(old: str, new: str) -> None:
    ((shown, line),) = told(BESIDE, (old, new))

    assert shown == "additive.no_tanh"
    assert line.startswith("weights = ")


def test_a_score_with_an_activation_or_of_keys_alone_shows_nothing() -> None:
    assert told(BESIDE) == []
    assert told(BESIDE, ("torch.tanh(", "torch.relu(")) == []
    assert told(BESIDE, ("F.linear(energy, v[:, :24])", "F.linear(torch.cat([y, y * 2], -1), v)")) == []
    assert told(BESIDE, ("F.linear(energy, v[:, :24])", "F.linear(y, v[:, :24])")) == []


def test_two_mistakes_are_both_shown() -> None:
    found = told(HEADS, ("softmax(-1)", "softmax(-2)"), (".transpose(1, 2).reshape(3, -1, 24)", ".reshape(3, -1, 24)"))

    assert [id for id, _ in found] == ["softmax.query_axis", "merge.no_transpose"]


@pytest.mark.parametrize(("dim", "id"), [(1, None), (0, "softmax.head_axis"), (2, None)])
def test_of_a_weighted_sum_the_softmax_is_along_what_is_summed(dim: int, id: str | None) -> None:
    body = f"scores = (x[:, :1] * y).sum(-1, keepdim=True)\nreturn (scores.softmax({dim}) * y).sum(1)"

    assert [shown for shown, _ in told(body)] == ([] if id is None else [id])


@pytest.mark.parametrize("factor", ["1e-200", "1e200", "0.0"])
def test_a_factor_without_a_square_shows_nothing(factor: str) -> None:
    in_double = "x, y = x.double(), y.double()" + HEADS.replace(".sin()", ".sin().double()")

    assert told(in_double, ("/ math.sqrt(6)", f"* {factor}")) == []


@pytest.mark.parametrize("factor", ["0.3", "1.5"])
def test_weights_that_are_damped_by_a_number_are_not_scaled_too_late(factor: str) -> None:
    assert told(LAYERS, ("scores.softmax(-1)", f"scores.softmax(-1) * {factor}")) == []


def test_of_a_decoder_that_attends_for_each_token_the_first_are_followed() -> None:
    loop = "for _ in range(90):\n    x = x + (x @ x.mT / math.sqrt(24)).softmax(-2) @ x\nreturn x"

    assert [id for id, _ in told(loop)] == ["softmax.query_axis"]


def test_steps_that_do_not_fit_show_nothing() -> None:
    steps = [
        Step(line=1, operation="softmax", value=torch.ones(2, 2) / 2, sources=(None,)),
        Step(line=2, operation="einsum", value=torch.ones(2), sources=(0, 0), pattern="...abcd,ab->a"),
    ]

    assert flow.of(steps) == Flow()
