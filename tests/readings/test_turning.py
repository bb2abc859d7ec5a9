"""Rotary positions inside of an attention are left out; what is certainly wrong in them is named, and fails."""

from __future__ import annotations

import pytest
from tests.readings.test_kinds import HEAD

ATTEND = """
def make_angles(size, length):
    return torch.outer(torch.arange(length), 10000.0 ** (-torch.arange(0, size, 2) / size))  # (T, D / 2)

def apply_rotary_emb(x, angles):
    length = x.shape[-2]
    turns = torch.polar(torch.ones_like(angles), angles)[:length]
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turns).flatten(-2).type_as(x)

class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h, self.d = n_heads, width // n_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (w(x).view(B, T, self.h, self.d) for w in (self.w_q, self.w_k, self.w_v))
        angles = make_angles(self.d, 64)
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        q, k = apply_rotary_emb(q, angles), apply_rotary_emb(k, angles)
        weights = torch.softmax(q @ k.transpose(-2, -1) / self.d**0.5, dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).reshape(B, T, E))
"""
SPLIT, TURN = "        q, k, v = (part.transpose(1, 2) for part in (q, k, v))\n", "        q, k = apply_rotary_emb(q, "
TURN += "angles), apply_rotary_emb(k, angles)\n"
BY_HEADS = ATTEND.replace(SPLIT + TURN, TURN + SPLIT)
GIVEN = (
    ("def forward(self, x):", "def forward(self, x, freqs_cis):"),
    ("make_angles(self.d, 64)", "freqs_cis.angle()"),
)
CAUSAL = "        weights = torch.softmax((q @ k.transpose(-2, -1) / self.d**0.5).masked_fill("
CAUSAL += 'torch.ones(T, T).triu(1) == 1, float("-inf")), dim=-1)\n'


def edited(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def ids(report) -> set[str]:
    return {mistake.id for one in report.diagnosis for mistake in one.mistakes}


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        (ATTEND, False),
        (BY_HEADS, True),
        (edited(ATTEND, *GIVEN), False),
        (edited(BY_HEADS, *GIVEN), True),
        (
            edited(
                ATTEND, ("        weights = torch.softmax(q @ k.transpose(-2, -1) / self.d**0.5, dim=-1)\n", CAUSAL)
            ),
            False,
        ),
        (
            edited(
                BY_HEADS, ("        weights = torch.softmax(q @ k.transpose(-2, -1) / self.d**0.5, dim=-1)\n", CAUSAL)
            ),
            True,
        ),
        (edited(ATTEND, ("torch.arange(length), 10000.0", "torch.zeros(length), 10000.0")), True),
        (edited(ATTEND, (TURN, "")), False),  # it turns nothing
    ],
)
def test_positions_without_an_effect_are_named(text, is_wrong, shared_engine):
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == ("failed" if is_wrong else "passed"), report.ungraded_because
    assert ids(report) == ({"rope.positions_ignored", "rope.head_axis"} if is_wrong else set())
    failed = [(one.property, one.message) for one in report.findings if one.outcome == "failed" and one.tier == "core"]
    assert [name for name, _ in failed] == ["values"] * is_wrong
    assert all("in whichever order" in message for _, message in failed)


BOTH = edited(
    ATTEND,
    ("def apply_rotary_emb(x, angles):", "def turned(x, angles):"),
    (
        "\nclass Attend",
        "\ndef apply_rotary_emb(xq, xk, angles):\n    return turned(xq, angles), turned(xk, angles)\n\nclass Attend",
    ),
    (TURN, "        q, k = apply_rotary_emb(q, k, angles)\n"),
)


@pytest.mark.parametrize("of_keys", ["xk", "xq"])
def test_what_turns_both_and_makes_the_keys_of_the_queries_is_named(of_keys, shared_engine):
    text = edited(BOTH, ("turned(xq, angles), turned(xk, angles)", f"turned(xq, angles), turned({of_keys}, angles)"))
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.passed == (of_keys == "xk"), report.ungraded_because
    assert ids(report) == ({"project.query_for_key"} if of_keys == "xq" else set())


# As in Llama's code of Hugging Face: cos and sin for two halves.
HALVES = edited(
    ATTEND,
    (
        ATTEND[ATTEND.index("def apply_rotary_emb") : ATTEND.index("class Attend")],
        "def rotate_half(x):\n    one, two = x.chunk(2, dim=-1)\n    return torch.cat([-two, one], dim=-1)\n\n"
        "def apply_rotary_emb(x, angles):\n    whole = torch.cat([angles, angles], dim=-1)[: x.shape[-2]]\n"
        "    return x * whole.cos() + rotate_half(x) * whole.sin()\n\n",
    ),
)
SWITCHED = (
    ("def __init__(self, width, n_heads):", "def __init__(self, width, n_heads, use_rope=True):"),
    ("self.h, self.d =", "self.use_rope = use_rope\n        self.h, self.d ="),
    (TURN, TURN.replace("q, k =", "if self.use_rope:\n            q, k =")),
)
SWITCHED_BY_CONFIG = (
    ("def __init__(self, width, n_heads):", "def __init__(self, config):"),
    (
        "self.h, self.d = n_heads, width // n_heads",
        "width, self.h = config.n_embd, config.n_head\n        self.d = width // self.h",
    ),
    (
        "\n    def forward",
        '\n        self.rope = Rotary() if getattr(config, "use_rope", False) else None\n\n    def forward',
    ),
    (TURN, "        if self.rope is not None:\n            q, k = self.rope(q, angles), self.rope(k, angles)\n"),
    (
        "\nclass Attend",
        "\nclass Rotary(nn.Module):\n    def forward(self, x, angles):\n        return apply_rotary_emb(x, angles)\n\n"
        "class Attend",
    ),
)
NEIGHBOURS = ("one, two = x.chunk(2, dim=-1)", "one, two = x[..., ::2], x[..., 1::2]")
INTO_NEIGHBOURS = (NEIGHBOURS, ("torch.cat([-two, one], dim=-1)", "torch.stack([-two, one], dim=-1).flatten(-2)"))


@pytest.mark.parametrize(
    "switch", [(), SWITCHED, SWITCHED_BY_CONFIG], ids=["always", "behind a flag", "behind what a config may lack"]
)
@pytest.mark.parametrize(
    ("edits", "is_wrong"),
    [
        ((), False),
        ((("whole.cos()", "whole.cos() * 1.2"), ("whole.sin()", "whole.sin() * 1.2")), False),  # as YaRN scales both
        (INTO_NEIGHBOURS, True),
        ((("[-two, one]", "[two, one]"),), True),
    ],
    ids=["halves", "scaled", "halves for neighbours", "no sign"],
)
def test_a_rotation_that_changes_lengths_is_named(edits, is_wrong, switch, shared_engine):
    report = shared_engine.grade(
        "mha", (HEAD + edited(HALVES, *edits, *switch)).encode(), attempt="mine.py", reads=True
    )

    assert report.passed != is_wrong, report.ungraded_because
    assert ids(report) == ({"rope.mixed_conventions", "rope.sign_lost"} if is_wrong else set())
    lines = {mistake.line for one in report.diagnosis for mistake in one.mistakes}
    text = (HEAD + edited(HALVES, *edits, *switch)).splitlines()
    assert [text[line - 1] for line in lines] == ["def apply_rotary_emb(x, angles):"] * is_wrong


COMPLEX = edited(
    HALVES,
    (
        HALVES[HALVES.index("def rotate_half") : HALVES.index("class Attend")],
        "def apply_rotary_emb(x, turns):\n    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())\n"
        "    return torch.view_as_real(pairs * turns[: x.shape[-2]]).flatten(-2)\n\n",
    ),
    ("        self.w_q,", "        angles = make_angles(self.d, 64)\n        self.w_q,"),
    (
        " for _ in range(4))",
        " for _ in range(4))\n        self.register_buffer('turns', torch.polar(torch.ones_like(angles), angles))",
    ),
    ("        angles = make_angles(self.d, 64)\n        q, k, v", "        angles = self.turns\n        q, k, v"),
)


def test_turns_in_a_buffer_of_complex_numbers_stay_a_rotation(shared_engine):
    """Weights in float64 are copied in; a conversion that made them real would make them no turns."""
    report = shared_engine.grade("mha", (HEAD + COMPLEX).encode(), attempt="mine.py", reads=True)

    assert report.passed, report.ungraded_because
    assert not report.diagnosis


TABLE_ELSEWHERE = edited(
    BOTH,
    (BOTH[BOTH.index("def make_angles") : BOTH.index("def turned")], "from llama.rope import precompute_freqs_cis\n\n"),
    ("angles = make_angles(self.d, 64)", "angles = self.freqs_cis[:T]"),
    (
        "        self.w_q, self.w_k",
        "        self.freqs_cis = precompute_freqs_cis(self.d, 64)\n        self.w_q, self.w_k",
    ),
)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["the table", "the table and the rotation"])
def test_angles_that_a_file_makes_which_is_not_here_are_left_out_too(elsewhere, shared_engine):
    text = TABLE_ELSEWHERE
    if elsewhere:
        text = text.replace("import precompute", "import apply_rotary_emb, precompute")
        begin = text.index("def turned")
        text = text[:begin] + text[text.index("class Attend") :]
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.passed, report.ungraded_because
    assert "its rotary positions are left out" in report.reading["departures"]


# A cache that the call hands back, and positions that begin behind its keys.
CACHED = edited(
    HALVES,
    ("def forward(self, x):", "def forward(self, x, past=None):"),
    (
        TURN,
        "        offset = 0 if past is None else past[0].shape[2]\n"
        "        q, k = apply_rotary_emb(q, angles[offset:]), apply_rotary_emb(k, angles[offset:])\n"
        "        if past is not None:\n"
        "            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)\n"
        "        kept = (k, v)\n",
    ),
    (
        "        weights = torch.softmax(q @ k.transpose(-2, -1) / self.d**0.5, dim=-1)\n",
        "        hidden = torch.ones(T, k.shape[2]).triu(1 + k.shape[2] - T) == 1\n"
        "        scores = (q @ k.transpose(-2, -1) / self.d**0.5).masked_fill(hidden, float('-inf'))\n"
        "        weights = torch.softmax(scores, dim=-1)\n",
    ),
    (
        "return self.w_o((weights @ v).transpose(1, 2).reshape(B, T, E))",
        "return self.w_o((weights @ v).transpose(1, 2).reshape(B, T, E)), kept",
    ),
)
JOINED = "            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)\n"


@pytest.mark.parametrize(
    ("edits", "is_said"),
    [
        ((), False),
        ((("angles[offset:]), apply", "angles), apply"), ("(k, angles[offset:])", "(k, angles)")), True),
        (((JOINED, JOINED + "            k = apply_rotary_emb(k, angles)\n"),), True),
    ],
    ids=["right", "each as the first", "turned again"],
)
def test_that_a_cache_does_not_fit_the_positions_is_said(edits, is_said, shared_engine):
    report = shared_engine.grade("mha", (HEAD + edited(CACHED, *edits)).encode(), attempt="mine.py", reads=True)

    assert report.passed, report.ungraded_because
    assert any("its cache gives other numbers" in note for note in report.reading["notes"]) == is_said


# The rotation is a method of the attention inside, and its tables are filled two by two.
INSIDE = """
class RoPEAttention(nn.Module):
    def __init__(self, size, length=64):
        super().__init__()
        self.size = size
        self.register_buffer("sin", torch.zeros(length, size))
        self.register_buffer("cos", torch.zeros(length, size))
        for place in range(length):
            for i in range(0, size, 2):
                angle = place / 10000 ** (i / size)
                self.sin[place, i] = self.sin[place, i + 1] = math.sin(angle)
                self.cos[place, i] = self.cos[place, i + 1] = math.cos(angle)

    def rotate(self, x):
        turned = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).reshape_as(x)
        return x * self.cos[: x.shape[-2]] + turned * self.sin[: x.shape[-2]]

    def forward(self, q, k, v):
        q, k = self.rotate(q), self.rotate(k)
        return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.size), dim=-1) @ v


class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h, self.d = n_heads, width // n_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(width, width) for _ in range(4))
        self.attention = RoPEAttention(self.d)

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (w(x).view(B, T, self.h, self.d).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        return self.w_o(self.attention(q, k, v).transpose(1, 2).reshape(B, T, E))
"""


@pytest.mark.parametrize(("scale", "mistakes"), [("math.sqrt(self.size)", set()), ("self.size", {"scale.no_sqrt"})])
def test_a_rotation_of_the_attention_inside_is_left_out(scale, mistakes, shared_engine):
    text = INSIDE.replace("math.sqrt(self.size)", scale)
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert {mistake.id for one in report.diagnosis for mistake in one.mistakes} == mistakes
    assert report.passed == (not mistakes), report.ungraded_because
    assert {"unturned=attention.rotate", "multiple=2"} <= set(report.reading["flags"])


def test_a_rotation_of_a_package_that_is_not_here_is_said_not_to_be_graded(shared_engine):
    rotation, attention = ATTEND.split("\nclass Attend")
    imported = "from a_package_of_rotations import make_angles, apply_rotary_emb\n"
    own, other = (
        shared_engine.grade("mha", f"{HEAD}{first}\nclass Attend{attention}".encode(), attempt="mine.py", reads=True)
        for first in (rotation, imported)
    )

    assert (own.outcome, other.outcome) == ("passed", "passed"), other.ungraded_because
    said = "comes from 'a_package_of_rotations', which is not here"
    assert [any(said in note for note in each.reading["notes"]) for each in (own, other)] == [False, True]


def test_a_rotation_that_raises_for_the_place_of_the_heads_is_said(shared_engine):
    """Its table is as long as the inputs, and the heads stand in their place."""
    by_heads = ATTEND.replace("make_angles(self.d, 64)", "make_angles(self.d, T)").replace("[:length]", "[:, None]")
    assert by_heads.count("[:, None]") == 1
    right, wrong = (
        shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True) for text in (ATTEND, by_heads)
    )

    assert (right.outcome, wrong.outcome) == ("passed", "passed"), wrong.ungraded_because
    said = "With them, the code raises"
    assert [any(said in note for note in each.reading["notes"]) for each in (right, wrong)] == [False, True]


@pytest.mark.parametrize(
    "asked", ["getattr()", "getattr(config)", "getattr(*config)", 'getattr(config, "use_" + "rope", 0)']
)
def test_a_config_that_is_asked_in_an_unfinished_line_stops_nobody(asked, shared_engine):
    text = HEAD + edited(HALVES, *SWITCHED_BY_CONFIG).replace('getattr(config, "use_rope", False)', asked)
    report = shared_engine.grade("mha", text.encode(), attempt="mine.py", reads=True)

    assert asked in text
    assert report.outcome in ("passed", "ungraded")  # and no fault of ours
