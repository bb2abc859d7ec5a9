"""What the reading of right code leaves out is graded by itself: its cache, and the mask of one head."""

from __future__ import annotations

import json
import re

import pytest

HEAD = "import math\nimport torch\nfrom torch import nn\nfrom torch.nn import functional as F\n\n"

HANDED_BACK = """
class Attention(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads, self.size = n_heads, dim // n_heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x, layer_past=None, use_cache=False):
        B, T, _ = x.shape
        q, k, v = (w(x).view(B, T, self.n_heads, self.size).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        if layer_past is not None:
            k = torch.cat([layer_past[0], k], dim=2)
            v = torch.cat([layer_past[1], v], dim=2)
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.size)
        hidden = torch.ones(T, k.size(2), dtype=torch.bool).triu(k.size(2) - T + 1)
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        out = self.wo((weights @ v).transpose(1, 2).reshape(B, T, -1))
        if use_cache:
            return out, (k, v)
        return out
"""

HELD = """
class Attention(nn.Module):
    def __init__(self, dim, n_heads, max_batch_size=8, max_seq_len=64):
        super().__init__()
        self.n_heads, self.size = n_heads, dim // n_heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim) for _ in range(4))
        self.cache_k = torch.zeros(max_batch_size, max_seq_len, n_heads, self.size)
        self.cache_v = torch.zeros(max_batch_size, max_seq_len, n_heads, self.size)

    def forward(self, x, start_pos: int = 0, use_cache: bool = False):
        B, T, _ = x.shape
        q, k, v = (w(x).view(B, T, self.n_heads, self.size) for w in (self.wq, self.wk, self.wv))
        if use_cache:
            self.cache_k[:B, start_pos : start_pos + T] = k
            self.cache_v[:B, start_pos : start_pos + T] = v
            k, v = self.cache_k[:B, : start_pos + T], self.cache_v[:B, : start_pos + T]
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.size)
        places = torch.arange(k.size(2)) - (k.size(2) - T)
        scores = scores.masked_fill(places > torch.arange(T)[:, None], float("-inf"))
        return self.wo((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, -1))
"""

EMPTY_AT_FIRST = (
    HELD.replace(
        "        self.cache_k = torch.zeros(max_batch_size, max_seq_len, n_heads, self.size)\n"
        "        self.cache_v = torch.zeros(max_batch_size, max_seq_len, n_heads, self.size)\n",
        "        self.cache_k, self.cache_v = None, None\n        self.cache_k = None\n        self.cache_v = None\n",
    )
    .replace(
        "            self.cache_k[:B, start_pos : start_pos + T] = k\n"
        "            self.cache_v[:B, start_pos : start_pos + T] = v\n"
        "            k, v = self.cache_k[:B, : start_pos + T], self.cache_v[:B, : start_pos + T]\n",
        "            if self.cache_k is not None:\n"
        "                k, v = torch.cat([self.cache_k, k], dim=1), torch.cat([self.cache_v, v], dim=1)\n"
        "            self.cache_k, self.cache_v = k, v\n",
    )
    .replace("start_pos: int = 0, ", "")
)

ONE_HEAD = """
class SelfAttention(nn.Module):
    def __init__(self, in_dim, out_dim):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(in_dim, out_dim) for _ in range(3))

    def forward(self, x, mask=None):
        q, k, v = self.query(x), self.key(x), self.value(x)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        return scores.softmax(-1) @ v
"""


@pytest.fixture
def graded(run, folder):
    """Grades a piece of code with edits: the process, and its report."""

    def grade(text: str, *edits: tuple[str, str]):
        for old, new in edits:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (folder / "mine.py").write_text(HEAD + text, encoding="utf-8")
        done = run("grade", "mine.py", "--json")
        return done, json.loads(done.stdout)

    return grade


def ids(report) -> set[str]:
    return {mistake["id"] for one in report["diagnosis"] for mistake in one["mistakes"]}


def notes(report) -> str:
    return " ".join(report["reading"]["notes"])


@pytest.mark.parametrize("text", [HANDED_BACK, HELD, EMPTY_AT_FIRST], ids=["handed_back", "held", "empty_at_first"])
def test_a_cache_that_is_right_is_said_to_be(text, graded):
    done, report = graded(text)

    assert done.returncode == 0, done.stdout
    assert "With its cache, with 2 new tokens in a call and with one, it gives the same" in notes(report)
    assert "not tried" not in notes(report) + " ".join(report["reading"]["departures"])


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ("return out, (k, v)", "return out, layer_past or (k, v)", "cache.kept_from_start"),
        ("return out, (k, v)", "return out, (k, k)", "cache.parts_mixed"),
        ("return out, (k, v)", "return out, (v, k)", "cache.parts_mixed"),
        (
            "k = torch.cat([layer_past[0], k], dim=2)\n            v = torch.cat([layer_past[1], v], dim=2)",
            "k, v = layer_past[0] + k, layer_past[1] + v",
            "cache.added",
        ),
        ("triu(k.size(2) - T + 1)", "triu(1)", "cache.top_left"),
        ("layer_past is not None", "layer_past is None and use_cache is None", "cache.not_used"),
    ],
)
def test_what_is_wrong_with_a_cache_is_named(old, new, mistake, graded):
    done, report = graded(HANDED_BACK, (old, new))

    assert done.returncode == 1, notes(report)
    assert mistake in ids(report)
    assert (
        "Attention is right for whole sequences. With its cache, one token after the other, it is not:" in done.stderr
    )


_READ = "self.cache_k[:B, : start_pos + T], self.cache_v[:B, : start_pos + T]"


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        (
            "self.cache_v[:B, start_pos : start_pos + T] = v",
            "self.cache_v[:B, start_pos : start_pos + T] = k",
            "project.key_for_value",
        ),
        (_READ, _READ.replace(" : start", " min(start_pos, 1) : start"), "cache.token_lost"),
    ],
)
def test_a_cache_that_the_module_holds_is_tried_too(old, new, mistake, graded):
    done, report = graded(HELD, (old, new))

    assert done.returncode == 1, notes(report)
    assert mistake in ids(report)


def test_keys_that_no_known_mistake_explains_are_no_verdict(graded):
    done, report = graded(
        HELD, (_READ, _READ.replace(": start_pos + T], self.cache_v", "start_pos : start_pos + T], self.cache_v"))
    )

    assert done.returncode == 0
    assert "Its cache could not be graded" in notes(report)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "dtype=torch.bool).triu(k.size(2) - T + 1)",
            "dtype=torch.bool).triu(1) & (layer_past is None)",
            "chunk_not_causal",
        ),
        ("k.size(2), dtype=torch.bool).triu(k.size(2) - T + 1)", "T, dtype=torch.bool).triu(1)", "raises"),
    ],
)
def test_what_several_new_tokens_see_is_a_note(old, new, said, graded):
    done, report = graded(HANDED_BACK, (old, new))

    assert done.returncode == 0
    assert "it gives the same. With 2 new tokens after earlier ones it is not" in notes(report)
    assert said in notes(report)


def test_new_keys_alone_may_be_for_the_caller_to_join(graded):
    done, report = graded(
        HANDED_BACK,
        ("            v = torch", "            new, v = (k[:, :, -T:], v), torch"),
        (
            "return out, (k, v)",
            "return out, new if layer_past is not None else (k, v)",
        ),
    )

    assert done.returncode == 0
    assert "and returns those of the new ones alone. If its caller does not join them, this is cache.new_only" in notes(
        report
    )


def test_a_place_that_must_be_told_and_a_result_without_a_cache_leave_it_untried(graded):
    _, told = graded(HANDED_BACK, ("use_cache=False)", "use_cache=False, cache_position=None)"))
    _, silent = graded(HANDED_BACK, ("            return out, (k, v)\n", "            return out\n"))

    assert "Its cache is not tried" in notes(told)
    assert "its call hands back no keys that the next call could take" in notes(silent)


def test_a_number_of_earlier_tokens_is_passed(graded):
    """The mask is made of it: without it, a new token would see the first one alone."""
    edits = (
        ("use_cache=False)", "use_cache=False, position_offset: int = 0)"),
        ("triu(k.size(2) - T + 1)", "triu(position_offset + 1)"),
    )
    done, report = graded(HANDED_BACK, *edits)

    assert done.returncode == 0
    assert "With its cache, with 2 new tokens in a call and with one, it gives the same" in notes(report)


def test_the_flags_of_a_wrong_cache_give_the_same_report(run, graded):
    _, report = graded(HANDED_BACK, ("return out, (k, v)", "return out, layer_past or (k, v)"))
    flags = [part for flag in report["reading"]["flags"] for part in ("--read", flag)]
    again = json.loads(run("grade", "mine.py", "--kata", report["kata"], *flags, "--json").stdout)

    assert (again["reading"], again["diagnosis"]) == (report["reading"], report["diagnosis"])


def test_the_mask_of_one_head_is_graded_as_a_kata_that_has_one(graded, run):
    right, wrong = graded(ONE_HEAD), graded(ONE_HEAD, ("-1e9", "1e-6"))

    assert right[0].returncode == 0
    assert "With its mask it is right too, as mha (--kata mha shows it)" in notes(right[1])
    assert wrong[0].returncode == 1
    assert (wrong[1]["kata"], ids(wrong[1])) == ("mha", {"mask.zero_fill"})
    assert (
        "SelfAttention is right without a mask, as self_attention. With its mask, as mha, it is not:" in wrong[0].stderr
    )
    shown = run("grade", "mine.py").stdout
    assert re.search(r"--kata mha\s+--class\s+SelfAttention", shown)


CROSS = """
class CrossAttention(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads, self.size = n_heads, dim // n_heads
        self.to_q, self.to_k, self.to_v, self.out = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x, context):
        B, T, E = x.shape
        q, k, v = (f.view(B, -1, self.n_heads, self.size).transpose(1, 2) for f in
                   (self.to_q(x), self.to_k(context), self.to_v(context)))
        weights = (q @ k.mT / self.size**0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(B, T, E))
"""


def test_another_attention_of_the_file_has_a_note_and_leaves_the_verdict(graded, run):
    both = HANDED_BACK.replace("class Attention", "class SelfAttention") + CROSS
    right = graded(both)
    wrong = graded(both, (" / self.size**0.5).softmax", ").softmax"))
    named = run("grade", "mine.py", "--class", "SelfAttention", "--json")

    assert right[0].returncode == wrong[0].returncode == 0
    assert "CrossAttention, also in this file, is right too, as cross_attention" in right[1]["notes"]
    said = (
        "CrossAttention, also in this file, is not right: scale.missing. --kata cross_attention --class CrossAttention"
    )
    assert any(note.startswith(said) for note in wrong[1]["notes"])
    assert not any("CrossAttention" in note for note in json.loads(named.stdout)["notes"])


OBJECTS = {
    "an object": (
        """
class KVCache:
    def __init__(self):
        self.keys, self.values = [], []

    def update(self, k, v, layer_idx=0):
        if len(self.keys) <= layer_idx:
            self.keys.append(k)
            self.values.append(v)
        else:
            self.keys[layer_idx] = torch.cat([self.keys[layer_idx], k], dim=2)
            self.values[layer_idx] = torch.cat([self.values[layer_idx], v], dim=2)
        return self.keys[layer_idx], self.values[layer_idx]
""",
        "k, v = layer_past.update(k, v)",
    ),
    "one with sizes": (
        """
class KVCache:
    def __init__(self, max_batch_size: int, max_seq_len: int, n_heads: int, head_dim: int):
        self.k = torch.zeros(max_batch_size, n_heads, max_seq_len, head_dim)
        self.v = torch.zeros(max_batch_size, n_heads, max_seq_len, head_dim)
        self.filled = 0

    def update(self, k, v):
        end = self.filled + k.shape[2]
        self.k[: len(k), :, self.filled : end], self.v[: len(k), :, self.filled : end] = k, v
        self.filled = end
        return self.k[: len(k), :, :end], self.v[: len(k), :, :end]
""",
        "k, v = layer_past.update(k, v)",
    ),
    "a dict": (
        "",
        'k = torch.cat([layer_past["k"], k], dim=2) if "k" in layer_past else k\n'
        '            v = torch.cat([layer_past["v"], v], dim=2) if "v" in layer_past else v\n'
        '            layer_past["k"], layer_past["v"] = k, v',
    ),
    "a dict of None": (
        "",
        'if layer_past["k"] is not None:\n'
        '                k, v = torch.cat([layer_past["k"], k], dim=2), torch.cat([layer_past["v"], v], dim=2)\n'
        '            layer_past["k"], layer_past["v"] = k, v',
    ),
}
JOINED = """k = torch.cat([layer_past[0], k], dim=2)
            v = torch.cat([layer_past[1], v], dim=2)"""


@pytest.mark.parametrize("kind", OBJECTS)
def test_a_cache_that_is_filled_in_place_is_made_first(kind, graded):
    above, joined = OBJECTS[kind]
    edits = (
        (JOINED, joined),
        ("        if use_cache:\n            return out, (k, v)\n", ""),
        ("layer_past=None, use_cache=False", "layer_past=None"),
    )
    right = graded(above + HANDED_BACK, *edits)
    wrong = graded(above + HANDED_BACK, *edits, ("triu(k.size(2) - T + 1)", "triu(1)"))

    assert right[0].returncode == 0
    assert "With its cache, with 2 new tokens in a call and with one, it gives the same" in notes(right[1])
    assert wrong[0].returncode == 1
    assert ids(wrong[1]) == {"cache.top_left"}


def test_a_cache_that_nothing_reads_is_no_cache(run, folder):
    """What the call returns beside its output are its weights, and no keys."""
    returned = "        if use_cache:\n            return out, (k, v)\n        return out\n"
    unread = HANDED_BACK.replace(", use_cache=False", "").replace(returned, "        return out, weights\n")
    unread = re.sub(r"(?m)^        if layer_past is not None:\n(?:            .*\n)+", "", unread)
    assert unread.count("layer_past") == 1
    (folder / "mine.py").write_text(HEAD + unread)

    done = run("grade", "mine.py")

    assert done.returncode == 0, done.stdout
    assert "(layer_past)" in done.stdout
