"""Code by other names with a mistake that nobody knows: how far it is right is said, and decides what can be judged."""

from __future__ import annotations

import pytest
from tests.readings.pairs import told
from tests.readings.test_kinds import HEAD

from attn_kata.engine.client import Engine
from attn_kata.report.model import Report

ATTEND = """
class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h, self.d = n_heads, width // n_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (w(x).view(B, T, self.h, self.d).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        scores = q @ k.transpose(-2, -1)
        scores = scores / self.d**0.5
        weights = scores.softmax(dim=-1)
        context = weights @ v
        return self.w_o(context.transpose(1, 2).reshape(B, T, E))
"""
SPLIT = "w(x).view(B, T, self.h, self.d).transpose(1, 2)"
MERGE = "context.transpose(1, 2).reshape(B, T, E)"
SCALE = "scores / self.d**0.5"
SOFTMAX = "weights = scores.softmax(dim=-1)"
MIX = "context = weights @ v"
OUTPUT = "return self.w_o("
TWICE = "return self.w_o(self.w_o(context.transpose(1, 2).reshape(B, T, E))) if B else ("


def graded(engine: Engine, *edits: tuple[str, str]) -> Report:
    text = ATTEND
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)


def test_the_code_is_right(shared_engine):
    assert graded(shared_engine).passed


@pytest.mark.parametrize(
    "edit",
    [
        (MIX, "context = weights @ v.flip(2).cumsum(2)"),
        (MIX, "context = weights @ v.cumsum(2)"),
    ],
)
def test_code_whose_weights_are_right_is_read_right_and_fails(shared_engine, edit):
    report = graded(shared_engine, edit)

    assert report.outcome == "failed"
    assert any("The context is the first that is wrong" in note for note in report.notes), report.notes


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ((SCALE, SCALE + " - torch.arange(T) / 9"), "the scores are right"),  # as positions inside have it
        (
            (SOFTMAX, "scores = scores - torch.arange(T) / 9\n        " + SOFTMAX),
            "The weights are the first that are wrong",
        ),
        ((SOFTMAX, SOFTMAX + "\n        weights = weights**2"), "q, k, v, the scores and the weights are right"),
        ((OUTPUT, TWICE), "All is right up to the output"),  # as what follows an attention in a block
    ],
)
def test_where_it_may_be_another_kind_it_is_not_judged_and_how_far_it_is_right_is_said(shared_engine, edit, said):
    report = graded(shared_engine, edit)

    assert report.outcome == "ungraded"
    assert said in (report.ungraded_because or "")
    assert "--read KEY=VALUE" in (report.ungraded_because or "")


@pytest.mark.parametrize(
    ("edits", "id"),
    [
        ([(SCALE, "scores / (T + 1) ** 0.5")], "scale.other"),
        ([(SCALE, "scores / E**0.5"), (OUTPUT, TWICE)], "scale.embed_dim"),
        ([(SOFTMAX, "weights = scores.softmax(dim=-2)"), (OUTPUT, TWICE)], "softmax.query_axis"),
    ],
)
def test_a_mistake_that_is_certain_is_named(shared_engine, edits, id):
    report = graded(shared_engine, *edits)

    assert told(report) == {id}, report.ungraded_because


def test_a_split_that_is_certain_is_named_though_every_call_raises(shared_engine):
    report = graded(shared_engine, (SPLIT, "w(x).view(B, self.h, T, self.d)"), (MERGE, "context.view(B, T + 1, E)"))

    assert told(report) == {"split.no_transpose", "layout.sizes"}, report.ungraded_because
    assert any("It ends before the merged heads are right" in note for note in report.notes)


def test_four_mistakes_are_named_one_after_the_other(shared_engine):
    report = graded(
        shared_engine,
        (SPLIT, "w(x).view(B, self.h, T, self.d)"),
        ("k.transpose(-2, -1)", "k.view(B, self.h, self.d, T)"),
        (SCALE, "scores / E**0.5"),
        (MERGE, "context.view(B, T, E)"),
    )

    assert told(report) == {"split.no_transpose", "score.reshaped", "scale.embed_dim", "merge.no_transpose"}


def test_what_raises_after_right_weights_fails(shared_engine):
    report = graded(shared_engine, (MERGE, "context.view(B, T + 1, E)"))

    assert report.outcome == "failed"
    assert told(report) == {"layout.sizes"}
    assert any("weights and the context are right (line" in note for note in report.notes), report.notes


def test_what_raises_before_its_weights_is_not_judged(shared_engine):
    report = graded(shared_engine, (SCALE, "scores.view(B, T + 1, E)"))

    assert report.outcome == "ungraded"


OF_SELF = "for w in (self.w_q, self.w_k, self.w_v))"
OF_EACH = "for w, one in zip((self.w_q, self.w_k, self.w_v), (query, key, value)))\n        k, v = v, k"
OF_THREE = (
    ATTEND.replace("forward(self, x)", "forward(self, query, key, value, mask=None)")
    .replace("x.shape", "query.shape")
    .replace("w(x).view(B, T,", "w(one).view(B, -1,")
    .replace(OF_SELF, OF_EACH)
)
OF_THREE = OF_THREE.replace(
    "        weights =",
    "        scores = scores if mask is None else scores.masked_fill(mask == 0, -1e9)\n        weights =",
)


def test_layers_by_name_in_another_order_are_named_beside_a_result_of_another_shape(shared_engine):
    text = OF_THREE.replace(f"self.w_o({MERGE})", f"self.w_o({MERGE})[:, None]")
    assert text.count("[:, None]") == text.count("k, v = v, k") == 1

    report = shared_engine.grade("qkv_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert told(report) == {"project.exchanged"}, report.ungraded_because
    assert any("apart from what is named, all is right up to the output" in note for note in report.notes)


ONE_FOR_ALL = ("for w in (self.w_q, self.w_k, self.w_v))", "for w in (self.w_q, self.w_q, self.w_k))")


def test_a_known_mistake_beside_an_unknown_one_fails_where_q_and_k_are_right(shared_engine):
    report = graded(shared_engine, ONE_FOR_ALL)

    assert report.outcome == "failed"
    assert told(report) == {"project.query_for_key"}
    assert any("v is the first that is wrong" in note for note in report.notes), report.notes


LINES = [
    ("x.transpose(0, 1)", "line {line} has no effect. `x.transpose(0, 1)` gives a new tensor, and nothing uses it"),
    ("torch.transpose(x, 0, 1)", "line {line} has no effect. `torch.transpose(x, 0, 1)` gives"),
]
TINY = "x = x.masked_fill(x == 0, -1e-9)"
CONSTRUCTOR = ("self.h, self.d =", "self.table = torch.load('weights.pt')\n        self.h, self.d =")


def with_line(line: str, *edits: tuple[str, str]) -> str:
    text = HEAD + ATTEND
    for old, new in (("x.shape\n", f"x.shape\n        {line}\n"), *edits):
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(("line", "said"), LINES)
def test_a_line_without_effect_is_said_of_right_code_and_fails_code_that_cannot_be_read(shared_engine, line, said):
    right, unread = with_line(line), with_line(line, CONSTRUCTOR)
    number = 1 + right[: right.index(line)].count("\n")

    passed = shared_engine.grade("mha", right.encode(), attempt="mine.py", reads=True)
    failed = shared_engine.grade("mha", unread.encode(), attempt="mine.py", reads=True)

    assert passed.outcome == "passed", passed.ungraded_because
    assert any(said.format(line=number) in note for note in passed.notes), passed.notes
    assert failed.outcome == "failed"
    assert [[one.source_line for one in found.mistakes] for found in failed.diagnosis] == [[line]]
    assert told(failed) == {"python.unused_result"}


def test_code_that_cannot_be_read_fails_where_a_line_is_wrong_however_it_is_read(shared_engine):
    text = with_line(TINY, CONSTRUCTOR)

    report = shared_engine.grade("mha", text.encode(), attempt="mine.py", reads=True)

    assert report.outcome == "failed"
    assert "weights.pt" in report.ungraded_because
    assert not report.findings
    assert [[(one.id, one.source_line) for one in found.mistakes] for found in report.diagnosis] == [
        [("mask.zero_fill", TINY)]
    ]


@pytest.mark.parametrize(
    "line", ["x.transpose_(0, 1)", "y = x.transpose(0, 1)", "print(x.transpose(0, 1))", "x.size()"]
)
def test_what_has_an_effect_is_not_said(shared_engine, line):
    text = with_line(line, CONSTRUCTOR)
    other = "\n\nclass Other(nn.Module):\n    def forward(self, x):\n        x.flatten()\n        return x\n"

    report = shared_engine.grade("mha", (text + other).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"
    assert not report.notes


@pytest.mark.parametrize(("line", "id"), [(LINES[0][0], "python.unused_result"), (TINY, "mask.zero_fill")])
def test_of_code_that_fails_without_a_known_mistake_such_a_line_is_named(shared_engine, line, id):
    report = shared_engine.grade(
        "mha", with_line(line, (SCALE, SCALE + " - torch.arange(T) / 9")).encode(), attempt="mine.py", reads=True
    )

    assert told(report) == {id}, report.ungraded_because


WITH_MASK = """
class Attend(nn.Module):
    def __init__(self, width, size):
        super().__init__()
        self.w_q, self.w_k, self.w_v = (nn.Linear(width, size) for _ in range(3))

    def forward(self, x, mask):
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, 1e-6)
        weights = scores.softmax(dim=-1)
        return weights @ v
"""


def test_such_a_line_is_said_where_the_reading_leaves_the_mask_out(shared_engine):
    report = shared_engine.grade("self_attention", (HEAD + WITH_MASK).encode(), attempt="mine.py", reads=True)

    assert report.passed
    assert any("gives hidden keys a score of almost 0" in note for note in report.notes), report.notes


def test_weights_that_are_almost_0_are_no_scores(shared_engine):
    text = WITH_MASK.replace("        if mask", "        weights = scores.softmax(dim=-1)\n        if mask")
    text = text.replace("scores = scores.masked_fill", "weights = weights.masked_fill").replace(
        "6)\n        weights = scores.softmax(dim=-1)", "6)"
    )
    assert text.count("softmax") == 1

    report = shared_engine.grade("self_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.passed
    assert not report.notes


READY_MADE = "F.scaled_dot_product_attention(q, k, v, dropout_p={})"


@pytest.mark.parametrize(
    ("rate", "is_said"),
    [("self.p", True), ("self.p if self.training else 0.0", False), ("0.0", False), ("B / 1000", False)],
)
def test_a_path_with_ready_made_attention_that_drops_in_eval_is_said(shared_engine, rate, is_said):
    line = f"if self.fast:\n            return self.w_o({READY_MADE.format(rate)}.transpose(1, 2).reshape(B, T, E))"
    text = with_line(
        "pass",
        (SCALE, f"{SCALE}\n        {line}"),
        ("self.h, self.d =", "self.fast, self.p = False, 0.1; self.h, self.d ="),
    )

    report = shared_engine.grade("mha", text.encode(), attempt="mine.py", reads=True)

    assert report.passed, report.ungraded_because
    assert [
        f"line {1 + text[: text.index('return self.w_o(F.')].count(chr(10))} drops weights" in one
        for one in report.notes
    ] == ([True] * is_said)


PATH = """
class Split(nn.Module):
    def __init__(self, width, n_heads, head_dim):
        super().__init__()
        self.n_heads, self.head_dim = n_heads, head_dim
        self.scale = head_dim ** -0.5
        self.table = torch.load("weights.pt")
        self.w_q, self.w_k = nn.Linear(width, width), nn.Linear(width, width)
        self.w_v, self.w_o = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        B, T, E = x.shape
        q = self.w_q(x).view(B, T, self.n_heads, self.head_dim).transpose(1, 2)
        k = self.w_k(x).view(B, T, self.n_heads, self.head_dim).transpose(1, 2)
        v = self.w_v(x).view(B, T, self.n_heads, self.head_dim).transpose(1, 2)
        weights = F.softmax(q @ k.transpose(-2, -1) * self.scale, dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).reshape(B, T, E))
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("k = self.w_k(x).view(B, T, self.n_heads, self.head_dim).transpose(1, 2)", None, "split.no_transpose"),
        ("self.scale = head_dim ** -0.5", "self.scale = n_heads ** -0.5", "scale.heads"),
        ("self.scale = head_dim ** -0.5", "self.scale = (width // n_heads) ** -0.5", ""),
        (
            "v = self.w_v(x)",
            "v = self.w_v(x).transpose(1, 2).reshape(B, self.n_heads, self.head_dim, T).mT\n        v = self.w_v(x)",
            "",
        ),
    ],
)
def test_a_scale_of_heads_and_heads_before_time_are_named_in_code_that_cannot_be_read(shared_engine, old, new, said):
    new = new or "k = self.w_k(x).view(B, self.n_heads, -1, self.head_dim)"
    assert PATH.count(old) == 1
    text = HEAD + PATH.replace(old, new)

    report = shared_engine.grade("mha", text.encode(), attempt="mine.py", reads=True)

    assert report.outcome == ("failed" if said else "ungraded")
    line = 1 + text[: text.index(new)].count("\n")
    mistakes = [(one.id, one.line) for found in report.diagnosis for one in found.mistakes]
    assert mistakes == [(said, line)] * bool(said), report.notes
