"""Every kata is held to the rules of CONTRIBUTING.md; the same as `attn-kata dev check`."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from attn_kata import catalog
from attn_kata.authoring import mutants, rules
from attn_kata.authoring.workbench import Workbench
from attn_kata.diagnosis.pipeline import Variant, load
from attn_kata.engine.client import Engine

KATAS = catalog.katas()


@pytest.fixture
def engine(shared_engine: Engine) -> Engine:
    return shared_engine


@pytest.fixture(scope="module")
def workbench() -> Iterator[Workbench]:
    with Workbench() as running:
        yield running


def by_slug(kata: catalog.Kata) -> str:
    return kata.slug


def test_the_six_katas_are_there() -> None:
    assert {"sdpa", "fused_qkv", "padding_mask", "causal_mask", "mha", "cross_attention"} <= {
        kata.slug for kata in KATAS
    }


@pytest.mark.parametrize("kata", KATAS, ids=by_slug)
def test_a_kata_keeps_every_rule(kata: catalog.Kata, engine: Engine, workbench: Workbench) -> None:
    result = rules.check(kata, engine, workbench)

    assert result.problems == []


@pytest.mark.parametrize("kata", KATAS, ids=by_slug)
def test_every_mistake_is_caught_alone_and_in_pairs(kata: catalog.Kata) -> None:
    survivors = rules.surviving_mutants(kata)

    assert survivors == []


def test_of_all_two_mistakes_a_third_meets_and_every_mistake_meets_others() -> None:
    for pipeline in load(catalog.find("mha").folder).PIPELINES:
        by_id: dict[str, list[Variant]] = {}
        for variant in pipeline.variants:
            if variant.shows_in_values:
                by_id.setdefault(variant.id, []).append(variant)
        shown = [variant for some in by_id.values() for variant in some[: mutants.IN_PAIRS]]
        may = {
            frozenset({one.id, other.id})
            for one, other in itertools.combinations(shown, 2)
            if not set(one.stages) & set(other.stages)
        }
        pairs = list(mutants.choices(pipeline, pairs=True))
        met = [frozenset(variant.id for variant in pair) for pair in pairs]

        assert set(met) <= may
        assert len(met) == len(set(met))
        assert mutants.ONE_IN * len(met) == pytest.approx(len(may), rel=0.1)
        for id in frozenset().union(*may):
            could = len([pair for pair in may if id in pair])
            assert mutants.ONE_IN * len([pair for pair in met if id in pair]) >= 0.5 * could, id
        assert not any(set(one.stages) & set(other.stages) for one, other in pairs)


@pytest.mark.parametrize("left", [{"output_shape"}, {"output_shape", "values"}], ids=["shapes", "values"])
def test_a_mistake_that_no_hidden_test_fails_is_found(left: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    kata = catalog.find("attention_dropout")
    tests = [test for test in mutants.hidden_tests(kata.folder) if test.property.name in left]
    monkeypatch.setattr(mutants, "hidden_tests", lambda folder: tests)
    survivors = rules.surviving_mutants(kata)
    unseen = {name for name, killers in rules.kill_matrix(kata).items() if not killers}

    assert "arguments.unchecked" in unseen
    assert ("scale.missing" in unseen) == ("values" not in left)
    assert {one for one in survivors if " + " not in one} == unseen


@pytest.mark.parametrize("kata", KATAS, ids=by_slug)
def test_a_hidden_test_has_a_claim_and_compares_with_a_written_tolerance(kata: catalog.Kata) -> None:
    tree = ast.parse((kata.folder / f"test_{kata.slug}.py").read_text("utf-8"))
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]

    assert tests
    assert all(any(_name(one) == "claims" for one in test.decorator_list) for test in tests)
    for call in calls:
        if call.func.id == "assert_close":  # type: ignore[attr-defined]
            assert any(keyword.arg == "atol" for keyword in call.keywords), f"line {call.lineno}"


@pytest.mark.parametrize("kata", KATAS, ids=by_slug)
def test_nothing_of_a_kata_points_outside_of_the_project(kata: catalog.Kata) -> None:
    for path in [*kata.folder.rglob("*.*"), kata.solution]:
        if path.suffix in (".py", ".toml", ".md", ".j2"):
            text = path.read_text("utf-8")
            assert not re.search(r"\.\./shared|/work/|/tmp/|/home/", text), path


def _name(node: ast.expr) -> str:
    called = node.func if isinstance(node, ast.Call) else node
    return called.id if isinstance(called, ast.Name) else ""


def test_a_kata_is_one_folder_and_one_solution() -> None:
    """No registry, index or numbering elsewhere: no module of the package names a kata (but where it is torch's word, too)."""
    package = Path(catalog.__file__).parent
    naming = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for kata in KATAS
        if kata.slug not in ("mha", "sdpa", "softmax")
        and re.search(rf"""["']{kata.slug}["']""", path.read_text("utf-8"))
    }

    # A plan is a list of katas, and code by other names is told by the structure that each kata has.
    assert naming <= {"interview/plans.py", "readings/inference.py"}
