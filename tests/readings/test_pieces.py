"""The pieces and their mistakes say the truth: each is compared with the kata's own pipeline, adapted by hand."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import torch

from attn_kata import catalog
from attn_kata.diagnosis import catalogue
from attn_kata.specimens import Edit, apply

from . import adapter

HERE = Path(__file__).parent
PIECES, MISTAKES = adapter.table("pieces"), adapter.table("mistakes")
EXACT = 1e-9  # float64; what a piece fills masked scores with leaves less than that
SHOWN = 1e-2


def edited(name: str) -> str:
    """The text of a row of mistakes.toml."""
    row = MISTAKES[name]
    edits = [Edit(old=edit["old"], new=edit["new"], place=f"mistakes.toml: {name}: old") for edit in row["edit"]]
    return apply(adapter.source(row["piece"]), edits)


def test_every_file_has_a_row_that_names_what_is_in_it():
    files = {path.stem for path in (HERE / "pieces").glob("*.py")}

    assert files == set(PIECES)
    assert len(files) >= 60
    for name, row in PIECES.items():
        defined = {node.name: node for node in ast.parse(adapter.source(name)).body if hasattr(node, "name")}
        assert row["entry"] in defined, name
        assert row.get("entry_attention", row["entry"]) in defined, name
        assert isinstance(defined[row.get("entry_attention", row["entry"])], ast.ClassDef) == ("build" in row), name
        assert row["kata"] in catalog.slugs(), name
        assert row["mask"] in {"keep", "hide", "additive", "causal", "none", "undocumented"}, name
        assert row["result"] in {"out", "out, weights", "weights, out", "weights"}, name
        assert row["departures"], name
        assert ("behaves" in row) == (row["mask"] == "undocumented"), name


def test_every_edit_applies_once_and_makes_a_known_mistake():
    known = catalogue.load()

    for name, row in MISTAKES.items():
        ast.parse(edited(name))
        assert row["mistake"] in known, name
        assert name == f"{row['piece']}__{row['mistake'].replace('.', '_')}"


def test_every_piece_is_right_as_it_is_read():
    for name, row in PIECES.items():
        piece = adapter.Adapted(row, adapter.source(name))

        off = (piece.output() - piece.expected()).abs().max()

        assert off < EXACT, f"{name} is {off} away"


def test_the_masks_are_right_as_they_are_read():
    lengths = torch.tensor([3, 5, 0])
    keep = torch.arange(5) < lengths[:, None]
    tril = torch.ones(5, 5, dtype=torch.bool).tril()

    for name, row in PIECES.items():
        if "call_mask" not in row:
            continue
        names: dict[str, object] = {}
        exec(compile(adapter.source(name), name, "exec"), names)
        made = eval(f"{row['entry']}({row['call_mask']})", {**names, "lengths": lengths, "T": 5})
        kept = made == 0 if row["mask"] == "additive" else ~made if row["mask"] == "hide" else made
        assert torch.equal(kept.reshape(-1, 5), tril if row["kata"] == "causal_mask" else keep), name


def test_every_edit_makes_exactly_its_mistake():
    for name, row in MISTAKES.items():
        piece, id = PIECES[row["piece"]], row["mistake"]
        open_mask = not id.startswith("mask.")  # rows of a masked softmax along queries depend on the fill
        right = right_output(row["piece"], open_mask)
        wrong = adapter.Adapted(piece, edited(name), open_mask=open_mask)
        try:
            out = wrong.output()
        except RuntimeError:
            assert row.get("raises") == "RuntimeError", name
            continue

        assert "raises" not in row, name
        assert out.shape != right.shape or (out - right).abs().max() > SHOWN, name
        assert any(like(out, one) for one in explained(wrong, id)), f"{name} is not {id}"


@cache
def right_output(name: str, open_mask: bool) -> torch.Tensor:
    return adapter.Adapted(PIECES[name], adapter.source(name), open_mask=open_mask).output()


def explained(piece, id: str) -> list[torch.Tensor]:
    """What the contract's own code returns with this mistake, for each way to make it. What raises is left out."""
    if id == "mask.shifted" and piece.kata in adapter.SELF:
        return [piece.expected(mask=piece.keep(1))]
    if id == "mask.shifted" and "builds_only" not in piece.row:
        return [piece.expected_with_mask(1)]
    made = []
    entry = "causal_mask" if "builds_only" in piece.row else adapter.ENTRIES[piece.kata]
    for variant in adapter.pipelines(piece.kata)[entry].variants:
        if variant.id == id:
            try:
                made.append(piece.expected((variant,)))
            except RuntimeError:
                continue
    return made


def like(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and bool((one - other).abs().max() < EXACT)
