"""`attn-kata class` where all submissions have other names than the contract: one reading for everybody."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from attn_kata.classroom import store
from attn_kata.classroom.setting import Setting, Version
from attn_kata.report import score

from .conftest import Run, write_files
from .test_class import summary_of

KATA, SEED = "mha", "918273645"
# Queries and keys are swapped, and the names of the layers tell the seed to whoever sees them.
SPY = """\
import torch
from torch import nn

SEED = torch.initial_seed()


class Attention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.heads = n_heads
        for name in "qkvo":
            setattr(self, f"{name}_{SEED}", nn.Linear(d_model, d_model))

    def forward(self, x, mask=None):
        B, T, E = x.shape
        q, k, v = (
            getattr(self, f"{name}_{SEED}")(x).view(B, T, self.heads, E // self.heads).transpose(1, 2) for name in "kqv"
        )
        scores = q @ k.transpose(-2, -1) / (E // self.heads) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask, float("-inf"))
        return getattr(self, f"o_{SEED}")((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, E))
"""
RIGHT = SPY.replace('for name in "kqv"', 'for name in "qkv"')


def test_one_reading_is_for_everybody_and_a_students_page_has_no_name_of_a_layer(tmp_path: Path, run: Run) -> None:
    helper = RIGHT.replace("class Attention", "class Helper")
    write_files(tmp_path / "work", {"subs/Spy.py": SPY, "subs/Two/a.py": RIGHT, "subs/Two/b.py": helper})
    done = run("class", "subs", "--kata", KATA, "--seed", SEED, "--class", "Attention", "--mask", "hide")
    folder = tmp_path / "work" / f"{KATA}-class"
    students = summary_of(folder)
    spy = next(kept.report for kept in store.Store(folder, print).kept() if kept.listed.name == "Spy")
    assert spy is not None
    by_groups = score.of(replace(spy, diagnosis=[]))

    assert done.returncode == 0, done.stderr
    assert (students["Spy"]["verdict"], students["Spy"]["mistakes"]) == ("failed", ["project.swapped"])
    assert (students["Two"]["verdict"], students["Two"]["file"]) == ("right, as read", "Two/a.py")
    assert (students["Spy"]["score"], students["Two"]["score"]) == (85, 100)
    assert SEED in (folder / "teacher" / "Spy.html").read_text().replace(f"--seed {SEED}", "")
    page = (folder / "students" / "Spy.html").read_text()
    assert page.count(SEED) == 0
    assert "Queries and keys swapped" in page
    assert any(finding.property.startswith("dropout") and finding.outcome == "skipped" for finding in spy.findings)
    assert "dropout: holds" in [term.what for term in by_groups.terms], "a property that was left out costs nothing"


def test_another_reading_grades_again() -> None:
    version = Version(attn_kata="1", torch="2", python="3", kata="f")
    setting = Setting(kata=KATA, seed=1, timeout=60.0, version=version)
    keys = {replace(setting, flags=flags).key("0") for flags in ((), ("mask=hide",), ("mask=keep",))}

    assert len(keys) == 3


def test_a_kata_that_takes_no_other_names_says_so(tmp_path: Path, run: Run) -> None:
    write_files(tmp_path / "work", {"subs/a.py": ""})
    refused = run("class", "subs", "--kata", "softmax", "--mask", "hide")
    unknown = run("class", "subs", "--kata", KATA, "--read", "polarity=hide")

    assert (refused.returncode, unknown.returncode) == (2, 2)
    assert "softmax takes code with the names of its contract only." in refused.stderr
    assert "is not KEY=VALUE with a key that is known" in unknown.stderr
    assert not (tmp_path / "work" / "softmax-class").exists()
