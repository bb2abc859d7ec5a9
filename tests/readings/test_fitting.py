"""Flags that make no sense for a kata are refused in words, before anything runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from attn_kata import catalog
from attn_kata.errors import UsageError
from attn_kata.readings import fitting
from attn_kata.readings.contract import of_kata
from attn_kata.readings.reading import parse
from attn_kata.resources import solutions_folder

REFUSED = [
    ("self_attention", "one_head=yes"),
    ("mha", "one_group=yes"),
    ("gqa", "one_head=yes"),
    ("sdpa", "mlp_ratio=4"),
    ("self_attention", "head_width=64"),
    ("causal_mask", "causal=yes"),
    ("transformer_block", "causal=yes"),
    ("rope", "causal=yes"),
    ("additive_attention", "causal=yes"),
    ("qkv_attention", "hides_queries=yes"),
    ("padding_mask", "hides_queries=yes"),
    ("combined_mask", "joins=yes"),
    ("rope", "square=yes"),
    ("mha", "alike=yes"),
    ("fused_qkv", "alike=yes"),
    ("rope", "alike=yes"),
    ("transformer_block", "alike=yes"),
    ("causal_mask", "mask=lengths"),
    ("combined_mask", "hides_queries=yes"),
    ("sdpa", "call=Q=linear"),
    ("mha", "call=x=module"),
    ("sdpa", "build=W=linear"),
]
FITTING = [
    ("mha", "one_head=yes"),
    ("mha", "one_head=no"),
    ("self_attention", "one_head=no"),
    ("gqa", "one_group=yes"),
    ("transformer_block", "mlp_ratio=4"),
    ("mha", "head_width=64"),
    ("mha", "causal=yes"),
    ("mha", "hides_queries=yes"),
    ("qkv_attention", "square=yes"),
    ("sdpa", "square=yes"),
    ("sdpa", "alike=yes"),
    ("cross_attention", "alike=yes"),
    ("self_attention", "alike=yes"),
    ("heads_concat", "alike=yes"),
    ("padding_mask", "mask=lengths"),
    ("additive_attention", "alike=yes"),
    ("additive_attention", "mask=lengths"),
    ("causal_mask", "mask=hide"),
]


def check(slug: str, *flags: str, reads: bool = True) -> None:
    fitting.check(slug, catalog.find(slug).folder, flags, reads=reads)


@pytest.mark.parametrize(("slug", "flag"), REFUSED)
def test_a_flag_that_does_not_fit_is_refused_with_its_words(slug, flag):
    with pytest.raises(UsageError, match=flag):
        check(slug, flag)


@pytest.mark.parametrize(("slug", "flag"), FITTING)
def test_a_flag_that_fits_is_not(slug, flag):
    check(slug, flag)


def test_a_flag_of_a_function_that_needs_another_one_is_taken_with_it():
    check("sdpa", "joins=yes", "dims=4")


def test_a_kata_that_takes_its_contract_only_takes_no_flags_and_is_graded_without():
    slug = next(kata.slug for kata in catalog.katas() if of_kata(kata.folder) is None)

    check(slug, reads=False)
    with pytest.raises(UsageError, match="names of its contract only"):
        check(slug, "order=time")


@pytest.mark.parametrize(("slug", "flag"), [REFUSED[0], REFUSED[4]])
def test_the_command_says_it_and_ends_with_2(slug, flag, tmp_path):
    file = tmp_path / "mine.py"
    file.write_bytes((solutions_folder() / f"{slug}.py").read_bytes())

    ended = subprocess.run(
        [sys.executable, "-m", "attn_kata", "grade", str(file), "--kata", slug, "--read", flag],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 2
    assert f"--read {flag} does not fit {slug}" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_heads_with_one_width_are_graded_with_it(shared_engine):
    text = (solutions_folder() / "heads_concat.py").read_bytes()

    report = shared_engine.grade("heads_concat", text, attempt="mine.py", reads=True, flags=("alike=yes",))

    assert report.passed, report.ungraded_because


@pytest.mark.parametrize(
    ("slug", "flag", "said"),
    [
        ("sdpa", "call=a=x", "sdpa has no input 'x'"),
        ("self_attention", "call=a=context", "self_attention has no input 'context'"),
        ("qkv_attention", "call=a=qkv", "qkv_attention has no input 'qkv'"),
        ("mha", "conventions=qk_norm", "mha has no convention 'qk_norm'"),
    ],
)
def test_an_input_or_a_convention_that_a_kata_does_not_have_is_refused(slug, flag, said):
    with pytest.raises(UsageError, match=said):
        check(slug, flag)


@pytest.mark.parametrize(
    ("slug", "typed", "meant"),
    [
        ("sdpa", "call=a=query,b=key,c=value,n=L", (("a", "q"), ("b", "k"), ("c", "v"), ("n", "L"))),
        ("qkv_attention", "call=a=q,b=k,c=v,m=mask", (("a", "query"), ("b", "key"), ("c", "value"), ("m", "mask"))),
        ("mha", "call=a=q,b=k,c=v", (("a", "x"), ("b", "x"), ("c", "x"))),
        ("cross_attention", "call=a=query,b=key", (("a", "x"), ("b", "context"))),
    ],
)
def test_an_input_may_have_the_name_that_another_kata_has_for_it(slug, typed, meant):
    contract = of_kata(catalog.find(slug).folder)

    assert contract is not None
    check(slug, typed)
    assert fitting.as_named(parse((typed,)), contract)["call"] == meant
