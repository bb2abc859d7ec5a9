"""Classes that must be given keys and values, and compute with the query alone: as self-attention they would be right."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.readings.pairs import right_and_wrong, told
from tests.readings.test_kinds import HEAD

# As a replacement of torch's own attention, with time first; the weight of all three layers meets the query.
FUSED = """
class Replacement(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.in_weight = nn.Parameter(torch.empty(3 * embed_dim, embed_dim))
        self.in_bias = nn.Parameter(torch.zeros(3 * embed_dim))
        self.out = nn.Linear(embed_dim, embed_dim)
        nn.init.xavier_uniform_(self.in_weight)

    def forward(self, query, key, value):
        # query: (L, N, E), key and value: (S, N, E)
        (length, samples, width), heads = query.shape, self.num_heads
        q, k, v = F.linear(query, self.in_weight, self.in_bias).chunk(3, dim=-1)
        q = q.reshape(length, samples * heads, -1).transpose(0, 1)
        k, v = (one.reshape(key.size(0), samples * heads, -1).transpose(0, 1) for one in (k, v))
        weights = torch.softmax(q @ k.transpose(1, 2) / (width // heads) ** 0.5, dim=-1)
        return self.out((weights @ v).transpose(0, 1).reshape(length, samples, width))
"""
CALLER = """
class Encoder(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attend = Replacement(width, heads)

    def forward(self, tokens, memory):
        return self.attend(tokens, GIVEN)
"""


def test_keys_and_values_that_change_nothing_are_a_mistake(shared_engine):
    report = shared_engine.grade("mha", (HEAD + FUSED).encode(), attempt="mine.py", reads=True)
    flags = tuple(report.reading["flags"])
    typed_back = shared_engine.grade("mha", (HEAD + FUSED).encode(), attempt="mine.py", reads=True, flags=flags)
    [failed] = [one for one in report.findings if one.outcome == "failed" and one.tier == "core"]

    assert (report.outcome, told(report)) == ("failed", {"context.ignored"})
    assert failed.property == "values"
    assert "other numbers for key and value change nothing" in failed.message
    assert typed_back.diagnosis == report.diagnosis


def test_who_says_that_it_is_for_one_sequence_is_believed(shared_engine):
    report = shared_engine.grade("mha", (HEAD + FUSED).encode(), attempt="mine.py", reads=True, flags=("square=yes",))

    assert report.outcome == "passed"
    assert "square=yes" in report.reading["flags"]
    assert "only as many queries as keys" in report.reading["departures"]


@pytest.mark.parametrize(("given", "outcome"), [("tokens, tokens", "passed"), ("memory, memory", "failed")])
def test_callers_that_give_one_sequence_three_times_say_that_it_is_meant(given, outcome, shared_engine):
    text = FUSED + CALLER.replace("GIVEN", given)
    report = shared_engine.grade(
        "mha", (HEAD + text).encode(), attempt="mine.py", reads=True, flags=("entry=Replacement",)
    )

    assert report.outcome == outcome


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("class Replacement", "class ReplacementOfSelfAttention"),
        ("query, key, value)", "query, key=None, value=None)"),
    ],
    ids=["by its name", "by its defaults"],
)
def test_a_class_for_one_sequence_may_take_more_than_it_reads(old, new, shared_engine):
    text = FUSED.replace(old, new).replace("key.size(0)", "query.size(0)")
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed"


def test_a_switch_of_the_constructor_may_decide_whether_keys_are_used(shared_engine):
    # As in BART: one class for self-attention and for the attention to an encoder.
    text = """
class Attention(nn.Module):
    def __init__(self, embed_dim, num_heads, encoder_decoder_attention=False):
        super().__init__()
        self.heads, self.encoder_decoder = num_heads, encoder_decoder_attention
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(embed_dim, embed_dim) for _ in range(4))

    def forward(self, query, key):
        length, samples, width = query.shape
        if self.encoder_decoder:
            k, v = self.k_proj(key), self.v_proj(key)
        else:
            k, v = self.k_proj(query), self.v_proj(query)
        q = self.q_proj(query) * (width // self.heads) ** -0.5
        q, k, v = (one.reshape(len(one), samples * self.heads, -1).transpose(0, 1) for one in (q, k, v))
        context = torch.bmm(F.softmax(torch.bmm(q, k.transpose(1, 2)), dim=-1), v)
        return self.out_proj(context.transpose(0, 1).reshape(length, samples, width))
"""
    right, wrong = right_and_wrong(shared_engine, "mha", text, " * (width // self.heads) ** -0.5", "")

    assert right.reading["entry"] == "Attention"
    assert told(wrong) == {"scale.missing"}


def test_values_alone_that_change_nothing_are_named(shared_engine):
    separate = FUSED.replace(
        "q, k, v = F.linear(query, self.in_weight, self.in_bias).chunk(3, dim=-1)",
        "weights, biases = self.in_weight.chunk(3), self.in_bias.chunk(3)\n"
        "        q, k, v = (F.linear(one, *both) for one, both in zip((query, key, key), zip(weights, biases)))",
    )
    report = shared_engine.grade("mha", (HEAD + separate).encode(), attempt="mine.py", reads=True)
    [message] = [one.message for one in report.findings if one.outcome == "failed" and one.tier == "core"]

    assert told(report) == {"context.ignored"}
    assert "other numbers for value change nothing" in message


def test_the_command_says_so_without_a_flag(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(HEAD + FUSED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "attn_kata", "grade", str(mine)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1, done.stdout + done.stderr
    assert "context.ignored" in done.stdout
    assert "--kata mha --read square=yes" in " ".join(done.stdout.split())


def test_what_the_command_says_to_type_makes_it_right(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(HEAD + FUSED, encoding="utf-8")
    way = ["--kata", "mha", "--read", "square=yes"]
    done = subprocess.run(
        [sys.executable, "-m", "attn_kata", "grade", str(mine), *way],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
