"""The public smoke check, through the real engine: what a candidate sees, and nothing of what is hidden."""

from __future__ import annotations

import pytest

from attn_kata import resources
from attn_kata.engine.client import Engine
from attn_kata.interview import smoke

SLUGS = ["sdpa", "fused_qkv", "padding_mask", "causal_mask", "mha", "cross_attention", "split_heads"]


@pytest.fixture
def engine(shared_engine: Engine) -> Engine:
    return shared_engine


@pytest.mark.parametrize("slug", SLUGS)
def test_every_reference_passes(engine, slug):
    source = (resources.solutions_folder() / f"{slug}.py").read_bytes()
    seen = smoke.run(engine, slug, source, attempt=f"{slug}.py")

    assert seen.outcome == "passed", seen.lines
    assert seen.lines == ("The example: out is as expected.", "Shapes: right.")


def test_a_demo_that_fails_is_why_the_example_was_not_reached(engine):
    source = b"def scaled_dot_product_attention(q, k, v):\n    return v\n\n1 / 0\n"
    seen = smoke.run(engine, "sdpa", source, attempt="sdpa.py")

    assert seen.outcome == "failed"
    assert "Your code stops before the example: line 4, ZeroDivisionError: division by zero" in seen.output


def test_what_is_expected_has_the_dtype_of_what_came(engine):
    """It is asked for in float64, and `dtype=torch.float64` was shown as if that were what is wrong."""
    source = b"def scaled_dot_product_attention(q, k, v):\n    return v + 0.5\n"
    seen = smoke.run(engine, "sdpa", source, attempt="sdpa.py")

    assert "expected\ntensor(" in seen.output
    assert "dtype" not in seen.output


@pytest.mark.parametrize(
    ("body", "outcome", "says"),
    [
        ("return (q @ k.transpose(-2, -1)).softmax(-1) @ v", "failed", "The example: out is"),
        ("return v.sum(-1)", "failed", "The example: out has shape (1, 1, 2), expected (1, 1, 2, 2)."),
        ("return None", "failed", "The example: returned NoneType, not a tensor."),
        ("return q @ k", "failed", "The example: out is"),
        ("raise NotImplementedError", "failed", "not written yet"),
        ("return missing", "failed", "The example: raises NameError: name 'missing' is not defined in line 2"),
        ("print('mine'); return v", "failed", "mine"),
        ("while True: pass", "ungraded", "It does not run"),
        ("import os; os._exit(0)", "ungraded", "It does not run"),
        ("import sys; sys.exit(0)", "ungraded", "It does not run"),
        ("print('x' * 3_000_000); return v", "failed", "x"),
        ("return (", "ungraded", "It does not run: it is not Python"),
        ("print('\\x1b[31m\\x07'); return v", "failed", "Shapes"),
    ],
)
def test_what_a_wrong_attempt_shows(engine, monkeypatch, body, outcome, says):
    monkeypatch.setattr(smoke, "SECONDS", 2.0)  # for the one that hangs
    source = f"def scaled_dot_product_attention(q, k, v):\n    {body}\n".encode()
    seen = smoke.run(engine, "sdpa", source, attempt="sdpa.py")

    assert seen.outcome == outcome, seen.lines
    assert says in "\n".join(seen.lines)
    assert "\x1b" not in seen.output
    assert len(seen.lines) <= smoke.MOST_LINES + 2
    assert "look at" not in "\n".join(seen.lines)


@pytest.mark.parametrize(
    "source",
    [
        b"# coding: latin-1\nNAME = '\xe9'\ndef scaled_dot_product_attention(q, k, v):\n    return v",
        b"\xef\xbb\xbfdef scaled_dot_product_attention(q, k, v):\r\n    return v",
        b"from __future__ import annotations\ndef scaled_dot_product_attention(q, k, v): return v  # no newline",
    ],
)
def test_the_example_is_added_whatever_the_source_looks_like(engine, source):
    seen = smoke.run(engine, "sdpa", source, attempt="sdpa.py")

    assert seen.outcome == "failed"
    assert "The example: out is" in seen.output


def test_what_is_missing_is_said_without_a_name_of_ours(engine):
    seen = smoke.run(engine, "sdpa", b"x = 1\n", attempt="sdpa.py")

    assert 'it has no "scaled_dot_product_attention"; it defines no function or class' in seen.shape
    assert "_attn_kata" not in "\n".join(seen.lines)


RIGHT = "return (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1) @ v"


@pytest.mark.parametrize("printed", ["print('\\n'.join('mine' * 200))", "print('mine', end='')", "print('m' * 30_000)"])
def test_a_right_attempt_passes_whatever_it_prints_first(engine, printed):
    """What came of the example stood behind the prints, and was cut off with them: the run had failed without a word."""
    source = f"def scaled_dot_product_attention(q, k, v):\n    {printed}\n    {RIGHT}\n".encode()
    seen = smoke.run(engine, "sdpa", source, attempt="sdpa.py")

    assert seen.outcome == "passed", seen.lines
    assert seen.lines[0].startswith("m")
    assert seen.lines[-2:] == ("The example: out is as expected.", "Shapes: right.")
    assert len("".join(seen.lines)) < 5_000


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (f"print('x' * 1_000_000); {RIGHT}", "Print less, and run again."),
        ("raise ValueError('x' * 100_000)", "The example: raises ValueError: xxx"),
        ("raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})", "raises Mute: (its message could not be"),
    ],
)
def test_what_is_long_or_cannot_be_read_is_said_in_few_words(engine, body, says):
    source = f"def scaled_dot_product_attention(q, k, v):\n    {body}\n".encode()
    seen = smoke.run(engine, "sdpa", source, attempt="sdpa.py")

    assert seen.outcome == "failed", seen.lines
    assert says in "\n".join(seen.lines)
    assert len("".join(seen.lines)) < 5_000
