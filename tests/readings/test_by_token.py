"""Code that takes one token at a time and keeps the keys of earlier ones is called for each token in turn."""

from __future__ import annotations

import pytest
from tests.readings.pairs import told
from tests.readings.test_kinds import HEAD

from attn_kata.engine.client import Engine
from attn_kata.readings import inference

# In the style of the best-known lecture on Llama: the cache is a plain tensor, and the angles come from the caller.
ONE_TOKEN = """
def turned(x, freqs_complex):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * freqs_complex[None, :, None]).reshape(*x.shape).type_as(x)

def apply_rotary_embeddings(x, freqs_complex):
    return turned(x, freqs_complex)

class SelfAttention(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.n_kv_heads, self.n_heads_q = args.n_kv_heads, args.n_heads
        self.n_rep, self.head_dim = args.n_heads // args.n_kv_heads, args.dim // args.n_heads
        self.wq = nn.Linear(args.dim, args.n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(args.dim, self.n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(args.dim, self.n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(args.n_heads * self.head_dim, args.dim, bias=False)
        self.cache_k = torch.zeros((args.max_batch_size, args.max_seq_len, self.n_kv_heads, self.head_dim))
        self.cache_v = torch.zeros((args.max_batch_size, args.max_seq_len, self.n_kv_heads, self.head_dim))

    def forward(self, x, start_pos: int, freqs_complex):
        B, T, _ = x.shape
        assert T == 1, "one token at a time"
        xq = self.wq(x).view(B, T, self.n_heads_q, self.head_dim)
        xk, xv = (w(x).view(B, T, self.n_kv_heads, self.head_dim) for w in (self.wk, self.wv))
        xq, xk = apply_rotary_embeddings(xq, freqs_complex), apply_rotary_embeddings(xk, freqs_complex)
        self.cache_k[:B, start_pos : start_pos + T] = xk
        self.cache_v[:B, start_pos : start_pos + T] = xv
        keys, values = self.cache_k[:B, : start_pos + T], self.cache_v[:B, : start_pos + T]
        keys, values = (part.repeat_interleave(self.n_rep, dim=2).transpose(1, 2) for part in (keys, values))
        weights = torch.softmax(xq.transpose(1, 2) @ keys.transpose(2, 3) / math.sqrt(self.head_dim), dim=-1)
        return self.wo((weights @ values).transpose(1, 2).reshape(B, T, -1))
"""


def graded(engine: Engine, text: str, *flags: str):
    return engine.grade("gqa", (HEAD + text).encode(), attempt="mine.py", reads=True, flags=flags)


def test_it_is_read_as_causal_and_typed_back_gives_the_same(shared_engine: Engine) -> None:
    report = graded(shared_engine, ONE_TOKEN)

    assert report.passed, report.ungraded_because
    assert {"one token at a time", "always causal"} <= set(report.reading["departures"])
    assert any("called for each token in turn" in note for note in report.reading["notes"])
    assert "by_token=yes" in report.reading["flags"]
    assert not report.attempt_output  # torch warns of complex half precision, of which the code has no line
    again = graded(shared_engine, ONE_TOKEN, *report.reading["flags"])
    assert (again.outcome, again.reading["flags"]) == (report.outcome, report.reading["flags"])


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        (" / math.sqrt(self.head_dim)", "", "scale.missing"),
        ("dim=-1)\n        return", "dim=1)\n        return", "softmax.head_axis"),
        ("] = xv\n", "] = xk\n", "project.key_for_value"),
    ],
)
def test_its_mistakes_are_named(old: str, new: str, mistake: str, shared_engine: Engine) -> None:
    assert ONE_TOKEN.count(old) == 1
    report = graded(shared_engine, ONE_TOKEN.replace(old, new))

    assert report.outcome == "failed"
    assert mistake in told(report)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "self.cache_k[:B, : start_pos + T], self.cache_v[:B, : start_pos + T]",
            "self.cache_k[:B, start_pos :][:, :T], xv",
        ),
        ("[:B, : start_pos + T]", "[:B, : start_pos + T + 1]"),
    ],
)
def test_keys_that_are_not_those_up_to_the_token_do_not_pass(old: str, new: str, shared_engine: Engine) -> None:
    """Only its own key; or one more, which is 0."""
    report = graded(shared_engine, ONE_TOKEN.replace(old, new))

    assert report.outcome != "passed"


def test_what_torch_warns_of_in_the_attempt_is_not_printed_anew_for_each_reading(shared_engine: Engine) -> None:
    text = ONE_TOKEN.replace("math.sqrt(self.head_dim), dim=-1)", "math.sqrt(self.head_dim))").replace(
        "torch.softmax", "F.softmax"
    )
    report = graded(shared_engine, text)

    assert 1 <= report.attempt_output.count("Implicit dimension choice") <= 3  # the filters change twice in a grading


def test_code_that_takes_whole_sequences_is_not_called_token_by_token(shared_engine: Engine) -> None:
    text = ONE_TOKEN.replace('        assert T == 1, "one token at a time"\n', "")
    report = graded(shared_engine, text)

    assert report.passed, report.ungraded_because
    assert "by_token=yes" not in report.reading["flags"]


@pytest.mark.parametrize("switch", ["no_grad", "inference_mode"])
def test_code_for_inference_may_compute_no_gradients(switch: str, shared_engine: Engine) -> None:
    text = ONE_TOKEN.replace("    def forward(", f"    @torch.{switch}()\n    def forward(")
    right, wrong = (graded(shared_engine, each) for each in (text, text.replace(" / math.sqrt(self.head_dim)", "")))

    assert right.passed, right.ungraded_because
    assert "scale.missing" in told(wrong)


TWO_COUNTS = """
class Grouped(nn.Module):
    def __init__(self, dim, n_q, n_kv):
        super().__init__()
        self.n_q, self.n_kv, self.size = n_q, n_kv, dim // n_q
        self.wq, self.wo = nn.Linear(dim, n_q * self.size), nn.Linear(dim, dim)
        self.wk, self.wv = nn.Linear(dim, n_kv * self.size), nn.Linear(dim, n_kv * self.size)

    def forward(self, x, past=None):
        B, T, _ = x.shape
        q = self.wq(x).view(B, T, self.n_q, self.size).transpose(1, 2)
        k, v = (w(x).view(B, T, self.n_kv, self.size).transpose(1, 2) for w in (self.wk, self.wv))
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        k, v = (part.repeat_interleave(self.n_q // self.n_kv, dim=1) for part in (k, v))
        scores = q @ k.transpose(-1, -2) / self.size**0.5
        hidden = ~torch.ones(T, k.size(2), dtype=torch.bool).tril()
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        return self.wo((weights @ v).transpose(1, 2).reshape(B, T, -1)), (k, v)
"""


def test_two_counts_of_heads_are_groups_and_a_cache_that_is_not_tried_is_said(shared_engine: Engine) -> None:
    kata = inference.kata_of((HEAD + TWO_COUNTS).encode()) or ("", "", "")
    right, wrong = (
        graded(shared_engine, TWO_COUNTS.replace("repeat_interleave(self.n_q // self.n_kv, dim=1)", how))
        for how in ("repeat_interleave(self.n_q // self.n_kv, dim=1)", "repeat(1, self.n_q // self.n_kv, 1, 1)")
    )

    assert kata[0] == "gqa"
    assert right.passed, right.ungraded_because
    assert any("Its cache is not tried (past)" in note for note in right.reading["notes"])
    assert told(wrong) == {"group.repeated"}
