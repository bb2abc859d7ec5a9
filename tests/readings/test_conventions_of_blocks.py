"""What blocks of well-known models do otherwise than the contract: a departure, said with the mistake that it would be."""

from __future__ import annotations

import pytest
from tests.readings.test_interfaces import ATTEND
from tests.readings.test_kinds import HEAD

from attn_kata.readings import contract, conventions
from attn_kata.resources import katas_folder

BLOCK = """
class Layer(nn.Module):
    def __init__(self, width, n_heads, mlp_dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend = SelfAttend(width, n_heads)
        self.mlp = nn.Sequential(nn.Linear(width, mlp_dim), nn.GELU(), nn.Linear(mlp_dim, width))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))
"""
OTHERWISE = {
    "block.norm_of_branch": (
        ("self.attend(self.norm1(x))", "self.norm1(self.attend(x))"),
        ("self.mlp(self.norm2(x))", "self.norm2(self.mlp(x))"),
    ),
    "block.residual_of_norm": (
        ("return x + self.mlp(self.norm2(x))", "x = self.norm2(x)\n        return x + self.mlp(x)"),
    ),
    "block.activation_twice": (("nn.Linear(mlp_dim, width))", "nn.Linear(mlp_dim, width), nn.GELU())"),),
}


@pytest.mark.parametrize("mistake", OTHERWISE)
def test_a_convention_is_read_and_said_and_other_mistakes_are_seen(mistake, shared_engine):
    text = BLOCK
    for old, new in OTHERWISE[mistake]:
        assert text.count(old) == 1
        text = text.replace(old, new)
    text = ATTEND + text
    wrong = text.replace(" / math.sqrt(self.d)", "")
    reports = [
        shared_engine.grade("transformer_block", (HEAD + each).encode(), attempt="mine.py", reads=True)
        for each in (text, wrong)
    ]

    assert reports[0].outcome == "passed"
    assert f"this is {mistake}" in " ".join(reports[0].reading["notes"])
    assert "scale.missing" in [one.id for found in reports[1].diagnosis for one in found.mistakes]


def test_a_block_that_gives_no_mask_is_not_meant_to_be_causal(shared_engine):
    text = ATTEND + BLOCK.replace("self.attend(self.norm1(x))", "self.attend(self.norm1(x), mask=None)")
    report = shared_engine.grade("transformer_block", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed"
    assert "this is block.not_causal" in " ".join(report.reading["notes"])


def test_every_convention_changes_the_reference():
    known = contract.of_kata(katas_folder() / "transformer_block")
    source = (katas_folder().parent / "solutions" / "transformer_block.py").read_text()

    assert known is not None
    for name, one in known.conventions.items():
        changed = conventions.reference(source, [one])
        compile(changed, name, "exec")
        assert changed != source
