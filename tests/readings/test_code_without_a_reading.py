"""Code that has no reading, and is wrong however it is read: in every call that runs."""

from __future__ import annotations

import pytest
from tests.readings.pairs import told
from tests.readings.test_kinds import HEAD

from attn_kata.engine.client import Engine
from attn_kata.report.model import Report

# One parameter for all, of which nothing says where q, k and v are.
GATED = """
class GatedAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.all = nn.Parameter(torch.randn(5, width, width) * width**-0.5)

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, x):
        B, T, E = x.shape
        one, two, three = (self.split(x @ self.all[place]) for place in range(3))
        weights = torch.softmax(one @ two.transpose(-2, -1) / one.shape[-1] ** 0.5, dim=-1)
        out = (weights @ three).transpose(1, 2).reshape(B, T, E)
        return (torch.sigmoid(x @ self.all[3]) * out) @ self.all[4]
"""


def graded(engine: Engine, text: str) -> Report:
    return engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)


def test_right_code_without_a_reading_is_ungraded(shared_engine: Engine) -> None:
    report = graded(shared_engine, GATED)

    assert report.outcome == "ungraded"
    assert not report.notes


WRONG = [
    ("dim=-1)", "dim=-2)", "softmax.query_axis"),
    ("dim=-1)", "dim=1)", "softmax.head_axis"),
    ("one.shape[-1] ** 0.5", "E ** 0.5", "scale.embed_dim"),
    (
        "x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)",
        "x.view(len(x), self.heads, x.shape[1], -1)",
        "split.no_transpose",
    ),
    (".transpose(1, 2).reshape(B, T, E)", ".reshape(B, T, E)", "merge.no_transpose"),
]


@pytest.mark.parametrize(("old", "new", "id"), WRONG)
def test_what_every_call_shows_is_a_verdict(shared_engine: Engine, old: str, new: str, id: str) -> None:
    assert GATED.count(old) == 1
    text = GATED.replace(old, new)
    report = graded(shared_engine, text)

    assert report.outcome == "failed"
    assert told(report) == {id}
    (mistake,) = report.diagnosis[0].mistakes
    assert mistake.line == 1 + (HEAD + text)[: (HEAD + text).index(new)].count("\n")
    assert "it could not be read as mha" in (report.ungraded_because or "")


# Right for one sequence (T, E), and wrong for a batch: what it is meant for is not known.
FLAT = """
class GatedAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.all = nn.Parameter(torch.randn(5, width, width) * width**-0.5)

    def forward(self, x):
        a, b, c, d, e = self.all
        weights = torch.softmax((x @ a) @ (x @ b).transpose(-2, -1) / x.shape[-1] ** 0.5, dim=1)
        return (torch.sigmoid(x @ d) * (weights @ x @ c)) @ e
"""


def test_what_one_kind_of_call_shows_alone_is_no_verdict(shared_engine: Engine) -> None:
    assert graded(shared_engine, FLAT).outcome == "ungraded"
    assert told(graded(shared_engine, FLAT.replace("dim=1)", "dim=-2)"))) == {"softmax.query_axis"}


def test_of_definitions_that_are_not_graded_it_is_a_note(shared_engine: Engine) -> None:
    other = GATED.replace("GatedAttention", "OtherAttention").replace("dim=-1)", "dim=-2)")
    report = graded(shared_engine, GATED.replace("GatedAttention", "GatedMultiHeadAttention") + other)

    assert report.outcome == "ungraded"
    assert any("OtherAttention is not graded, but in line" in note for note in report.notes), report.notes


def test_what_every_call_raises_by_itself_is_named(shared_engine: Engine) -> None:
    wrong = graded(shared_engine, GATED.replace("one.shape[-1] ** 0.5", "torch.sqrt(one.shape[-1])"))

    assert told(wrong) == {"numerics.root_of_number"}
    assert "it could not be read as mha" in (wrong.ungraded_because or "")


def test_a_softmax_that_nothing_reads_is_named(shared_engine: Engine) -> None:
    softmax = "torch.softmax(one @ two.transpose(-2, -1) / one.shape[-1] ** 0.5, dim=-1)"
    text = GATED.replace(
        f"weights = {softmax}", f"scores = {softmax[14:-9]}\n        out = torch.softmax(scores, dim=-1)"
    )
    assert told(graded(shared_engine, text.replace("weights @ three", "scores @ three"))) == {"python.unused_result"}
    assert not told(graded(shared_engine, text.replace("weights @ three", "out @ three")))


def test_a_layer_that_is_made_of_the_scores_is_named(shared_engine: Engine) -> None:
    wrong = graded(shared_engine, GATED.replace("torch.softmax(one", "nn.Softmax(one"))

    assert told(wrong) == {"python.arguments"}


def test_arrays_are_not_what_it_is_given_and_what_numpy_raises_is_no_mistake(shared_engine: Engine) -> None:
    head = "import numpy as np\n"
    assert not told(
        graded(shared_engine, head + GATED.replace("one.shape[-1] ** 0.5", "np.max(x, axis=1, keepdims=True)"))
    )


# A mask of numbers for each token, of which the code takes one column; and a flag that only a script sets.
OF_NUMBERS = GATED.replace("def forward(self, x):", "def forward(self, x, unpacked_masks):").replace(
    "        weights =",
    "        if use_cuda:\n            x = x.cuda()\n"
    "        hidden = (1.0 - unpacked_masks)[:, :, 0] * -1e9\n        weights =",
)
OF_NUMBERS = OF_NUMBERS.replace("one.shape[-1] ** 0.5", "one.shape[-1] ** 0.5 + hidden[:, None, None]")


def test_masks_of_numbers_are_among_the_calls(shared_engine: Engine) -> None:
    assert not told(graded(shared_engine, OF_NUMBERS))
    assert told(graded(shared_engine, OF_NUMBERS.replace("dim=-1)", "dim=1)"))) == {"softmax.head_axis"}


def test_a_constructor_by_another_name_is_named(shared_engine: Engine) -> None:
    report = graded(shared_engine, GATED.replace("def __init__(self, width", "def __init(self, width"))
    (mistake,) = report.diagnosis[0].mistakes

    assert report.outcome == "failed"
    assert (mistake.id, mistake.source_line) == ("python.misspelt_method", "def __init(self, width, heads):")


DROPS = """
def drop(weights, p):
    return F.dropout(weights, p)

class GatedAttention(nn.Module):
    def __init__(self, width, p=0.1):
        super().__init__()
        self.p = p
        self.all = nn.Parameter(torch.randn(5, width, width) * width**-0.5)

    def forward(self, x):
        a, b, c, d, e = self.all
        weights = torch.softmax((x @ a) @ (x @ b).transpose(-2, -1) / x.shape[-1] ** 0.5, dim=-1)
        weights = drop(weights, self.p if self.training else 0.0)
        return (torch.sigmoid(x @ d) * (weights @ x @ c)) @ e
"""


def test_a_dropout_that_is_told_to_train_always_drops_in_eval(shared_engine: Engine) -> None:
    text = GATED.replace("(weights @ three)", "(torch.dropout(weights, 0.1, train=True) @ three)")
    assert told(graded(shared_engine, text)) == {"dropout.always"}
    assert not told(graded(shared_engine, text.replace("train=True", "train=self.training")))


@pytest.mark.parametrize(
    ("dropped", "is_wrong"),
    [
        ("nn.Dropout(0.1)(weights)", True),
        ("drop(weights)", True),
        ("nn.Dropout(0.0)(weights)", False),
        ("nn.Dropout(0.1).train(self.training)(weights)", False),
        ("self.kept(weights)", False),
    ],
)
def test_a_dropout_that_is_made_in_the_call_drops_in_eval(shared_engine: Engine, dropped: str, is_wrong: bool) -> None:
    text = GATED.replace("(weights @ three)", f"({dropped} @ three)")
    text = text.replace(
        "        weights =",
        "        drop = nn.Dropout(p=0.1)\n        weights =" if "drop(w" in dropped else "        weights =",
    )
    text = text.replace(
        "        self.heads = heads\n", "        self.heads = heads\n        self.kept = nn.Dropout(0.0)\n"
    )

    assert told(graded(shared_engine, text)) == ({"dropout.always"} if is_wrong else set())


@pytest.mark.parametrize(("condition", "is_wrong"), [("", True), ("if self.last is None:\n            ", False)])
def test_a_linear_layer_that_every_call_makes_is_named(shared_engine: Engine, condition: str, is_wrong: bool) -> None:
    text = GATED.replace("        self.heads = heads\n", "        self.heads = heads\n        self.last = None\n")
    text = text.replace(
        "        return (torch", f"        {condition}self.last = nn.Linear(E, E)\n        return (torch"
    )
    text = text.replace("@ self.all[4]", "@ self.all[4] + 0 * self.last(x)")

    assert told(graded(shared_engine, text)) == ({"module.rebuilt"} if is_wrong else set())


def test_a_dropout_of_a_function_may_be_told_the_mode_by_its_caller(shared_engine: Engine) -> None:
    of_class = DROPS.replace("drop(weights, self.p if self.training else 0.0)", "F.dropout(weights, self.p)")

    assert told(graded(shared_engine, DROPS)) == set()
    assert told(graded(shared_engine, of_class)) == {"dropout.always"}


@pytest.mark.parametrize("root", ["np.sqrt(D)", "math.sqrt(D)"])
def test_a_line_with_a_root_by_numpy_raises_by_its_own_mistake_as_well(shared_engine: Engine, root: str) -> None:
    text = f"""
import numpy as np

class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        B, T, E = x.shape
        D = E // self.n_heads
        q, k, v = (layer(x).view(B, T, self.n_heads, D) for layer in (self.query, self.key, self.value))
        weights = torch.softmax(torch.matmul(q, k) / {root}, dim=-1)
        return self.out((weights @ v).reshape(B, T, E))
"""
    assert told(graded(shared_engine, text)) == {"score.not_transposed"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x.view(*x.shape[:2]", "x.ndata.view(*x.shape[:2]"),  # a graph, which the calls do not give
        ("B, T, E = x.shape", "B, T, E = x.shape\n        x = x.transpose(1, 4)"),  # a video
        ("B, T, E = x.shape", "B, T, E = x.shape\n        x = x + self.bias_of_edges"),  # which its owner sets
        ("weights = ", "def look():\n            return out\n        out = "),  # read by a function inside
    ],
)
def test_what_another_input_or_another_function_would_do_is_no_verdict(
    shared_engine: Engine, old: str, new: str
) -> None:
    text = GATED.replace(old, new, 1)
    if "look" in new:
        text = (
            text.replace("(weights @ three)", "(look() @ three)")
            .replace("out = (look", "mixed = (look")
            .replace("* out)", "* mixed)")
        )
    owner = "\n\nclass Owner(GatedAttention):\n    def __init__(self):\n        self.attention.bias_of_edges = 0\n"
    assert not told(graded(shared_engine, text + owner * ("bias_of_edges" in new)))


@pytest.mark.parametrize(
    "more",
    [
        '\nif __name__ == "__main__":\n    GatedAttention.__init(None, 8, 2)\n',
        "\n    __init__ = __init\n",
    ],
)
def test_a_method_that_the_file_names_elsewhere_is_not_misspelt(shared_engine: Engine, more: str) -> None:
    assert not told(graded(shared_engine, GATED.replace("def __init__(self, width", "def __init(self, width") + more))


WITHOUT_SUPER = """
class Attend(nn.Module):
    def __init__(self, length):
        self.length = length

    def forward(self, x):
        weights = torch.softmax(x @ x.transpose(-2, -1) / math.sqrt(x.shape[-1]), dim=-1)
        return weights @ x
"""


@pytest.mark.parametrize(
    ("base", "first", "named"),
    [
        ("nn.Module", "self.length", {"module.no_super"}),
        ("nn.Module", "super().__init__()\n        self.length", set()),
        ("nn.Module", "nn.Module.__init__(self)\n        self.length", set()),
        ("Base", "self.length", set()),
    ],
)
def test_a_constructor_that_never_calls_that_of_its_base_is_named_also_without_a_layer(
    base, first, named, shared_engine
):
    text = (
        "from elsewhere import Base\n"
        + HEAD
        + WITHOUT_SUPER.replace("nn.Module", base).replace("self.length", first, 1)
    )
    report = shared_engine.grade("self_attention", text.encode(), attempt="mine.py", reads=True)

    assert {one.id for each in report.diagnosis for one in each.mistakes} == named


A_METHOD = """
class Windowed(nn.Module):
    def __init__(self, dim_model, num_heads, window_size=3):
        super().__init__()
        self.num_heads, self.head_dim, self.window_size = num_heads, dim_model // num_heads, window_size
        self.q_proj, self.k_proj = nn.Linear(dim_model, dim_model), nn.Linear(dim_model, dim_model)
        self.v_proj, self.o_proj = nn.Linear(dim_model, dim_model), nn.Linear(dim_model, dim_model)

    def attend(self, Q, K, V):
        K, V = (F.pad(part, (0, 0, self.window_size - 1, 0)) for part in (K, V))
        outs = []
        for i in range(Q.size(2)):
            k, v = K[:, :, i : i + self.window_size], V[:, :, i : i + self.window_size]
            scores = torch.matmul(Q[:, :, i : i + 1], k.transpose(-2, -1)) / math.sqrt(self.head_dim)
            outs.append(torch.matmul(F.softmax(scores, dim=-1), v))
        return torch.cat(outs, dim=2)

    def forward(self, x, context):
        raise NotImplementedError
"""


def test_a_method_alone_is_no_scale_by_a_width_that_it_was_not_built_for(shared_engine):
    report = shared_engine.grade(
        "sdpa", (HEAD + A_METHOD).encode(), attempt="mine.py", reads=True, flags=("entry=Windowed.attend",)
    )

    assert "scale.embed_dim" not in {one.id for each in report.diagnosis for one in each.mistakes}
