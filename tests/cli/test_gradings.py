"""What follows a first grading of code by other names that gave no verdict: without its mask, with one length."""

from __future__ import annotations

import json

from tests.readings.test_interfaces import ATTEND
from tests.readings.test_kinds import HEAD

MASK_RAISES = ATTEND.replace("mask == 0", "int(mask) == 0")
TILED = """
def tiled_attention(q, k, v, tile=2):
    tokens = q.shape[-2]
    top = torch.full((*q.shape[:-1], 1), float("-inf"), dtype=q.dtype)
    total, out = torch.zeros_like(top), torch.zeros_like(q)
    for begin in range(0, tokens, tile):
        scores = q @ k[..., begin : begin + tile, :].transpose(-2, -1) / q.shape[-1] ** 0.5
        highest = torch.maximum(top, scores.max(dim=-1, keepdim=True).values)
        weights = torch.exp(scores - highest)
        total = total * torch.exp(top - highest) + weights.sum(-1, keepdim=True)
        out = out * torch.exp(top - highest) + weights @ v[..., begin : begin + tile, :]
        top = highest
    return out / total
"""


def graded(run, folder, text):
    (folder / "mine.py").write_text(HEAD + text, "utf-8")
    done = run("grade", "mine.py", "--json")
    return done.returncode, json.loads(done.stdout)


def test_code_that_is_right_without_its_mask_is_said_to_be(run, folder):
    code, report = graded(run, folder, MASK_RAISES)

    assert code == 3
    assert "every call that was tried with a mask raises" in report["ungraded_because"]
    assert report["notes"][-1] == "Without its mask it is right, as mha (--mask none shows it)"


def test_tiles_that_are_counted_by_the_queries_are_graded_with_as_many_of_them_as_keys(run, folder):
    code, report = graded(run, folder, TILED)

    assert code == 0, report["ungraded_because"]
    assert "square=yes" in report["reading"]["flags"]
    assert any("context.query_length" in note for note in report["reading"]["notes"])
