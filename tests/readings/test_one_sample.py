"""Code that takes a batch of one size only is asked once for each sample, with a batch of one."""

from __future__ import annotations

import pytest
from tests.readings.test_how_far_it_is_right import ATTEND, MERGE, SCALE
from tests.readings.test_kinds import HEAD

ALONE = ATTEND.replace(MERGE, "context.transpose(1, 2).reshape(1, T, E)").replace(
    "forward(self, x):", "forward(self, x, mask=None):"
)
ALONE = ALONE.replace(
    SCALE, SCALE + "\n        if mask is not None:\n            scores = scores.masked_fill(mask == 0, -1e9)"
)
ADDITIVE = """
class Score(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.attn = nn.Linear(2 * hidden_size, hidden_size)
        self.v = nn.Parameter(torch.rand(1, hidden_size))

    def forward(self, decoder_hidden, encoder_outputs):
        length = encoder_outputs.shape[1]
        both = torch.cat((decoder_hidden.expand(1, length, -1), encoder_outputs), 2)
        energies = torch.tanh(self.attn(both)) @ self.v.t()
        weights = torch.softmax(energies.view(1, -1), dim=1)
        return weights.unsqueeze(1) @ encoder_outputs
"""
OF_GLOBALS = "BATCH_SIZE = 16\n" + ATTEND.replace("w(x).view(B, T,", "w(x).view(BATCH_SIZE, -1,")
OF_CONSTRUCTOR = ATTEND.replace("n_heads):", "n_heads, batch_size):").replace(
    "        self.h,", "        self.batch_size = batch_size\n        self.h,"
)
OF_CONSTRUCTOR = OF_CONSTRUCTOR.replace("w(x).view(B, T,", "w(x).view(self.batch_size, T,")
ASKED = [
    ("mha", ALONE, ("mask=keep", "one_sample=yes")),
    ("additive_attention", ADDITIVE, ()),
    ("mha", OF_GLOBALS, ()),
    ("mha", OF_CONSTRUCTOR, ()),
]
# It takes a batch of any size, as long as its mask is right.
BROADCAST = ATTEND.replace("forward(self, x):", "forward(self, x, mask):").replace(
    SCALE, SCALE + "\n        scores = scores.masked_fill(mask.reshape(B, T)[:, None] == 0, -1e9)"
)
BROADCAST = BROADCAST.replace(MERGE, MERGE.replace("B, T, E", "-1, T, E")).replace(
    "B, T, E = x.shape", "B, T, E = x.expand(1, -1, -1, -1).shape[1:]"
)


@pytest.mark.parametrize(("kata", "text", "flags"), ASKED)
def test_it_is_right_for_a_batch_of_one_and_can_be_typed_back(shared_engine, kata, text, flags):
    source = (HEAD + text).encode()
    report = shared_engine.grade(kata, source, attempt="mine.py", reads=True, flags=flags)

    assert report.outcome == "passed", report.ungraded_because
    assert report.reading is not None
    assert "a batch of one only" in report.reading["departures"]
    again = shared_engine.grade(kata, source, attempt="mine.py", reads=True, flags=tuple(report.reading["flags"]))
    assert again.reading == report.reading


@pytest.mark.parametrize(
    ("kata", "old", "new", "id"),
    [
        ("mha", SCALE, "scores / E**0.5", "scale.embed_dim"),
        ("mha", "mask == 0", "mask == 1", "mask.inverted"),
        ("additive_attention", "torch.tanh(self.attn(both))", "self.attn(both)", "additive.no_tanh"),
    ],
)
def test_a_mistake_is_named(shared_engine, kata, old, new, id):
    text, flags = next((text, flags) for name, text, flags in ASKED if name == kata)
    assert text.count(old) == 1
    source = (HEAD + text.replace(old, new)).encode()
    report = shared_engine.grade(kata, source, attempt="mine.py", reads=True, flags=flags)

    assert [mistake.id for one in report.diagnosis for mistake in one.mistakes] == [id]


def test_a_mask_that_is_laid_on_the_heads_is_not_hidden_by_a_batch_of_one(shared_engine):
    report = shared_engine.grade("mha", (HEAD + BROADCAST).encode(), attempt="mine.py", reads=True)

    assert report.reading is None or "a batch of one only" not in report.reading["departures"]
    assert not report.passed


def test_another_definition_is_not_taken_for_one_of_a_batch_of_one(shared_engine):
    gated = OF_GLOBALS.replace(SCALE, "scores / self.d**0.5 * torch.sigmoid(self.gate)").replace(
        "        self.h,", "        self.gate = nn.Parameter(torch.rand(1))\n        self.h,"
    )
    first = gated.replace("class Attend", "class MultiHeadAttention")
    report = shared_engine.grade("mha", (HEAD + first + ATTEND).encode(), attempt="mine.py", reads=True)

    assert report.passed, report.ungraded_because
    assert report.reading is not None
    assert report.reading["entry"] == "Attend"
    assert "a batch of one only" not in report.reading["departures"]
