"""Attention in windows of an image (Liu et al., 2021), in our own words: a tuple for the window, a bias for each distance."""

from __future__ import annotations

import pytest
from tests.readings.pairs import right_and_wrong, told
from tests.readings.test_kinds import HEAD

from attn_kata.engine.client import Engine

WINDOW = """
class InWindow(nn.Module):
    def __init__(self, dim, window_size, num_heads, attn_drop=0.0):
        super().__init__()
        self.window_size, self.num_heads, self.scale = window_size, num_heads, (dim // num_heads) ** -0.5
        high, wide = window_size
        self.relative_position_bias_table = nn.Parameter(torch.zeros((2 * high - 1) * (2 * wide - 1), num_heads))
        places = torch.stack(torch.meshgrid(torch.arange(high), torch.arange(wide), indexing="ij")).flatten(1)
        apart = (places[:, :, None] - places[:, None, :]).permute(1, 2, 0) + torch.tensor([high - 1, wide - 1])
        self.register_buffer("apart", apart[..., 0] * (2 * wide - 1) + apart[..., 1])
        self.qkv, self.proj, self.attn_drop = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), nn.Dropout(attn_drop)
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)

    def forward(self, x, mask=None):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.num_heads, c // self.num_heads).permute(2, 0, 3, 1, 4)
        scores = (q * self.scale) @ k.transpose(-2, -1)
        area = self.window_size[0] * self.window_size[1]
        bias = self.relative_position_bias_table[self.apart.view(-1)].view(area, area, -1).permute(2, 0, 1)
        scores = scores + bias.unsqueeze(0)
        if mask is not None:
            windows = mask.shape[0]
            scores = scores.view(b // windows, windows, self.num_heads, n, n) + mask.unsqueeze(1).unsqueeze(0)
            scores = scores.view(-1, self.num_heads, n, n)
        weights = self.attn_drop(scores.softmax(dim=-1))
        return self.proj((weights @ v).transpose(1, 2).reshape(b, n, c))
"""


def test_a_window_is_as_long_as_the_input_and_its_bias_is_0(shared_engine: Engine) -> None:
    right, wrong = right_and_wrong(shared_engine, "mha", WINDOW, "(q * self.scale)", "q")

    assert {"mask=additive", "unturned=relative_position_bias_table", "one_length=yes"} <= set(right.reading["flags"])
    assert any("window_size=(1,L)" in flag for flag in right.reading["flags"])
    assert "its bias for each distance of two tokens is 0" in right.reading["departures"]
    assert any("where it is added, is not graded" in note for note in right.reading["notes"])
    assert told(wrong) == {"scale.missing"}


def test_its_reading_typed_back_gives_the_same_report(shared_engine: Engine) -> None:
    source = (HEAD + WINDOW).encode()
    found = shared_engine.grade("mha", source, attempt="mine.py", reads=True)
    again = shared_engine.grade("mha", source, attempt="mine.py", reads=True, flags=tuple(found.reading["flags"]))

    assert again.outcome == found.outcome == "passed"
    assert again.reading["flags"] == found.reading["flags"]


def test_a_window_whose_size_no_exception_names_is_as_long_as_the_input_too(shared_engine: Engine) -> None:
    text = WINDOW.replace("        area = self.window_size[0] * self.window_size[1]\n", "").replace(
        "view(area, area", "view(n, n"
    )
    right, wrong = right_and_wrong(shared_engine, "mha", text, "(q * self.scale)", "q")

    assert "one_length=yes" in right.reading["flags"]
    assert told(wrong) == {"scale.missing"}


def test_a_window_that_may_be_left_out_is(shared_engine: Engine) -> None:
    text = WINDOW.replace("window_size, num_heads, attn_drop", "num_heads, window_size=None, attn_drop")
    text = text.replace(
        "        high, wide", "        if window_size is None:\n            window_size = (1, 1)\n        high, wide"
    )
    text = text.replace(
        "scores + bias.unsqueeze(0)", "scores if self.window_size is None else scores + bias.unsqueeze(0)"
    )
    text = text.replace("        area =", "        if self.window_size is not None:\n            area =").replace(
        "        bias = self", "            bias = self"
    )
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed", report.ungraded_because
    assert not any("window_size" in flag for flag in report.reading["flags"])


SIDE = (
    WINDOW.replace("window_size, num_heads, attn_drop", "num_heads, window_size=8, attn_drop")
    .replace("high, wide = window_size", "high = wide = window_size")
    .replace("(2 * high - 1) * (2 * wide - 1)", "(2 * window_size - 1) * (2 * window_size - 1)")
    .replace("self.window_size[0] * self.window_size[1]", "self.window_size * self.window_size")
)


def test_a_window_that_is_one_number_fits_any_input(shared_engine: Engine) -> None:
    assert SIDE.count("window_size[") == 0
    right, wrong = right_and_wrong(shared_engine, "mha", SIDE, "(q * self.scale)", "q")

    assert "window_size=1" in " ".join(right.reading["flags"])
    assert told(wrong) == {"scale.missing"}


PATCHES = """
from einops import rearrange

class OfPatches(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.to_qkv, self.to_out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim)

    def forward(self, x):
        qkv = self.to_qkv(x).chunk(3, dim=-1)
        q, k, v = (rearrange(part, "b p n (h d) -> b p h n d", h=self.heads) for part in qkv)
        weights = (q @ k.transpose(-1, -2) * self.scale).softmax(dim=-1)
        return self.to_out(rearrange(weights @ v, "b p h n d -> b p n (h d)"))
"""


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        (" * self.scale", "", "scale.missing"),
        ("rearrange(weights @ v", "rearrange(weights @ v.mean(1, keepdim=True)", ""),
    ],
)
def test_several_sequences_of_a_sample_are_attended_apart(old, new, mistake, shared_engine: Engine) -> None:
    """MobileViT (Mehta & Rastegari, 2022): the places of each patch see one another, (B, P, T, E)."""
    right, wrong = right_and_wrong(shared_engine, "mha", PATCHES, old, new)

    assert "order=groups" in right.reading["flags"]
    assert wrong.outcome in ("failed", "ungraded")
    assert not mistake or told(wrong) == {mistake}
