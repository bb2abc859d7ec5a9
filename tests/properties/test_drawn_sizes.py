"""Sizes that are drawn anew for each seed: the same for one seed, within their ranges, and told in the report."""

from __future__ import annotations

import re
from pathlib import Path

from attn_kata import catalog
from attn_kata.grading import runner
from attn_kata.grading.hidden_tests import hidden_test
from attn_kata.grading.local import local_handle
from attn_kata.properties import Drawn, Sizes, assert_holds, claims

SEEN: list[int] = []


@claims("At most 20 columns.", cases=(Sizes(N=3), Drawn(lambda *, n: Sizes(N=2 * n), n=(1, 20))))
def few_columns(attempt, sizes) -> None:
    SEEN.append(sizes.N)
    assert_holds(sizes.N <= 20, f"{sizes.N} columns")


def test_drawn_sizes_depend_on_the_seed_alone_and_are_told(tmp_path: Path) -> None:
    test = hidden_test("test_few_columns", few_columns)
    handle = local_handle(catalog.find("sdpa").solution)
    drawn = {seed: [test.sizes(1, seed).N for _ in range(2)] for seed in range(30)}

    assert all(one == other and one in range(2, 41, 2) for one, other in drawn.values())
    assert len({one for one, _ in drawn.values()}) > 8
    seed = next(seed for seed, (one, _) in drawn.items() if one > 20)
    (finding,), _ = runner.run([test], handle, handle, seed=seed)
    assert (finding.outcome, finding.case) == ("failed", {"N": drawn[seed][0]})
    assert [3, drawn[seed][0]] == SEEN


def test_every_kata_draws_sizes_for_its_values() -> None:
    for kata in catalog.katas():
        source = (kata.folder / f"test_{kata.slug}.py").read_text("utf-8")
        assert re.search(r"Drawn\(.*(?:\n.*){1,400}?def test_\w*(?:values|out)\b", source), kata.slug
