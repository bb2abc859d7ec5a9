"""What files of more kinds showed: captions, recommenders, toolkits, configs that are read from a file. In our own words."""

from __future__ import annotations

import pytest
from tests.readings.pairs import right_and_wrong, told
from tests.readings.test_kinds import HEAD

from attn_kata.engine.client import Engine
from attn_kata.readings import inference
from attn_kata.readings.source.structure import without_code_in_comments

# Regions of an image and one state of a decoder; the sum goes through ReLU (Xu et al., 2015, as it is most often copied).
CAPTION = """
class RegionAttention(nn.Module):
    def __init__(self, image_dim, state_dim, between):
        super().__init__()
        self.of_image = nn.Linear(image_dim, between)
        self.of_state = nn.Linear(state_dim, between)
        self.to_score = nn.Linear(between, 1)
        self.relu = nn.ReLU()
        self.softmax = nn.Softmax(dim=1)

    def forward(self, image_features, decoder_state):
        both = self.of_image(image_features) + self.of_state(decoder_state).unsqueeze(1)
        weights = self.softmax(self.to_score(self.relu(both)).squeeze(2))
        return (image_features * weights.unsqueeze(2)).sum(dim=1), weights
"""


def test_a_score_with_relu_is_read_as_additive_and_the_report_says_what_it_departs_from(shared_engine: Engine) -> None:
    assert (inference.kata_of((HEAD + CAPTION).encode()) or "")[0] == "additive_attention"

    right, wrong = right_and_wrong(
        shared_engine, "additive_attention", CAPTION, "self.softmax(self.to_score", "torch.sigmoid(self.to_score"
    )

    assert any("ReLU in place of tanh" in one for one in right.reading["departures"])
    assert told(wrong) == {"softmax.sigmoid"}


def test_tanh_is_no_such_departure(shared_engine: Engine) -> None:
    text = CAPTION.replace("nn.ReLU()", "nn.Tanh()")
    report = shared_engine.grade("additive_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed"
    assert not any("ReLU" in one for one in report.reading["departures"])


def test_a_picture_of_keys_that_are_the_values_is_one_of_the_output(shared_engine: Engine) -> None:
    """There the values cannot be unit vectors, so not even the right output shows weights of keys."""
    text = CAPTION.replace("nn.ReLU()", "nn.Identity()")
    report = shared_engine.grade("additive_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert told(report) == {"additive.no_tanh"}
    assert [(one.what, one.rows, one.columns) for one in report.pictures] == [("the output", "query", "column")]


UNSAID = """
class Attend(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.h, self.d = heads, width // heads
        self.wq, self.wk = nn.Linear(width, width), nn.Linear(width, width)
        self.wv, self.wo = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x, mask=None):
        B, T, E = x.shape
        q, k, v = (layer(x).view(B, T, self.h, self.d).transpose(1, 2) for layer in (self.wq, self.wk, self.wv))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d)
        if mask is not None:
            scores = scores.masked_fill(mask, -1e9)
        return self.wo((torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B, T, E))
"""


def test_of_a_mask_without_effect_nobody_is_asked_what_true_means(shared_engine: Engine) -> None:
    right = shared_engine.grade("mha", (HEAD + UNSAID).encode(), attempt="mine.py", reads=True)
    lost = UNSAID.replace("scores = scores.masked_fill", "scores.masked_fill")
    wrong = shared_engine.grade("mha", (HEAD + lost).encode(), attempt="mine.py", reads=True)

    assert right.outcome == "passed"
    assert any("what True in the mask means" in note for note in right.reading["notes"])
    assert told(wrong) == {"mask.lost"}
    assert not any("True" in note or "Another reading" in note for note in wrong.reading["notes"])


def test_an_attention_whose_softmax_is_a_layer_alone_is_found() -> None:
    """`nn.Softmax` and no matrix product: nothing of it is written in lower case."""
    text = CAPTION.replace("        self.softmax = nn.Softmax(dim=1)\n", "").replace(
        "self.softmax(", "nn.Softmax(dim=1)("
    )

    assert inference.kata_of((HEAD + text).encode()) is not None


HELPERS = """
from toolkit.helpers import aeq, sequence_mask


class GlobalScore(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.of_query = nn.Linear(dim, dim)
        self.of_memory = nn.Linear(dim, dim, bias=False)
        self.v = nn.Linear(dim, 1, bias=False)

    def forward(self, query, memory_bank, memory_lengths=None):
        aeq(query.shape[0], memory_bank.shape[0])
        both = torch.tanh(self.of_query(query).unsqueeze(2) + self.of_memory(memory_bank).unsqueeze(1))
        scores = self.v(both).squeeze(-1)
        if memory_lengths is not None:
            hidden = ~sequence_mask(memory_lengths, max_len=scores.shape[-1]).unsqueeze(1)
            scores = scores.masked_fill(hidden, -float("inf"))
        return torch.softmax(scores, dim=-1) @ memory_bank
"""


def test_helpers_of_a_toolkit_that_is_not_installed_are_there(shared_engine: Engine) -> None:
    _, wrong = right_and_wrong(shared_engine, "additive_attention", HELPERS, "dim=-1) @", "dim=-2) @")

    assert told(wrong) == {"softmax.query_axis"}


FLAGS_AS_FLOATS = """
class Attend(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x, attention_mask):
        B, T, E = x.shape
        q, k, v = (f(x).view(B, T, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.size)
        # The attention_mask is 1.0 for tokens that we want to attend to and 0.0 for
        # padded ones. What is added is 0.0 for the first and -10000.0 for the others.
        wide = attention_mask[:, None, None, :].to(scores.dtype)
        scores = scores + (1.0 - wide) * -10000.0
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, E))
"""


def test_the_0_of_1_0_is_no_flag(shared_engine: Engine) -> None:
    right, wrong = right_and_wrong(shared_engine, "mha", FLAGS_AS_FLOATS, "(1.0 - wide)", "wide")

    assert right.reading["settled"]
    assert "mask=keep" in right.reading["flags"]
    assert told(wrong) == {"mask.inverted"}


WEIGHTS_ALONE = """
class Attend(nn.Module):
    def __init__(self, dim, num_heads=8, qkv_bias=False):
        super().__init__()
        self.num_heads = num_heads
        self.scale = (dim // num_heads) ** -0.5
        self.q, self.k, self.v = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.q_bias, self.v_bias = None, None
        if qkv_bias:
            self.q_bias, self.v_bias = nn.Parameter(torch.zeros(dim)), nn.Parameter(torch.zeros(dim))
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, T, E = x.shape
        q = F.linear(x, weight=self.q.weight, bias=self.q_bias).view(B, T, self.num_heads, -1).transpose(1, 2)
        k = F.linear(x, weight=self.k.weight).view(B, T, self.num_heads, -1).transpose(1, 2)
        v = F.linear(x, weight=self.v.weight, bias=self.v_bias).view(B, T, self.num_heads, -1).transpose(1, 2)
        return self.proj((((q * self.scale) @ k.transpose(-1, -2)).softmax(-1) @ v).transpose(1, 2).reshape(B, T, E))
"""


@pytest.mark.parametrize("default", ["qkv_bias=False", "qkv_bias=True"])
def test_a_layer_whose_weight_alone_is_read_has_the_bias_beside_it_or_none(default: str, shared_engine: Engine) -> None:
    text = WEIGHTS_ALONE.replace("self.q, self.k, self.v = (nn.Linear(dim, dim, bias=False) for _ in range(3))", LAYERS)
    _, wrong = right_and_wrong(
        shared_engine, "mha", text.replace("qkv_bias=False", default), "// num_heads) ** -0.5", ") ** -0.5"
    )

    assert told(wrong) == {"scale.embed_dim"}


LAYERS = """self.q = nn.Linear(dim, dim, bias=False)
        self.k = nn.Linear(dim, dim, bias=False)
        self.v = nn.Linear(dim, dim, bias=False)"""

OF_ONE_LENGTH = """
class Masked(nn.Module):
    def __init__(self, width, length):
        super().__init__()
        self.width, self.T = width, length
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.register_buffer("later", torch.full((length, length), -torch.inf).triu(1))

    def forward(self, x):
        assert x.shape[-2] == self.T, f"the shape must be (B, {self.T}, {self.width})"
        q, k, v = self.query(x), self.key(x), self.value(x)
        return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(self.width) + self.later, dim=-1) @ v
"""


def test_a_size_with_the_name_T_is_no_transpose(shared_engine: Engine) -> None:
    for kata in ("self_attention", "mha"):
        report = shared_engine.grade(kata, (HEAD + OF_ONE_LENGTH).encode(), attempt="mine.py", reads=True)

        assert report.outcome in ("passed", "ungraded")
        assert told(report) == set()


BY_ITS_CALLER = """
class Head(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.key, self.query = nn.Linear(Config.width, dim), nn.Linear(Config.width, dim)
        self.value = nn.Linear(Config.width, dim)
        self.dim = dim

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(1, 2) / math.sqrt(self.dim)
        return scores.softmax(-1) @ self.value(x)


class Heads(nn.Module):
    def __init__(self, n_heads, dim):
        super().__init__()
        self.heads = nn.ModuleList([Head(dim) for _ in range(n_heads)])
        self.proj = nn.Linear(Config.width, Config.width)

    def forward(self, x):
        return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))


class Layer(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        head_size = width // n_heads
        self.attend = Heads(n_heads, head_size)

    def forward(self, x):
        return x + self.attend(x)
"""


def test_the_size_of_a_head_is_told_by_the_class_that_builds_it(shared_engine: Engine) -> None:
    text = "class Config:\n    width = 32\n\n" + BY_ITS_CALLER
    right, wrong = right_and_wrong(shared_engine, "mha", text, "math.sqrt(self.dim)", "math.sqrt(Config.width)")

    assert any("dim=D" in one for one in right.reading["flags"])
    assert told(wrong) == {"scale.embed_dim"}


PLAIN = """
class Attend(nn.Module):
    def __init__(self, width=config["width"], heads=config["heads"]):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.w_q, self.w_k, self.w_v = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.w_o = nn.Linear(width, width)

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (f(x).view(B, T, self.heads, -1).transpose(1, 2) for f in (self.w_q, self.w_k, self.w_v))
        weights = (q @ k.transpose(-1, -2) / math.sqrt(self.size)).softmax(-1)
        return self.w_o((weights @ v).transpose(1, 2).reshape(B, T, E))
"""


PLAIN_BESIDE_SPARSE = PLAIN.replace('width=config["width"], heads=config["heads"]', "width, heads")


def test_defaults_of_a_config_that_cannot_be_read_are_no_obstacle(shared_engine: Engine) -> None:
    text = 'import json\nconfig = json.load(open("no_such_file.json"))\n' + PLAIN
    _, wrong = right_and_wrong(shared_engine, "mha", text, "math.sqrt(self.size)", "math.sqrt(E)")

    assert told(wrong) == {"scale.embed_dim"}


def test_what_computes_with_a_name_that_could_not_be_imported_says_its_name(shared_engine: Engine) -> None:
    text = "from elsewhere import spread\n" + PLAIN_BESIDE_SPARSE.replace("width // heads", "width // spread")
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"
    assert "name 'spread' is not defined" in report.ungraded_because


# `width` is an argument of the constructor, and the number at module level in the call.
TWO_OF_ONE_NAME = PLAIN.replace('width=config["width"], heads=config["heads"]', "width, heads").replace(
    "reshape(B, T, E)", "reshape(B, T, width)"
)


def test_a_name_that_the_call_reads_at_module_level_is_a_size_though_the_constructor_has_it_too(
    shared_engine: Engine,
) -> None:
    _, wrong = right_and_wrong(
        shared_engine, "mha", "width = 8\n" + TWO_OF_ONE_NAME, "math.sqrt(self.size)", "math.sqrt(E)"
    )

    assert told(wrong) == {"scale.embed_dim"}


FIRST_RAISES = """
class BahdanauScore(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2 * dim, dim), nn.Tanh(), nn.Linear(dim, 1))

    def forward(self, query, keys, values):
        both = torch.cat([query.unsqueeze(2), keys.unsqueeze(1)], dim=-1)
        return self.net(both).squeeze(-1).softmax(-1) @ values


class OtherScore(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.of_query, self.of_key, self.v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, 1)

    def forward(self, query, keys, values):
        both = torch.tanh(self.of_query(query).unsqueeze(2) + self.of_key(keys).unsqueeze(1))
        return self.v(both).squeeze(-1).softmax(-1) @ values
"""


def test_a_likelier_definition_that_could_not_be_read_is_said(shared_engine: Engine) -> None:
    text = FIRST_RAISES.replace("query.unsqueeze(2), keys.unsqueeze(1)", "query.reshape(-1, 7, 7), keys")
    report = shared_engine.grade("additive_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)
    notes = " ".join(report.reading["notes"])

    assert report.reading["entry"] == "OtherScore"
    assert (
        "BahdanauScore was tried first, and could not be read: every call raises: shape '[-1, 7, 7]' is invalid"
        in notes
    )


@pytest.mark.parametrize(
    "join",
    ["[query.unsqueeze(2), keys.unsqueeze(1)], dim=-1", "(wide, keys.unsqueeze(dim=1)), -1"],
    ids=["here", "before"],
)
def test_a_join_that_would_have_to_broadcast_is_named_with_its_line(join: str, shared_engine: Engine) -> None:
    text = FIRST_RAISES.replace("[query.unsqueeze(2), keys.unsqueeze(1)], dim=-1", join).replace(
        "        both = torch.cat", "        wide = query.unsqueeze(2)\n        both = torch.cat"
    )
    report = shared_engine.grade("additive_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.reading["entry"] == "BahdanauScore"
    assert told(report) == {"python.arguments"}
    line = (HEAD + text)[: (HEAD + text).index("both = torch.cat")].count("\n") + 1
    assert report.diagnosis[0].mistakes[0].line == line


@pytest.mark.parametrize("query", ["query", "query.unsqueeze(2).expand(-1, -1, keys.shape[1], -1)"])
def test_a_join_whose_sizes_may_fit_for_other_inputs_is_no_verdict(query: str, shared_engine: Engine) -> None:
    text = FIRST_RAISES.partition("class OtherScore")[0].replace("query.unsqueeze(2),", f"{query},")
    report = shared_engine.grade("additive_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert told(report) == set()


IN_COMMENTS = """
class Attend(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.w_q, self.w_k, self.w_v = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.w_o = nn.Linear(width, width)

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (f(x).view(B, T, self.heads, -1).transpose(1, 2) for f in (self.w_q, self.w_k, self.w_v))
        weights = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(-1)
        return self.w_o((weights @ v).transpose(1, 2).reshape(B, T, E))


class Layer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.attend = Attend(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        x = self.norm1(x + self.attend(x))
        x = self.norm2(x + self.down(F.relu(self.up(x))))
        # Pre-LN
        # x = x + self.attend(self.norm1(x))
        # x = x + self.down(F.relu(self.up(self.norm2(x))))
        return x
"""


def test_a_statement_in_a_comment_says_nothing_of_the_code(shared_engine: Engine) -> None:
    report = shared_engine.grade("transformer_block", (HEAD + IN_COMMENTS).encode(), attempt="mine.py", reads=True)
    says = IN_COMMENTS.replace("        # x = x + self.attend(self.norm1(x))\n", "").replace(
        "        # x = x + self.down(F.relu(self.up(self.norm2(x))))\n", ""
    )
    said = shared_engine.grade("transformer_block", (HEAD + says).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed"
    assert told(said) == {"block.post_norm"}  # its words say where the norms should be


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("    # Pre-LN\n    # x = x + self.dropout(self.f(x))\n    y = 1", "    y = 1"),
        ("    # post norm\n    x = 3", "    # post norm\n    x = 3"),
        ("# shape: (B, T)\n# q = k.view(B, T)\nx = 1", "x = 1"),
        ("# pre-norm\nx = 1\n# a = b + c", "# pre-norm\nx = 1"),
        ("# B = batch size\nx = 1", "# B = batch size\nx = 1"),
        ("# a word\n" * 40_000, "# a word\n" * 40_000),  # a search from each of the lines would take minutes
    ],
    ids=["before", "words", "shape", "after", "meaning", "many"],
)
def test_comments_with_a_statement_among_them_are_left_out(text: str, kept: str) -> None:
    assert without_code_in_comments(text) == kept


SUMS_OF_NORMS = IN_COMMENTS[: IN_COMMENTS.index("    def forward(self, x):\n        x = self.norm1")] + (
    "    def forward(self, x):\n"
    "        normed = self.norm1(x)\n"
    "        x = normed + self.attend(normed)\n"
    "        normed = self.norm2(x)\n"
    "        return normed + self.down(F.relu(self.up(normed)))\n"
)


def test_the_sums_of_a_sasrec_block_are_its_convention_and_those_of_another_block_a_mistake(
    shared_engine: Engine,
) -> None:
    sasrec = SUMS_OF_NORMS.replace("class Layer(", "class SASRecLayer(").replace(
        "nn.LayerNorm(width)", "nn.LayerNorm(width, eps=EPS)"
    )
    right, wrong = (
        shared_engine.grade("transformer_block", (HEAD + text).encode(), attempt="mine.py", reads=True)
        for text in ("EPS = 1e-8\n" + sasrec, SUMS_OF_NORMS)
    )

    assert right.outcome == "passed", right.ungraded_because
    assert told(wrong) == {"block.residual_of_norm"}


def test_a_plain_attention_is_meant_and_not_a_sparse_one_above_it() -> None:
    sparse = PLAIN_BESIDE_SPARSE.replace("class Attend", "class SparseAttend").replace(
        "weights = (", "q = q[:, :, ::2]\n        weights = ("
    )
    found = inference.kata_of((HEAD + sparse + PLAIN_BESIDE_SPARSE).encode())

    assert found is not None
    assert "The class Attend looks like" in found[1]


def test_a_function_that_is_given_its_weights_is_no_product_of_q_k_and_v(shared_engine: Engine) -> None:
    text = (
        "def attend(Q, K, V):\n    return torch.softmax(Q @ K.transpose(-2, -1) / math.sqrt(K.shape[-1]), dim=-1) @ V\n\n\n"
        "def self_attend(X, W_q, W_k, W_v):\n    return attend(X @ W_q, X @ W_k, X @ W_v)\n"
    )
    report = shared_engine.grade("sdpa", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.reading["entry"] == "attend"
    assert report.outcome == "passed"


PADDING_OF_ONE_HEAD = """
class Attend(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.w_q, self.w_k, self.w_v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, pad_mask):
        T = x.shape[1]
        scores = self.w_q(x) @ self.w_k(x).transpose(1, 2) * x.shape[-1] ** -0.5
        seen = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()[None] & pad_mask.unsqueeze(1)
        weights = torch.nan_to_num(scores.masked_fill(~seen, float("-inf")).softmax(-1))
        return weights @ self.w_v(x)
"""


def test_a_mask_of_keys_is_taken_as_one_and_not_as_what_adds_a_dimension(shared_engine: Engine) -> None:
    right, wrong = right_and_wrong(shared_engine, "mha", PADDING_OF_ONE_HEAD, "softmax(-1)", "softmax(-2)")

    assert "shape=(B, T)" in right.reading["flags"]
    assert told(wrong) == {"softmax.query_axis"}


SEQUENTIAL = """
class Attend(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.w_q, self.w_k, self.w_v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, keep):
        far = 1e9 * (keep - 1.0)
        scores = self.w_q(x) @ self.w_k(x).transpose(1, 2) * x.shape[-1] ** -0.5
        weights = (scores + far.view(x.shape[0], 1, -1, 7, 7)).softmax(-1)
        return weights @ self.w_v(x)
"""


def test_that_a_boolean_mask_raises_is_no_verdict_where_every_other_mask_raises_too(shared_engine: Engine) -> None:
    report = shared_engine.grade("mha", (HEAD + SEQUENTIAL).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"


NUMPY = "import numpy as np\n" + PLAIN_BESIDE_SPARSE


def test_numpy_is_there(shared_engine: Engine) -> None:
    _, wrong = right_and_wrong(
        shared_engine, "mha", NUMPY.replace("math.sqrt(", "np.sqrt("), "np.sqrt(self.size)", "np.sqrt(E)"
    )

    assert told(wrong) == {"scale.embed_dim"}


def test_a_name_whose_package_is_not_installed_is_no_mistake_of_the_code(shared_engine: Engine) -> None:
    text = "import no_such_numbers as sp\n" + PLAIN_BESIDE_SPARSE.replace("math.sqrt(self.size)", "sp.root(self.size)")
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"
    assert "not installed here: no_such_numbers" in report.ungraded_because
    assert told(report) == set()


def test_the_place_of_a_layer_is_a_number(shared_engine: Engine) -> None:
    text = PLAIN_BESIDE_SPARSE.replace("width, heads)", "width, heads, layer_idx)").replace(
        "        self.w_o", "        self.is_even = layer_idx % 2 == 0\n        self.w_o"
    )
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed", report.ungraded_because


OF_ONE_SEQUENCE = """
class Attend(nn.Module):
    def __init__(self, dim_in, dim_out):
        super().__init__()
        self.dim_in, self.dim_out = dim_in, dim_out
        self.query = nn.Parameter(torch.randn(dim_out, dim_in))
        self.key = nn.Parameter(torch.randn(dim_out, dim_in))
        self.value = nn.Parameter(torch.randn(dim_out, dim_in))

    def forward(self, x):
        q, k, v = self.query @ x.T, self.key @ x.T, self.value @ x.T
        out = torch.softmax(q.T @ k / math.sqrt(self.dim_out), dim=-1) @ v.T  # (T, dim_out)
        assert out.shape[-1] == self.dim_out, "the shape must be (T, dim_out)"
        return out
"""


def test_T_is_right_in_code_that_says_it_takes_one_sequence(shared_engine: Engine) -> None:
    reports = [
        shared_engine.grade(kata, (HEAD + OF_ONE_SEQUENCE).encode(), attempt="mine.py", reads=True)
        for kata in ("self_attention", "mha")
    ]

    assert [told(one) for one in reports] == [set(), set()]
    assert "failed" not in [one.outcome for one in reports]


def test_what_a_config_of_a_missing_class_may_lack_has_its_default(shared_engine: Engine) -> None:
    text = "from .configuration import ModelConfig\n" + PLAIN_BESIDE_SPARSE.replace(
        "width, heads)", "config: ModelConfig)"
    ).replace(
        "self.heads, self.size = heads, width // heads",
        "width, self.heads = config.hidden_size, config.num_heads\n"
        '        self.size = getattr(config, "head_dim", config.hidden_size // config.num_heads)',
    )
    _, wrong = right_and_wrong(shared_engine, "mha", text, "math.sqrt(self.size)", "math.sqrt(E)")

    assert told(wrong) == {"scale.embed_dim"}


ONE_STATE = """
class Score(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.of_query, self.of_key, self.v = nn.Linear(size, size), nn.Linear(size, size), nn.Linear(size, 1)

    def forward(self, query, keys):
        # query: (B, H) the state of a decoder, keys: (B, S, H)
        both = torch.tanh(self.of_query(query.unsqueeze(1)) + self.of_key(keys))
        return (self.v(both).softmax(dim=1) * keys).sum(dim=1)
"""


def test_shapes_in_words_leave_no_other_shape_under_which_a_mistake_would_be_right(shared_engine: Engine) -> None:
    right, wrong = (
        shared_engine.grade("additive_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)
        for text in (ONE_STATE, ONE_STATE.replace("unsqueeze(1)", "unsqueeze(0)"))
    )

    assert right.outcome == "passed"
    assert "query=(B, E)" in right.reading["flags"]
    assert wrong.outcome == "ungraded"
    assert "The size of tensor a (2) must match the size of tensor b" in wrong.ungraded_because


def test_that_a_mask_of_the_users_is_not_taken_is_said(shared_engine: Engine) -> None:
    source = (HEAD + PLAIN_BESIDE_SPARSE).encode()
    with_mask = shared_engine.grade("mha", source, attempt="mine.py", reads=True, flags=("mask=hide",))
    without = shared_engine.grade("mha", source, attempt="mine.py", reads=True, flags=("mask=none",))

    said = [
        any("has no effect: the code takes no mask" in one for one in each.reading["notes"])
        for each in (with_mask, without)
    ]
    assert said == [True, False]


# Written for a torch that had no booleans; the query is one state of a decoder, and the mask is needed in every call.
OF_UINT8 = """
class Align(nn.Module):
    def __init__(self, state_size, memory_size, between):
        super().__init__()
        self.of_memory = nn.Linear(memory_size, between)
        self.of_state = nn.Linear(state_size, between)
        self.score = nn.Linear(between, 1)

    def forward(self, state, mask, memory):
        B, T, _ = memory.size()
        both = self.of_memory(memory) + self.of_state(state).unsqueeze(1).expand(B, T, -1)
        energy = self.score(torch.tanh(both)).view(B, T)
        if mask.any():
            energy = energy.masked_fill(mask == 0, -float("inf"))
        return torch.bmm(torch.softmax(energy, dim=1).unsqueeze(1), memory).squeeze(1)
"""


@pytest.mark.parametrize("difference", ["1 - mask", "1 - mask.view(B, T)"])
def test_a_fill_by_a_difference_raises_with_every_mask_and_is_named(shared_engine: Engine, difference: str) -> None:
    """1 - mask refuses booleans, and masked_fill refuses numbers; torch took both until 1.2."""
    right, wrong = right_and_wrong(shared_engine, "additive_attention", OF_UINT8, "mask == 0", difference)

    assert right.outcome == "passed"
    assert told(wrong) & {"mask.not_boolean", "mask.bool_arithmetic"}
    assert wrong.diagnosis[0].mistakes[0].line == OF_UINT8.splitlines().index(
        next(one for one in OF_UINT8.splitlines() if "masked_fill" in one)
    ) + len((HEAD + "\n").splitlines())


def test_a_difference_that_is_made_boolean_is_none_of_these(shared_engine: Engine) -> None:
    text = OF_UINT8.replace("mask == 0", "(1 - mask).bool()")
    report = shared_engine.grade("additive_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed"


# The best-known vision transformer tutorial: no tensor has a mask_fill, and the weights are divided.
BOTH = """
class MultiHeadAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.h = heads
        self.queries, self.keys = nn.Linear(width, width), nn.Linear(width, width)
        self.values, self.projection = nn.Linear(width, width), nn.Linear(width, width)
        self.scaling = (width // heads) ** -0.5

    def forward(self, x, mask=None):
        B, T, E = x.shape
        q, k, v = (m(x).view(B, T, self.h, -1).transpose(1, 2) for m in (self.queries, self.keys, self.values))
        energy = q @ k.transpose(-2, -1)
        if mask is not None:
            energy.mask_fill(~mask, torch.finfo(torch.float32).min)
        weights = torch.softmax(energy, dim=-1) * self.scaling
        return self.projection((weights @ v).transpose(1, 2).reshape(B, T, E))
"""


def test_what_is_wrong_without_a_mask_is_named_and_what_the_mask_raises_is_said(shared_engine: Engine) -> None:
    report = shared_engine.grade("mha", (HEAD + BOTH).encode(), attempt="mine.py", reads=True)

    assert told(report) == {"scale.after_softmax"}
    assert any("has no attribute 'mask_fill', line" in note for note in report.reading["notes"])


def test_where_nothing_explains_it_without_a_mask_what_the_mask_raises_is_named(shared_engine: Engine) -> None:
    text = BOTH.replace("q @ k.transpose(-2, -1)", "q @ k.transpose(-2, -1) + k.square().sum(-1)[:, :, None]")
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert told(report) == {"python.undefined_name"}


OWN_SOFTMAX = """
from course.layers import softmax


class Additive(nn.Module):
    def __init__(self, encoder_dim, decoder_dim, attention_dim):
        super().__init__()
        self.of_encoder = nn.Linear(encoder_dim, attention_dim, bias=False)
        self.of_decoder = nn.Linear(decoder_dim, attention_dim, bias=False)
        self.energy = nn.Linear(attention_dim, 1, bias=False)

    def forward(self, decoder_state, encoder_outputs):
        both = torch.tanh(self.of_encoder(encoder_outputs) + self.of_decoder(decoder_state).unsqueeze(1))
        weights = softmax(self.energy(both).squeeze(-1))
        return torch.bmm(weights.unsqueeze(1), encoder_outputs).squeeze(1), weights
"""


def test_a_softmax_of_a_file_that_is_not_here_is_torchs_and_the_report_says_so(shared_engine: Engine) -> None:
    right, wrong = right_and_wrong(shared_engine, "additive_attention", OWN_SOFTMAX, "torch.tanh(", "(")

    assert right.outcome == "passed"
    assert any("its softmax is read as torch.softmax" in note for note in right.reading["notes"])
    assert told(wrong) == {"additive.no_tanh"}


def test_what_is_not_here_is_named_though_the_likeliest_reading_fails_before_it(shared_engine: Engine) -> None:
    text = OWN_SOFTMAX.replace("import softmax", "import scaled")
    text = text.replace("softmax(self.energy(both).squeeze(-1))", "torch.softmax(scaled(self.energy(both)), dim=-1)")
    report = shared_engine.grade("additive_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"
    assert "needs course, which could not be imported" in (report.ungraded_because or "")


DEFAULT_DEVICE = """
from project.settings import DEVICE


class Attend(nn.Module):
    def __init__(self, width, heads, latent, device=DEVICE):
        super().__init__()
        self.h, self.d = heads, latent
        self.q, self.k, self.v = (nn.Linear(width, latent * heads, device=device) for _ in range(3))
        self.o = nn.Linear(latent * heads, width, device=device)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = (one(x).view(B, T, self.h, self.d).transpose(1, 2) for one in (self.q, self.k, self.v))
        weights = torch.softmax(q @ k.transpose(-2, -1) / self.d**0.5, dim=-1)
        return self.o((weights @ v).transpose(1, 2).reshape(B, T, -1))
"""


def test_a_missing_device_is_the_processor_and_what_multiplies_the_heads_is_their_size(shared_engine: Engine) -> None:
    right, wrong = right_and_wrong(shared_engine, "mha", DEFAULT_DEVICE, " / self.d**0.5", " / self.d")

    assert right.outcome == "passed"
    assert {"what": "built with", "value": "width = E, heads = H, latent = D"} in right.reading["lines"]
    assert told(wrong) == {"scale.no_sqrt"}


NORMS_OF_BOTH = """
class BothNorms(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.query_norm, self.key_norm = nn.LayerNorm(size), nn.LayerNorm(size)

    def forward(self, q, k):
        return self.query_norm(q), self.key_norm(k)


class Attend(nn.Module):
    def __init__(self, width, heads, normed=False):
        super().__init__()
        self.h, self.d = heads, width // heads
        self.wq, self.wk = nn.Linear(width, width), nn.Linear(width, width)
        self.wv, self.wo = nn.Linear(width, width), nn.Linear(width, width)
        self.qk_norm = BothNorms(self.d)

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (layer(x).view(B, T, self.h, self.d).transpose(1, 2) for layer in (self.wq, self.wk, self.wv))
        q, k = self.qk_norm(q, k)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d), dim=-1)
        return self.wo((weights @ v).transpose(1, 2).reshape(B, T, E))
"""


def test_a_module_of_several_inputs_is_left_out_as_well(shared_engine: Engine) -> None:
    right, wrong = right_and_wrong(shared_engine, "mha", NORMS_OF_BOTH, "dim=-1)", "dim=-2)")

    assert right.outcome == "passed"
    assert told(wrong) == {"softmax.query_axis"}


def test_of_a_module_that_is_left_out_as_much_comes_back_as_it_returns(shared_engine: Engine) -> None:
    text = NORMS_OF_BOTH.replace("q, k = self.qk_norm(q, k)", "q = self.qk_norm(q, k)")
    text = text.replace(
        "return self.query_norm(q), self.key_norm(k)", "return self.query_norm(q) + 0 * self.key_norm(k)"
    )
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed"


WIDENED = """
class MultiHeaded(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h, self.d = h, d_model // h
        self.layers = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(3)])
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        B, T, E = x.shape
        q, k, v = (layer(x).view(B, T, self.h, self.d).transpose(1, 2) for layer in self.layers)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d)
        if mask is not None:
            scores = scores.float()
            scores = scores.masked_fill(mask == 0, -10000.0)
        return self.out((torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B, T, E))
"""


def test_code_that_computes_in_float32_where_there_is_a_mask_alone_is_graded_so(shared_engine: Engine) -> None:
    right, wrong = right_and_wrong(shared_engine, "mha", WIDENED, "-10000.0", "1e-9")

    assert right.outcome == "passed"
    assert any("computes in float32" in note for note in right.reading["notes"])
    assert told(wrong) == {"mask.zero_fill"}


LLAMA_CONFIG = """
from dataclasses import dataclass


@dataclass
class ModelArgs:
    dim: int = 512
    n_heads: int = 16
    n_kv_heads: int = None
    max_seq_len: int = 512


class SelfAttention(nn.Module):
    def __init__(self, args: ModelArgs):
        super().__init__()
        self.heads, self.size = args.n_heads, args.dim // args.n_heads
        self.q, self.k = nn.Linear(args.dim, args.dim, bias=False), nn.Linear(args.dim, args.dim, bias=False)
        self.v, self.out = nn.Linear(args.dim, args.dim, bias=False), nn.Linear(args.dim, args.dim, bias=False)

    def forward(self, x, mask=None):
        B, T, E = x.shape
        q, k, v = (one(x).view(B, T, self.heads, self.size).transpose(1, 2) for one in (self.q, self.k, self.v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.size)
        if mask is not None:
            scores = scores.masked_fill(mask, float("-inf"))
        return self.out((torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B, T, E))
"""


def test_a_config_with_groups_that_the_code_does_not_read_makes_no_groups() -> None:
    assert (inference.kata_of((HEAD + LLAMA_CONFIG).encode()) or "")[0] == "mha"
    reads = "        self.groups = args.n_kv_heads\n        self.q, self.k"
    grouped = LLAMA_CONFIG.replace("        self.q, self.k", reads, 1)
    assert (inference.kata_of((HEAD + grouped).encode()) or "")[0] == "gqa"


# The names of the first BERT (Devlin et al., 2018).
FROM_AND_TO = """
class Attention(nn.Module):
    def __init__(self, from_tensor_width, to_tensor_width, num_attention_heads, size_per_head):
        super().__init__()
        assert from_tensor_width == num_attention_heads * size_per_head
        self.h, self.width, self.to_width = num_attention_heads, from_tensor_width, to_tensor_width
        self.query, self.key = nn.Linear(from_tensor_width, self.width), nn.Linear(to_tensor_width, self.width)
        self.value, self.out = nn.Linear(to_tensor_width, self.width), nn.Linear(self.width, self.width)

    def forward(self, from_tensor, to_tensor, attention_mask=None):
        if to_tensor.shape[-1] != self.to_width:
            raise ValueError("the widths do not match")
        B, T, _ = from_tensor.shape
        q = self.query(from_tensor).view(B, T, self.h, -1).transpose(1, 2)
        k, v = (one(to_tensor).view(B, to_tensor.shape[1], self.h, -1).transpose(1, 2) for one in (self.key, self.value))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if attention_mask is not None:
            scores = scores.masked_fill(attention_mask[:, None] == 0, -10000.0)
        return self.out((torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B, T, -1))
"""


def test_from_and_to_tensors_are_x_and_context(shared_engine: Engine) -> None:
    assert (inference.kata_of((HEAD + FROM_AND_TO).encode()) or "")[0] == "cross_attention"

    right, wrong = right_and_wrong(
        shared_engine, "cross_attention", FROM_AND_TO, "self.query(from_tensor)", "self.key(from_tensor)"
    )

    assert right.outcome == "passed"
    assert wrong.outcome != "passed"


PERCEIVER = """
from helpers import default, exists


class Attention(nn.Module):
    def __init__(self, query_dim, context_dim=None, heads=8, dim_head=64):
        super().__init__()
        context_dim = default(context_dim, query_dim)
        self.heads, self.scale = heads, dim_head**-0.5
        self.to_q = nn.Linear(query_dim, heads * dim_head, bias=False)
        self.to_kv = nn.Linear(context_dim, 2 * heads * dim_head, bias=False)
        self.to_out = nn.Linear(heads * dim_head, query_dim)

    def forward(self, x, context=None, mask=None):
        context = default(context, x)
        q, (k, v) = self.to_q(x), self.to_kv(context).chunk(2, dim=-1)
        q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in (q, k, v))
        scores = q @ k.transpose(-2, -1) * self.scale
        if exists(mask):
            scores = scores.masked_fill(~mask, -1e9)
        return self.to_out((scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(-2))
"""


def test_default_and_exists_of_a_file_that_is_not_here_are_the_usual_ones(shared_engine: Engine) -> None:
    right, wrong = right_and_wrong(shared_engine, "mha", PERCEIVER, "softmax(dim=-1)", "softmax(dim=-2)")

    assert right.outcome == "passed"
    assert told(wrong) == {"softmax.query_axis"}


# ESPnet's fill (Watanabe et al., 2018), in every copy of it.
FINFO = "float(np.finfo(torch.tensor(0, dtype=scores.dtype).numpy().dtype).min)"


def test_the_smallest_number_may_be_numpys(shared_engine: Engine) -> None:
    text = "import numpy as np\n" + WIDENED.replace("            scores = scores.float()\n", "")
    right, wrong = right_and_wrong(shared_engine, "mha", text.replace("-10000.0", FINFO), "mask == 0", "mask == 0.5")

    assert right.outcome == "passed"
    assert told(wrong)


def test_what_sets_first_weights_in_a_file_that_is_not_here_changes_nothing(shared_engine: Engine) -> None:
    text = "from layers import init_weight\n" + WIDENED.replace(
        "        self.out = nn.Linear(d_model, d_model)\n",
        "        self.out = nn.Linear(d_model, d_model)\n        init_weight(self.out)\n",
    )
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed"


READY_MADE = """
class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x)[0]

"""


def test_of_two_attentions_the_one_that_is_written_is_meant(shared_engine: Engine) -> None:
    own = WIDENED.replace("class MultiHeaded(", "class OwnAttention(")
    report = shared_engine.grade("mha", (HEAD + READY_MADE + own).encode(), attempt="mine.py", reads=True)

    assert (report.outcome, report.reading["entry"]) == ("passed", "OwnAttention")
    assert report.reading["candidates"] == ["SelfAttention"]


CALLS_TORCHS = """
class Attend(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.h = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (part.view(B, T, self.h, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1)
        return self.out(mixed.transpose(1, 2).reshape(B, T, E))
"""


@pytest.mark.parametrize(("rate", "is_said"), [("0.1", True), ("0.0", False), ("0.1 * self.training", False)])
def test_where_numbers_name_no_mistake_a_line_does(rate: str, is_said: bool, shared_engine: Engine) -> None:
    text = CALLS_TORCHS.replace("dropout_p=0.1", f"dropout_p={rate}")
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "failed"
    assert told(report) == ({"dropout.always"} if is_said else set())


def test_an_attribute_that_nothing_sets_on_a_path_that_is_not_tried_is_said(shared_engine: Engine) -> None:
    text = CALLS_TORCHS.replace("dropout_p=0.1", "attn_mask=self.bias if T > 9999 else None").replace(
        "F.scaled_dot_product_attention", "weighted"
    )
    text = (
        "\ndef weighted(q, k, v, attn_mask):\n    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v\n" + text
    )
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed"
    assert any("reads an attribute that nothing in the file sets" in note for note in report.notes)


STARRED = """
from Source.Settings import *


class MultiHeadAttention(pl.LightningModule):
    def __init__(self, d_model, num_head):
        super().__init__()
        self.h, self.d = num_head, d_model // num_head
        self.layers = clones(module_to_be_cloned=nn.Linear(d_model, d_model), n_clones=4)

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (layer(x).view(B, T, self.h, self.d).transpose(1, 2) for layer in self.layers[:3])
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d), dim=-1)
        return self.layers[3]((weights @ v).transpose(1, 2).reshape(B, T, E))
"""


def test_a_base_class_and_copies_of_files_that_are_not_here_are_the_usual_ones(shared_engine: Engine) -> None:
    text = "from helpers import clones\n" + STARRED
    right, wrong = right_and_wrong(shared_engine, "mha", text, " / math.sqrt(self.d)", "")

    assert right.outcome == "passed"
    assert told(wrong) == {"scale.missing"}


FLAGGED = """
class Attend(nn.Module):
    def __init__(self, width, heads, inference):
        super().__init__()
        self.h, self.d, self.inference = heads, width // heads, inference
        self.wq, self.wk = nn.Linear(width, width), nn.Linear(width, width)
        self.wv, self.wo = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (layer(x).view(B, T, self.h, self.d).transpose(1, 2) for layer in (self.wq, self.wk, self.wv))
        if self.inference:
            v = k
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d), dim=-1)
        return self.wo((weights @ v).transpose(1, 2).reshape(B, T, E))
"""


def test_the_path_of_a_flag_that_is_off_is_said_not_to_be_tried(shared_engine: Engine) -> None:
    with_flag, without = (
        shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)
        for text in (FLAGGED, WIDENED.replace("scores = scores.float()", "pass"))
    )

    assert with_flag.outcome == without.outcome == "passed"
    assert any("with inference = True is not tried" in note for note in with_flag.reading["notes"])
    assert not any("is not tried" in note for note in without.reading["notes"])


# The best-known chatbot tutorial: one state of the decoder and all of the encoder, time first, and weights alone.
SAYS_TIME = """
class Attn(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.attn = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden, encoder_outputs):
        # hidden (1, B, H), encoder_outputs (S, B, H)
        energies = torch.sum(hidden * self.attn(encoder_outputs), dim=2)
        return F.softmax(energies.t(), dim=1).unsqueeze(1)
"""


def test_comments_that_say_time_first_are_believed(shared_engine: Engine) -> None:
    """Read batch first, the softmax over the samples of the second one would be one over the keys."""
    right, wrong = right_and_wrong(
        shared_engine, "multiplicative_attention", SAYS_TIME, "energies.t(), dim=1", "energies, dim=1"
    )

    assert right.outcome == "passed"
    assert wrong.outcome != "passed"


VALUES_OF_X = """
class Cross(nn.Module):
    def __init__(self, d_model, nhead):
        super().__init__()
        self.h = nhead
        self.q_lin, self.k_lin = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.v_lin, self.o_lin = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, tgt, memory):
        b, t, d = tgt.shape
        q = self.q_lin(tgt).view(b, t, self.h, -1).transpose(1, 2)
        k = self.k_lin(memory).view(b, memory.shape[1], self.h, -1).transpose(1, 2)
        v = self.v_lin(tgt).view(b, t, self.h, -1).transpose(1, 2)
        w = F.softmax(q @ k.transpose(-2, -1) * (d // self.h) ** -0.5, -1)
        return self.o_lin((w @ v).transpose(1, 2).reshape(b, t, d))
"""


def test_values_made_from_x_have_the_line_that_makes_them(shared_engine: Engine) -> None:
    report = shared_engine.grade("cross_attention", (HEAD + VALUES_OF_X).encode(), attempt="mine.py", reads=True)
    (mistake,) = report.diagnosis[0].mistakes

    assert mistake.id == "context.ignored"
    assert mistake.source_line == "v = self.v_lin(tgt).view(b, t, self.h, -1).transpose(1, 2)"
    assert "the values or both from x" in mistake.explanation
