"""Attention over the places of an image, (B, E, height, width), or with the channels before the places, (B, E, T)."""

from __future__ import annotations

import pytest
from tests.readings.pairs import right_and_wrong, told
from tests.readings.test_kinds import HEAD

# As in models of diffusion: convolutions of one pixel, a norm in groups that do not divide every width, and the input added.
OF_PIXELS = """
class AttnBlock(nn.Module):
    def __init__(self, in_ch):
        super().__init__()
        self.norm = nn.GroupNorm(32, in_ch)
        self.q, self.k, self.v = (nn.Conv2d(in_ch, in_ch, 1) for _ in range(3))
        self.proj_out = nn.Conv2d(in_ch, in_ch, 1)

    def forward(self, x):
        B, C, H, W = x.shape
        h = self.norm(x)
        q, k, v = (layer(h).flatten(2) for layer in (self.q, self.k, self.v))  # (B, C, H W)
        w = torch.softmax(q.transpose(1, 2) @ k * C**-0.5, dim=-1)
        h = (v @ w.transpose(1, 2)).reshape(B, C, H, W)
        return x + self.proj_out(h)
"""
HEADS_OF_PIXELS = """
class SelfAttention(nn.Module):
    def __init__(self, channels, num_heads):
        super().__init__()
        self.heads = num_heads
        self.qkv = nn.Linear(channels, 3 * channels)
        self.proj = nn.Linear(channels, channels)

    def forward(self, x):
        b, c, h, w = x.shape
        x = x.flatten(2).transpose(1, 2)  # (b, h w, c)
        q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in self.qkv(x).chunk(3, dim=-1))
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        out = self.proj((weights @ v).transpose(1, 2).flatten(2))
        return out.transpose(1, 2).reshape(b, c, h, w)
"""
CHANNELS_FIRST = """
class MultiHeadAttention(nn.Module):
    def __init__(self, channels, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.conv_q, self.conv_k, self.conv_v = (nn.Conv1d(channels, channels, 1) for _ in range(3))
        self.conv_o = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        q, k, v = (conv(x).unflatten(1, (self.n_heads, -1)) for conv in (self.conv_q, self.conv_k, self.conv_v))
        weights = torch.softmax(q.transpose(-2, -1) @ k / math.sqrt(q.shape[2]), dim=-1)  # (B, H, T, T)
        return self.conv_o((v @ weights.transpose(-2, -1)).flatten(1, 2))
"""
# One convolution for q, k and v of every head, with the pixels last.
FUSED_PIXELS = """
class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=32):
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        self.to_qkv = nn.Conv2d(dim, 3 * heads * dim_head, 1, bias=False)
        self.to_out = nn.Conv2d(heads * dim_head, dim, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = (part.view(b, self.heads, -1, h * w) for part in self.to_qkv(x).chunk(3, dim=1))
        attn = torch.einsum("bndi,bndj->bnij", q * self.scale, k).softmax(dim=-1)
        out = torch.einsum("bnij,bndj->bnid", attn, v)
        return self.to_out(out.transpose(2, 3).reshape(b, -1, h, w))
"""
FUSED_CHANNELS = FUSED_PIXELS.replace("Conv2d", "Conv1d").replace("b, c, h, w = x.shape", "b, c, n = x.shape")
FUSED_CHANNELS = FUSED_CHANNELS.replace("h * w)", "n)").replace("-1, h, w)", "-1, n)")
PAIRS = {
    "fused_pixels": ("mha", FUSED_PIXELS, "softmax(dim=-1)", "softmax(dim=-2)", {"softmax.query_axis"}),
    "fused_pixels_without_scale": ("mha", FUSED_PIXELS, "q * self.scale", "q", {"scale.missing"}),
    "fused_channels": ("mha", FUSED_CHANNELS, "dim_head**-0.5", "dim**-0.5", {"scale.embed_dim"}),
    "of_pixels": ("mha", OF_PIXELS, " * C**-0.5", "", {"scale.missing"}),
    "reshaped_to_tokens": (
        "mha",
        HEADS_OF_PIXELS,
        "x = x.flatten(2).transpose(1, 2)",
        "x = x.reshape(b, h * w, c)",
        {"layout.mixed_places"},
    ),
    "reshaped_to_an_image": ("mha", HEADS_OF_PIXELS, "out.transpose(1, 2).", "out.", {"layout.mixed_places"}),
    "heads_of_pixels": ("mha", HEADS_OF_PIXELS, " / math.sqrt(q.shape[-1])", " / math.sqrt(c)", {"scale.embed_dim"}),
    "channels_first": (
        "mha",
        CHANNELS_FIRST,
        "k / math.sqrt(q.shape[2]), dim=-1",
        "k / math.sqrt(q.shape[2]), dim=-2",
        {"softmax.query_axis"},
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_it_is_read_and_hides_no_mistake(name, shared_engine):
    slug, text, old, new, named = PAIRS[name]
    _, wrong = right_and_wrong(shared_engine, slug, text, old, new)

    assert told(wrong) == named


def test_the_layout_is_said_and_can_be_typed_back(shared_engine):
    text = (HEAD + OF_PIXELS).encode()
    found = shared_engine.grade("mha", text, attempt="mine.py", reads=True)
    again = shared_engine.grade("mha", text, attempt="mine.py", reads=True, flags=tuple(found.reading["flags"]))

    assert "an image, (B, E, height, width)" in found.reading["departures"]
    assert (again.outcome, again.reading["departures"]) == (found.outcome, found.reading["departures"])


BEHIND_FEATURES = """
class SelfAttentionBlock(nn.Module):
    def __init__(self, num_heads, in_channels, num_groups=32):
        super().__init__()
        self.num_heads = num_heads
        self.query, self.key, self.value, self.final = (nn.Linear(in_channels, in_channels) for _ in range(4))
        self.norm = nn.GroupNorm(num_groups, in_channels)

    def forward(self, x):
        batch, features, h, w = x.shape
        pixels = x.view(batch, features, h * w).transpose(1, 2)
        q, k, v = (
            layer(pixels).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        out = self.final((weights @ v).transpose(1, 2).flatten(2)).transpose(1, 2)
        return self.norm(out.reshape(batch, features, h, w) + x)
"""


def test_places_behind_features_are_an_image(shared_engine):
    right, wrong = right_and_wrong(
        shared_engine, "mha", BEHIND_FEATURES, "math.sqrt(q.shape[-1])", "math.sqrt(features)"
    )

    assert right.passed, right.ungraded_because
    assert "order=image" in right.reading["flags"]
    assert told(wrong) == {"scale.embed_dim"}


def test_a_norm_that_a_function_of_the_file_makes_is_left_out_as_well(shared_engine):
    made = "\ndef Normalize(channels):\n    return nn.GroupNorm(num_groups=32, num_channels=channels)\n"
    text = made + OF_PIXELS.replace("nn.GroupNorm(32, in_ch)", "Normalize(in_ch)")
    right, wrong = right_and_wrong(shared_engine, "mha", text, " * C**-0.5", "")

    assert right.passed, right.ungraded_because
    assert told(wrong) == {"scale.missing"}
