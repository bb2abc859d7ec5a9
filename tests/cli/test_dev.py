"""`attn-kata dev show`, as authors run it."""

from __future__ import annotations

import ast
import dataclasses

import pytest

from attn_kata import catalog
from attn_kata.authoring import rules


@pytest.mark.parametrize("name", ["scale_embed_dim", "wrong/scale_embed_dim"])
def test_a_wrong_attempt_is_printed_as_python(name, run):
    done = run("dev", "show", "mha", name)

    assert (done.returncode, done.stderr) == (0, "")
    assert "math.sqrt(E)" in done.stdout
    assert ast.parse(done.stdout)


def test_a_right_attempt_is_printed(run):
    done = run("dev", "show", "mha", "right/plain")

    assert done.returncode == 0
    assert "math.sqrt(self.head_dim)" in done.stdout


def test_without_a_name_all_are_listed(run):
    listed = run("dev", "show", "sdpa").stdout.splitlines()

    assert "right/plain" in listed
    assert "wrong/scale_missing" in listed


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("mha", "scale_embd_dim"), "Did you mean 'wrong/scale_embed_dim'?"),
        (("mha", "wrong/plan"), "mha has no specimen 'wrong/plan'."),
        (("mhaa", "plain"), "Did you mean 'mha'?"),
    ],
)
def test_a_misspelt_name_is_a_usage_error(typed, said, run):
    done = run("dev", "show", *typed)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_hint_about_a_mistake_that_is_none_is_told():
    known = dataclasses.replace(catalog.find("sdpa"), hint_numbers={"scale": 1, "mask.inverted": 1})
    wrong = dataclasses.replace(known, hint_numbers={"scael": 1, "mask.inverted": 1})

    assert list(rules._hints_about_nothing(known)) == []
    assert list(rules._hints_about_nothing(wrong)) == [
        "kata.toml: hint_for.scael: no mistake has this id, and none begins with it"
    ]
