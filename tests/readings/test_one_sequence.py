"""Code for one sequence, (T, E), and code for a batch that would be right for one sequence only."""

from __future__ import annotations

import pytest
from tests.readings.test_kinds import HEAD

MODULE = """
class Head(nn.Module):
    def __init__(self, width, head_size, block_size):
        super().__init__()
        self.key = nn.Linear(width, head_size, bias=False)
        self.query = nn.Linear(width, head_size, bias=False)
        self.value = nn.Linear(width, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, x):
        k, q, v = self.key(x), self.query(x), self.value(x)
        T = x.shape[-2]
        scores = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        scores = scores.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        return F.softmax(scores, dim=1) @ v
"""
FUNCTION = """
def attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return torch.softmax(scores, dim=1) @ v
"""
SAID = {"self_attention": ("x):\n", "x):  # x: (T, width)\n"), "sdpa": ("v):\n", "v):  # each is (seq_len, d_k)\n")}


@pytest.mark.parametrize(
    ("slug", "text", "mistake"),
    [("self_attention", MODULE, "softmax.query_axis"), ("sdpa", FUNCTION, "softmax.head_axis")],
)
def test_a_softmax_along_dimension_1_is_right_only_where_words_say_that_there_is_no_batch(
    slug, text, mistake, shared_engine
):
    of_batch = shared_engine.grade(slug, (HEAD + text).encode(), attempt="mine.py", reads=True)
    of_one = shared_engine.grade(slug, (HEAD + text.replace(*SAID[slug])).encode(), attempt="mine.py", reads=True)

    assert [each.id for one in of_batch.diagnosis for each in one.mistakes] == [mistake]
    assert any("--read dims=2" in note for note in of_batch.reading["notes"])
    assert of_one.outcome == "passed"


T_OF_KEYS = MODULE.replace("k.transpose(-2, -1)", "k.T").replace("dim=1", "dim=-1")


OF_BATCH = ["layout.T_of_batch"]


@pytest.mark.parametrize(
    ("words", "mistakes"),
    [
        ("", []),
        ('"""x: (T, width)"""', []),
        ('"""x: (batch_size, T, width)"""', OF_BATCH),
        (
            '"""\n        Args:\n            x (Tensor): inputs of shape (batch_size, seq_length, d_in).\n        """',
            OF_BATCH,
        ),
        ('"""x: one sequence; a batch (B, T, width) comes later"""', []),
        ("# called for each sequence of a batch (b, t, e)", []),
        ('"""x: (T, width), not (B, T, width)"""', []),
    ],
)
def test_words_that_say_that_there_is_a_batch_are_believed(words, mistakes, shared_engine):
    text = T_OF_KEYS.replace("x):\n", f"x):\n        {words}\n")
    report = shared_engine.grade("self_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert [each.id for one in report.diagnosis for each in one.mistakes] == mistakes
    assert report.outcome == ("failed" if mistakes else "passed")


FIXED = "context_length, context_size = 64, 16\n" + MODULE.replace(", block_size):", "):").replace(
    "block_size", "context_size"
).replace("[:T, :T]", "[:context_size, :context_size]")


@pytest.mark.parametrize(("axis", "outcome"), [("dim=-1", "passed"), ("dim=1", "failed")])
def test_a_size_that_cuts_a_triangle_is_the_length_whatever_its_name(axis, outcome, shared_engine):
    report = shared_engine.grade(
        "self_attention", (HEAD + FIXED.replace("dim=1", axis)).encode(), attempt="mine.py", reads=True
    )

    assert report.outcome == outcome
    assert "context_size = L" in next(line["value"] for line in report.reading["lines"] if line["what"] == "built with")
    assert [each.id for one in report.diagnosis for each in one.mistakes] == ["softmax.query_axis"] * (axis == "dim=1")


FOUR = """
def attention(q, k, v, mask=None):
    batch, heads, length, d_k = k.size()
    scores = q @ k.transpose(2, 3) / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    return F.softmax(scores, dim=1) @ v
"""


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ("dim=1", "dim=1", "softmax.head_axis"),
        (", dim=1", "", "softmax.no_dim"),
        ("dim=1", "dim=2", "softmax.query_axis"),
        ("dim=1", "dim=3", ""),
    ],
)
def test_a_wrong_axis_of_code_that_takes_four_dimensions_is_named(old, new, mistake, shared_engine):
    report = shared_engine.grade("sdpa", (HEAD + FOUR.replace(old, new)).encode(), attempt="mine.py", reads=True)

    assert "dims=4" in report.reading["flags"]
    assert [each.id for one in report.diagnosis for each in one.mistakes] == [mistake] * bool(mistake)


FOLDS_A_BATCH = """
class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h, self.d = n_heads, width // n_heads
        self.w_q, self.w_k = nn.Linear(width, width), nn.Linear(width, width)
        self.w_v, self.w_o = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (w(x).reshape(-1, self.h, self.d).transpose(0, 1) for w in (self.w_q, self.w_k, self.w_v))
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d), dim=-1)
        return self.w_o((weights @ v).transpose(0, 1).reshape(-1, self.h * self.d))
"""


def test_code_that_folds_a_batch_is_told_that_it_is_right_for_one_sequence(shared_engine):
    source = (HEAD + FOLDS_A_BATCH).encode()
    of_batch = shared_engine.grade("mha", source, attempt="mine.py", reads=True)
    single = shared_engine.grade("mha", source, attempt="mine.py", reads=True, flags=("dims=2",))

    assert of_batch.outcome != "passed"
    assert any("--read dims=2" in note for note in of_batch.reading["notes"])
    assert single.outcome == "passed"


BY_T = """
def attend(Q, K, V, mask=None):
    d_k = K.size(-1)
    scores = torch.matmul(Q, K.T) / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    return torch.matmul(scores.softmax(dim=-1), V)
"""


def test_code_that_reverses_all_dimensions_is_told_what_that_does_to_a_batch(shared_engine):
    report = shared_engine.grade("sdpa", (HEAD + BY_T).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed", report.ungraded_because
    assert any("this is layout.T_of_batch" in note for note in report.reading["notes"])


def test_it_fails_where_its_words_speak_of_a_batch(shared_engine):
    text = BY_T.replace("K.size(-1)", "K.size(-1)  # (batch_size, key length, d_k)")
    report = shared_engine.grade("sdpa", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert [each.id for one in report.diagnosis for each in one.mistakes] == ["layout.T_of_batch"]
