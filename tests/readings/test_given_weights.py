"""Functions that are given their weights are read as modules that hold them."""

from __future__ import annotations

import pytest
from tests.readings.pairs import told

from attn_kata.engine.client import Engine
from attn_kata.readings import inference
from attn_kata.readings.source import held_weights

SEVERAL_HEADS = """
import torch
import torch.nn.functional as F

def split_heads(x, n):
    b, s, e = x.shape
    return x.reshape(b, s, n, e // n).transpose(1, 2)

def attend(x, Wq, Wk, Wv, Wo, n_heads, mask=None):
    q, k, v = (split_heads(x @ W, n_heads) for W in (Wq, Wk, Wv))
    scores = q @ k.mT / k.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    return (F.softmax(scores, dim=-1) @ v).transpose(1, 2).flatten(2) @ Wo
"""

BY_LINEAR = """
import torch
import torch.nn.functional as F

def self_attention(x, w_query, b_q, w_key, b_k, w_value, b_v):
    q, k, v = F.linear(x, w_query, b_q), F.linear(x, w_key, b_k), F.linear(x, w_value, b_v)
    return torch.softmax(q @ k.transpose(-2, -1) / q.size(-1) ** 0.5, dim=-1) @ v
"""


def graded(engine: Engine, slug: str, text: str, *flags: str):
    return engine.grade(slug, text.encode(), attempt="mine.py", reads=True, flags=flags)


def test_several_heads_are_read_as_mha_though_a_helper_has_the_name_of_a_kata(shared_engine: Engine) -> None:
    assert (inference.kata_of(SEVERAL_HEADS.encode()) or "")[0] == "mha"

    report = graded(shared_engine, "mha", SEVERAL_HEADS)
    named = graded(shared_engine, "mha", SEVERAL_HEADS, "entry=attend")
    again = graded(shared_engine, "mha", SEVERAL_HEADS, *report.reading["flags"])

    assert report.passed, report.ungraded_because
    assert any(note.startswith("attend is given its weights.") for note in report.reading["notes"])
    assert named.passed
    assert (again.outcome, again.reading["flags"]) == (report.outcome, report.reading["flags"])


@pytest.mark.parametrize(
    ("old", "new", "mistake", "line"),
    [
        (" / k.shape[-1] ** 0.5", "", "scale.missing", 11),
        ("dim=-1)", "dim=-2)", "softmax.query_axis", 14),
        ("-1e9", "1e-9", "mask.zero_fill", 13),
        ("x.reshape(b, s, n, e // n).transpose(1, 2)", "x.reshape(b, n, s, e // n)", "split.no_transpose", 7),
        (".flatten(2) @ Wo", ".flatten(2)", "output.missing", None),
        ("(Wq, Wk, Wv))", "(Wq, Wk, Wk))", "project.key_for_value", None),
    ],
)
def test_their_mistakes_are_named_at_the_lines_of_the_file(old, new, mistake, line, shared_engine: Engine) -> None:
    assert SEVERAL_HEADS.count(old) == 1
    report = graded(shared_engine, "mha", SEVERAL_HEADS.replace(old, new))
    named = {one.id: one.line for found in report.diagnosis for one in found.mistakes}

    assert mistake in named
    assert named[mistake] in (line, None)


def test_one_head_with_biases_by_torchs_linear(shared_engine: Engine) -> None:
    right = graded(shared_engine, "self_attention", BY_LINEAR)
    wrong = graded(shared_engine, "self_attention", BY_LINEAR.replace("(x, w_value", "(x, w_key"))

    assert (inference.kata_of(BY_LINEAR.encode()) or "")[0] == "self_attention"
    assert right.passed, right.ungraded_because
    assert told(wrong)


@pytest.mark.parametrize(
    "source",
    [
        "def attention(q, k, v, mask=None):\n    return torch.softmax(q @ k.mT, -1) @ v\n",
        "def mixed(x, Wq, Wk, Wv):\n    return x @ Wq + x @ Wk + x @ Wv\n",
        "def broken(x, Wq, Wk, Wv:\n    return softmax(x @ Wq)\n",
        "class A:\n    def f(self, x, Wq, Wk, Wv):\n        return softmax(x @ Wq)\n",
    ],
)
def test_other_code_stays_as_it_is(source: str) -> None:
    assert held_weights.with_modules(source.encode()) == source.encode()


def test_it_is_written_once() -> None:
    once = held_weights.with_modules(SEVERAL_HEADS.encode())

    assert once.count(b"class attend_module") == 1
    assert held_weights.with_modules(once) == once


def test_a_function_that_is_given_its_weights_needs_no_import(shared_engine: Engine) -> None:
    """As any other code of a book, it gets the usual names."""
    text = SEVERAL_HEADS.replace("import torch\n", "").replace("import torch.nn.functional as F\n", "")
    report = shared_engine.grade("mha", text.encode(), attempt="mine.py", reads=True)

    assert "import" not in text
    assert report.passed, report.ungraded_because


BY_ANOTHER_FUNCTION = """
import math
import torch


def attend(Q, K, V, scale=True):
    scores = torch.matmul(Q, K.transpose(-2, -1))
    if scale:
        scores = scores / math.sqrt(K.shape[-1])
    return torch.softmax(scores, dim=-1) @ V


def self_attend(X, W_q, W_k, W_v, scale=True):
    Q, K, V = torch.matmul(X, W_q), torch.matmul(X, W_k), torch.matmul(X, W_v)
    return attend(Q, K, V, scale=scale)
"""


def test_one_that_hands_queries_keys_and_values_to_another_function_is_read(shared_engine: Engine) -> None:
    right = graded(shared_engine, "self_attention", BY_ANOTHER_FUNCTION, "entry=self_attend")
    wrong = BY_ANOTHER_FUNCTION.replace("torch.matmul(X, W_v)", "torch.matmul(X, W_k)")
    wrong_too = graded(shared_engine, "self_attention", wrong, "entry=self_attend")

    assert right.passed, right.ungraded_because
    assert [one.id for found in wrong_too.diagnosis for one in found.mistakes] == ["project.key_for_value"]
