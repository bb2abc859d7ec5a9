"""What blocks of well-known models do otherwise than the contract: a departure, said with the mistake that it would be."""

from __future__ import annotations

import pytest
from tests.readings import adapter
from tests.readings.pairs import right_and_wrong, told
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


def test_a_flag_of_the_call_may_make_a_block_causal(shared_engine):
    flagged = (
        ATTEND.replace("def forward(self, x, mask=None):", "def forward(self, x, causal=False):")
        .replace("if mask is not None:", "if causal:")
        .replace("mask == 0", "torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)")
    )
    text = flagged + BLOCK.replace("forward(self, x)", "forward(self, x, causal: bool = False)").replace(
        "self.attend(self.norm1(x))", "self.attend(self.norm1(x), causal=causal)"
    )
    right, wrong = right_and_wrong(shared_engine, "transformer_block", text, " / math.sqrt(self.d)", "")

    assert "block.not_causal" not in " ".join(right.reading["notes"])
    assert told(wrong) == {"scale.missing"}


def test_how_many_times_as_wide_an_mlp_is_may_have_to_be_given(shared_engine):
    text = BLOCK.replace("mlp_dim):", "forward_expansion):").replace("mlp_dim", "forward_expansion * width")
    report = shared_engine.grade("transformer_block", (HEAD + ATTEND + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed", report.ungraded_because
    assert any("forward_expansion=2" in flag for flag in report.reading["flags"])


def test_a_block_that_gives_no_mask_is_not_meant_to_be_causal(shared_engine):
    text = ATTEND + BLOCK.replace("self.attend(self.norm1(x))", "self.attend(self.norm1(x), mask=None)")
    report = shared_engine.grade("transformer_block", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed"
    assert "this is block.not_causal" in " ".join(report.reading["notes"])


def test_a_config_that_says_whether_later_keys_are_hidden_says_yes(shared_engine):
    """As the contract of a block has it; a name of a config that the grader does not know is None."""
    text = adapter.source("block_minimal_gpt")
    for old, new in (
        ("        causal = ", "        self.hides = config.use_causal_mask\n        causal = "),
        ("        att = att.masked_fill(", "        if self.hides:\n            att = att.masked_fill("),
        ("    bias: bool = True\n", "    bias: bool = True\n    use_causal_mask: bool = True\n"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    report = shared_engine.grade("transformer_block", text.encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed"
    assert "not_causal" not in " ".join((*report.reading["flags"], *report.reading["notes"]))


def test_every_convention_changes_the_reference():
    known = contract.of_kata(katas_folder() / "transformer_block")
    source = (katas_folder().parent / "solutions" / "transformer_block.py").read_text()

    assert known is not None
    for name, one in known.conventions.items():
        changed = conventions.reference(source, [one])
        compile(changed, name, "exec")
        assert changed != source


@pytest.mark.parametrize(
    "words", ["bidirectional (unmasked) attention, no causal mask", "NO mask: every patch sees all"]
)
def test_a_block_whose_words_say_that_it_is_not_causal_is_read_so(words, shared_engine):
    unmasked = ATTEND.replace("mask=None):", "):").replace(
        '        if mask is not None:\n            scores = scores.masked_fill(mask == 0, float("-inf"))\n', ""
    )
    text = (
        f"# {words}\n"
        + unmasked
        + BLOCK.replace("class Layer(nn.Module):", f'class Layer(nn.Module):\n    """{words}"""')
    )
    report = shared_engine.grade("transformer_block", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed", [mistake.id for one in report.diagnosis for mistake in one.mistakes]
    assert "this is block.not_causal" in " ".join(report.reading["notes"])


# As a site for practice asks for it: classes inside of the class, no output layer, a dropout rate of its own.
CLASSES_INSIDE = """
class Layer(nn.Module):
    class Heads(nn.Module):
        def __init__(self, width, n_heads):
            super().__init__()
            self.h = n_heads
            self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))

        def forward(self, x):
            q, k, v = (f(x).unflatten(-1, (self.h, -1)).transpose(1, 2) for f in (self.query, self.key, self.value))
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
            scores = scores.masked_fill(scores.new_ones(scores.shape[-2:]).triu(1).bool(), float("-inf"))
            return (F.softmax(scores, dim=-1) @ v).transpose(1, 2).flatten(2)

    class Mlp(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.up, self.down, self.dropout = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), None
            self.dropout = nn.Dropout(0.2)

        def forward(self, x):
            return self.dropout(self.down(F.gelu(self.up(x))))

    def __init__(self, width, n_heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.heads, self.mlp = self.Heads(width, n_heads), self.Mlp(width)

    def forward(self, x):
        x = x + self.heads(self.norm1(x))
        return x + self.mlp(self.norm2(x))
"""


def test_a_block_with_classes_inside_and_no_output_layer_is_graded_and_hides_no_mistake(shared_engine):
    right, wrong = (
        shared_engine.grade("transformer_block", (HEAD + text).encode(), attempt="mine.py", reads=True)
        for text in (CLASSES_INSIDE, CLASSES_INSIDE.replace("x = x + self.heads", "x = self.heads"))
    )
    again = shared_engine.grade(
        "transformer_block",
        (HEAD + CLASSES_INSIDE).encode(),
        attempt="mine.py",
        reads=True,
        flags=tuple(right.reading["flags"]),
    )

    assert right.outcome == again.outcome == "passed", right.ungraded_because
    assert "output.missing" in " ".join(right.reading["notes"])
    assert [mistake.id for one in wrong.diagnosis for mistake in one.mistakes] == ["block.no_residual"]


def test_of_conventions_that_explain_nothing_those_are_taken_under_which_it_is_right_for_the_longest(shared_engine):
    """And a mistake that is certain is named under them."""
    inside = ATTEND.replace("mask=None):", "):").replace(
        '        if mask is not None:\n            scores = scores.masked_fill(mask == 0, float("-inf"))\n', ""
    )
    unknown = inside.replace("(weights @ v)", "(weights @ v.cumsum(2))").replace("math.sqrt(self.d)", "math.sqrt(E)")
    assert unknown.count("cumsum") == unknown.count("sqrt(E)") == 1

    report = shared_engine.grade("transformer_block", (HEAD + unknown + BLOCK).encode(), attempt="mine.py", reads=True)

    assert [one.id for found in report.diagnosis for one in found.mistakes] == ["scale.embed_dim"]
    assert "this is block.not_causal" in " ".join(report.reading["notes"])
    assert "block.post_norm" not in " ".join(report.reading["notes"])


AFTER = BLOCK.replace("x + self.attend(self.norm1(x))", "self.norm1(x + self.attend(x))").replace(
    "x + self.mlp(self.norm2(x))", "self.norm2(x + self.mlp(x))"
)


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ("Post-LN, as in the paper, unlike Pre-LN.", "passed"),
        ("A layer of a transformer.", "passed"),
        ("A Pre-LN layer.", "failed"),
    ],
)
def test_a_norm_after_the_sum_is_no_mistake_unless_the_words_say_otherwise(words, outcome, shared_engine):
    assert AFTER != BLOCK
    text = ATTEND + AFTER.replace("class Layer(nn.Module):", f'class Layer(nn.Module):\n    """{words}"""')
    report = shared_engine.grade("transformer_block", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == outcome
    assert ("block.post_norm" in [one.id for found in report.diagnosis for one in found.mistakes]) is (
        outcome == "failed"
    )


LONG_HEADER = """
class DecoderLayer(nn.Module):
    def __init__(self, width, n_heads, mlp_dim):
        super().__init__()
        self.h, self.d = n_heads, width // n_heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, mlp_dim), nn.Linear(mlp_dim, width)

    def earlier(self, length):
        places = torch.arange(length)
        return places[None, :] <= places[:, None]

    def forward(
        self,
        x: torch.Tensor,
        key_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        b, t, e = x.shape
        y = self.norm1(x)
        q, k, v = (one(y).view(b, t, self.h, self.d).transpose(1, 2) for one in (self.q, self.k, self.v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d)
        earlier = self.earlier(t)
        scores = scores.masked_fill(~earlier, float("-inf"))
        if key_mask is not None:
            scores = scores.masked_fill(~key_mask[:, None, None, :], -1e9)
        heads = torch.softmax(scores, dim=-1) @ v
        x = x + self.o(heads.transpose(1, 2).reshape(b, t, e))
        return x + self.down(F.gelu(self.up(self.norm2(x))))
"""


@pytest.mark.parametrize(
    ("old", "new", "mistake"), [("(self.d)", "(self.d)", None), (" / math.sqrt(self.d)", "", "scale.missing")]
)
def test_a_block_that_hides_later_keys_itself_does_so_below_a_header_of_several_lines(old, new, mistake, shared_engine):
    text = LONG_HEADER.replace(old, new)
    report = shared_engine.grade("transformer_block", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == ("failed" if mistake else "passed"), report.ungraded_because
    assert [one.id for found in report.diagnosis for one in found.mistakes] == [mistake] * bool(mistake)
    assert "its mask is not tried (key_mask)" in report.reading["departures"]
