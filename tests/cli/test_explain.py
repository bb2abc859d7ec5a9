"""`attn-kata explain` as its users run it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attn_kata import catalog, specimens
from attn_kata.diagnosis import catalogue, examples

Run = Callable[..., Any]


def test_a_mistake_is_said_in_words_with_links(run: Run) -> None:
    done = run("explain", "scale.embed_dim")

    assert done.returncode == 0
    for heading in ("What it is", "Why it matters", "How to see it", "What to ask yourself", "Where it was seen"):
        assert heading in done.stdout
    assert "https://github.com/lucidrains/vit-pytorch/issues/65" in done.stdout
    assert done.stderr == ""


def test_a_mistake_is_shown_in_an_attempt_that_makes_it(run: Run) -> None:
    done = run("explain", "scale.embed_dim")
    example = json.loads(run("explain", "scale.embed_dim", "--json").stdout)["example"]

    assert example["code"].startswith("scores = q @ k.transpose(-2, -1) / math.sqrt(")
    assert example["code"] in done.stdout
    assert specimens.find(catalog.find(example["kata"]).folder, example["specimen"]).mistakes == {"scale.embed_dim"}


def test_a_mistake_that_no_attempt_makes_alone_is_explained_without_one(run: Run) -> None:
    unshown = next(id for id in catalogue.load() if id not in examples.load())
    done = run("explain", unshown)

    assert done.returncode == 0
    assert "How it looks" not in done.stdout
    assert json.loads(run("explain", unshown, "--json").stdout)["example"] is None


def test_a_property_is_said_with_its_katas_and_what_breaks_it(run: Run) -> None:
    done = run("explain", "weights-sum-to-one")

    assert done.returncode == 0
    assert "weights_sum_to_one" in done.stdout
    assert "sdpa (core)" in done.stdout
    assert "softmax.query_axis" in done.stdout


def test_where_a_kata_is_current_the_explanation_is_about_it_and_short(run: Run, tmp_path: Path) -> None:
    assert run("start", "padding_mask", "--dir", str(tmp_path)).returncode == 0
    claim, everywhere = run("explain", "values").stdout, run("explain", "values", "--all").stdout
    mistake = run("explain", "scale.missing").stdout

    assert claim.startswith("values: a property of padding_mask\n")
    assert "sdpa" not in claim
    assert "rope." not in claim
    assert "scale.missing" in claim
    assert "attn-kata explain values --all" in claim
    assert len(claim.splitlines()) < len(everywhere.splitlines()) / 3
    assert "in sdpa (core)" in everywhere
    assert "in padding_mask\n" in mistake


def test_a_property_that_is_called_like_a_family_is_explained_with_the_family_that_breaks_it(run: Run) -> None:
    done = run("explain", "device", "--all")

    assert done.returncode == 0
    assert done.stdout.startswith("device: a property\n")
    assert "device.default" in done.stdout


def test_the_family_of_a_property_with_its_name_is_listed_as_the_property_says(run: Run) -> None:
    said, listed = run("explain", "mask", "--all"), run("explain", "mask.")

    assert "attn-kata explain mask." in said.stdout
    assert listed.returncode == 0
    assert listed.stdout.startswith("mask\n")
    assert "mask.shifted" in listed.stdout


def test_a_standard_property_is_explained_in_the_words_of_every_kata_that_takes_it(run: Run) -> None:
    usual, own = run("explain", "from_scratch", "--all").stdout, run("explain", "gradients_with_mask", "--all").stdout

    assert "No ready-made attention is called." in usual
    assert "sdpa (core)" in usual
    assert "mha (core)" in own


def test_without_a_name_every_mistake_is_listed_by_family(run: Run) -> None:
    done = run("explain")

    assert done.returncode == 0
    listed = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ") and "." in line.split()[0]]
    families = list(dict.fromkeys(id.partition(".")[0] for id in catalogue.load()))
    by_family = sorted(catalogue.load(), key=lambda id: families.index(id.partition(".")[0]))
    assert [id for id in listed if id in catalogue.load()] == by_family


def test_a_family_lists_its_own(run: Run) -> None:
    done = run("explain", "dropout")

    assert done.returncode == 0
    assert "dropout.always" in done.stdout
    assert "scale." not in done.stdout


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("scale.embed_dims", "'scale.embed_dim'"),
        ("embed_dim", "'scale.embed_dim'"),
        ("sqrt", "'scale.no_sqrt'"),
        ("value", "'values' or 'scale.value_dim' or 'project.key_for_value'"),
        ("contiguous", "'layout.view_of_strided'"),
        ("no_futur_leak", "'no_future_leak'"),
    ],
)
def test_a_misspelt_name_gets_the_nearest(run: Run, typed: str, meant: str) -> None:
    done = run("explain", typed)

    assert done.returncode == 2
    assert done.stdout == ""
    assert f"Did you mean {meant}?" in done.stderr


def test_an_id_with_capitals_is_found_as_a_report_prints_it(run: Run) -> None:
    done = run("explain", "layout.T_of_batch")

    assert done.returncode == 0
    assert done.stdout.startswith("layout.T_of_batch: ")


def test_a_claim_with_numbers_of_its_file_has_them(run: Run) -> None:
    done = run("explain", "learns", "--json")

    claims = [one["claim"] for one in json.loads(done.stdout)["katas"]]
    assert all(claims)
    assert all("{" not in claim for claim in claims)


def test_a_name_like_nothing_gets_the_next_command(run: Run) -> None:
    done = run("explain", "zzz")

    assert done.returncode == 2
    assert "'zzz'" in done.stderr
    assert "attn-kata explain" in done.stderr


def test_a_kata_is_said_to_be_one(run: Run) -> None:
    done = run("explain", "sdpa")

    assert done.returncode == 2
    assert "'sdpa' is a kata" in done.stderr


def test_json_holds_what_the_text_says(run: Run) -> None:
    listed = json.loads(run("explain", "--json").stdout)
    mistake = json.loads(run("explain", "mask.lost", "--json").stdout)
    claim = json.loads(run("explain", "output_shape", "--json").stdout)

    assert [one["mistake"] for one in listed] == list(catalogue.load())
    assert set(mistake) == {
        "mistake",
        "family",
        "title",
        "explanation",
        "question",
        "why",
        "see",
        "seen",
        "breaks",
        "example",
    }
    assert {one["kata"] for one in claim["katas"]} <= set(catalog.slugs())
    assert {one["tier"] for one in claim["katas"]} <= {"core", "edge"}


def test_everything_is_readable_at_80_columns(run: Run) -> None:
    for name in ((), ("scale.embed_dim",), ("mask.top_left",), ("values",)):
        for line in run("explain", *name, COLUMNS="80").stdout.splitlines():
            assert len(line) <= 80 or "https://" in line, line


def test_torch_is_not_imported(run: Run, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise SystemExit('torch was imported')", encoding="utf-8")
    for name in ((), ("scale.embed_dim",), ("values",), ("zzz",)):
        done = run("explain", *name, PYTHONPATH=str(tmp_path))

        assert "torch was imported" not in done.stderr
        assert done.returncode in (0, 2)
