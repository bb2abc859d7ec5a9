"""One cause, one failure: an exception that several properties meet is told once."""

from __future__ import annotations

import textwrap

from attn_kata import catalog, specimens
from attn_kata.engine.client import Engine
from attn_kata.report.model import Finding, Report


def graded(engine: Engine, slug: str, *edits: tuple[str, str]) -> Report:
    """The plain right attempt at the kata, with edits."""
    source = specimens.find(catalog.find(slug).folder, "right/plain").source()
    for old, new in edits:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return engine.grade(slug, source.encode(), attempt=f"{slug}.py", diagnose=False)


def failed(report: Report) -> list[Finding]:
    assert report.ungraded_because is None
    return [finding for finding in report.findings if finding.outcome == "failed"]


def test_an_exception_in_every_masked_call_is_one_failure(engine: Engine) -> None:
    report = graded(engine, "mha", ("if mask is not None:", "if mask:"))
    (one,) = failed(report)
    others = [finding for finding in report.findings if "met the same exception" in (finding.message or "")]

    assert "Boolean value of Tensor with more than one value is ambiguous" in (one.message or "")
    assert one.line is not None
    assert f"line {one.line} in forward" in (one.message or "")
    assert len(others) > 5
    assert {other.message for other in others} == {f"met the same exception as {one.property}"}
    assert {other.outcome for other in others} == {"skipped"}


def test_other_numbers_in_the_text_are_the_same_exception(engine: Engine) -> None:
    report = graded(engine, "mha", ("B, T, E = x.shape", "B, T, E = x.shape; x.view(B, T, E + 1)"))

    (one,) = failed(report)
    assert "is invalid for input of size" in (one.message or "")


def test_two_exceptions_are_two_failures(engine: Engine) -> None:
    lines = 'scores = scores.masked_fill(~mask, float("-inf"))'
    report = graded(
        engine,
        "mha",
        (lines, f'assert mask.dim() == 2, "mask"\n            assert T <= 64, "long"\n            {lines}'),
    )

    assert {(finding.message or "").split(",")[0] for finding in failed(report)} >= {"raised AssertionError: mask"}
    assert len({finding.line for finding in failed(report)}) == len(failed(report))


def test_an_exception_of_the_constructor_is_told_where_it_is_met_first(engine: Engine) -> None:
    report = graded(engine, "mha", ("super().__init__()", "super().__init__(); missing_name"))
    (one,) = failed(report)

    assert (one.property, one.message) == (
        "parameters",
        f"raised NameError: name 'missing_name' is not defined, line {one.line} in __init__",
    )


def test_a_later_call_is_not_said_to_be_the_constructor(engine: Engine) -> None:
    check = """\
        if embed_dim % num_heads != 0:
            raise ValueError(f"num_heads {num_heads} does not divide embed_dim {embed_dim}")
"""
    report = graded(engine, "mha", (check, ""))
    found = {finding.property: finding for finding in report.findings}["heads_must_divide"]

    assert found.outcome == "failed"
    assert (found.message or "").startswith(
        "MultiHeadAttention(6, 4) does not raise ValueError. Its call raises RuntimeError: "
    )
    assert "in forward" in (found.message or "")


def test_what_is_no_tensor_is_one_failure_too(engine: Engine) -> None:
    source = textwrap.dedent(
        """
        def scaled_dot_product_attention(q, k, v):
            return [(q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v]
        """
    )
    report = engine.grade("sdpa", source.encode(), attempt="sdpa.py", diagnose=False)

    assert len(failed(report)) == 1
