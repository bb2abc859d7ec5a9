"""What lies around an attention in public code: sizes by other names, layers beside x, imports that are not there."""

from __future__ import annotations

import pytest
from tests.readings.pairs import right_and_wrong, told
from tests.readings.test_interfaces import ATTEND
from tests.readings.test_kinds import HEAD

# The size of a head has the name of a length; what it is multiplied with says so.
SIZE_BY_THE_NAME_OF_A_LENGTH = """
class MultiHeadAttention(nn.Module):
    def __init__(self, num_heads, num_features, seq_length, out_num_features):
        super().__init__()
        self.num_heads, self.seq_length = num_heads, seq_length
        self.w_qs = nn.Linear(num_features, num_heads * seq_length)
        self.w_ks = nn.Linear(num_features, num_heads * seq_length)
        self.w_vs = nn.Linear(num_features, num_heads * out_num_features)
        self.fc = nn.Linear(num_heads * out_num_features, num_features)

    def forward(self, q, k, v, residual_x):
        q, k, v = (
            layer(one).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for layer, one in ((self.w_qs, q), (self.w_ks, k), (self.w_vs, v))
        )
        weights = F.softmax(q @ k.transpose(-2, -1) / self.seq_length**0.5, dim=-1)
        return self.fc((weights @ v).transpose(1, 2).flatten(2)) + residual_x
"""
# As in a well-known model of speech: the result of the heads lies beside x before the last layer, and x is added.
RESULT_BESIDE_X = """
class Attention(nn.Module):
    def __init__(self, num_hidden, h):
        super().__init__()
        self.h = h
        self.query, self.key = nn.Linear(num_hidden, num_hidden), nn.Linear(num_hidden, num_hidden)
        self.value = nn.Linear(num_hidden, num_hidden)
        self.final_linear = nn.Linear(2 * num_hidden, num_hidden)

    def forward(self, memory, decoder_input):
        q, k, v = (
            layer(one).unflatten(-1, (self.h, -1)).transpose(1, 2)
            for layer, one in ((self.query, decoder_input), (self.key, memory), (self.value, memory))
        )
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        result = (weights @ v).transpose(1, 2).flatten(2)
        return self.final_linear(torch.cat([decoder_input, result], dim=-1)) + decoder_input
"""
MATRICES_OF_ONE_WIDTH = """
class Attend(nn.Module):
    def __init__(self, embedding_dim):
        super().__init__()
        self.WQ, self.WK, self.WV = (nn.Parameter(torch.randn(embedding_dim, embedding_dim)) for _ in range(3))

    def forward(self, x):
        q, k, v = torch.matmul(x, self.WQ), torch.matmul(x, self.WK), torch.matmul(x, self.WV)
        return F.softmax(q @ k.T / math.sqrt(q.shape[-1]), dim=-1) @ v
"""
FUNCTION_IN_FLOAT32 = """
def attend(query, key, value):
    base = torch.zeros((1, 1, 1))
    b, h, t, d = query.shape
    q, k, v = (one.reshape(b * h, -1, one.shape[-1]) for one in (query, key, value))
    weights = torch.softmax(torch.baddbmm(base, q, k.transpose(1, 2), beta=0) / math.sqrt(d), dim=-1)
    return (weights @ v).reshape(b, h, t, -1)
"""
MASK_OF_EACH_RANK = '''
class Attend(nn.Module):
    def forward(self, q, k, v, mask):
        """q (torch.Tensor): [batch, q_len, d_k]. mask: True where it hides."""
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            hidden = mask.squeeze(1) if mask.dim() == 4 else mask if mask.dim() == 3 else mask.unsqueeze(1)
            scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        return torch.softmax(scores, dim=-1) @ v
'''
LAYER_THAT_IS_NOT_HERE = "from of_mine.layers import Linear\n" + ATTEND.replace("nn.Linear", "Linear")
LOGGER_THAT_IS_NOT_HERE = "from of_mine.logs import shape_logger\n" + ATTEND.replace(
    "        B, T, E = x.shape", "        shape_logger.debug(x.shape)\n        B, T, E = x.shape"
)
STATES = (
    RESULT_BESIDE_X.replace("memory, decoder_input", "x, states")
    .replace("memory", "states")
    .replace("decoder_input", "x")
)
LOGGER_OF_A_FILE = (
    "def create_logger(name):\n    return open('logs/' + name, 'w')\n\n\n"
    + ATTEND.replace("        B, T, E = x.shape", "        create_logger('mine').info(x.shape)\n        B, T, E = x.shape")
)  # fmt: skip
OF_THE_BOOK = """
from d2l import torch as d2l


class DotProductAttention(nn.Module):
    def __init__(self, key_size, query_size, num_hiddens):
        super().__init__()
        self.W_k, self.W_q = nn.Linear(key_size, num_hiddens), nn.Linear(query_size, num_hiddens)
        self.w_v = nn.Linear(num_hiddens, 1)

    def forward(self, queries, keys, values, valid_lens):
        features = torch.tanh(self.W_q(queries).unsqueeze(2) + self.W_k(keys).unsqueeze(1))
        return torch.bmm(d2l.masked_softmax(self.w_v(features).squeeze(-1), valid_lens), values)
"""
# The words are about what the code makes of the flags.
ADDEND_MADE_OF_FLAGS = ATTEND.replace(
    '            scores = scores.masked_fill(mask == 0, float("-inf"))\n',
    "            # convert to additive mask with big negatives\n"
    "            scores = scores + torch.where(mask == 0, -1e9, 0.0)\n",
)
PLACES_LAST = ATTEND.replace(
    "        B, T, E = x.shape", "        B, _, len_x = x.shape\n        T, x = len_x, x.transpose(1, 2)"
).replace("reshape(B, T, E)", "reshape(B, T, -1)")
PLACES_LAST = PLACES_LAST.replace("return out", "return out.transpose(1, 2)")
ROUNDED = ATTEND.replace("return out", "return torch.round(out, decimals=4)")
PRIVATE = ATTEND.replace("self.w_o", "self.__fc").replace("SelfAttend", "MultiQueryAttend")
PAIRS = {
    "a_size_by_the_name_of_a_length": ("qkv_attention", SIZE_BY_THE_NAME_OF_A_LENGTH, " / self.seq_length**0.5", "",
                                       {"scale.missing"}),
    "the_result_beside_x": ("cross_attention", RESULT_BESIDE_X, ".transpose(1, 2).flatten(2)\n        return",
                            ".flatten(1, 2).unflatten(-1, (1, -1)).reshape(*decoder_input.shape)\n        return",
                            {"merge.no_transpose"}),
    "matrices_of_one_width": ("self_attention", MATRICES_OF_ONE_WIDTH, " / math.sqrt(q.shape[-1])", "",
                              {"scale.missing"}),
    "a_function_in_float32": ("sdpa", FUNCTION_IN_FLOAT32, " / math.sqrt(d)", "", {"scale.missing"}),
    "a_mask_of_each_rank": ("sdpa", MASK_OF_EACH_RANK, "masked_fill(hidden, torch.finfo(scores.dtype).min)",
                            "masked_fill(hidden, 0.0)", {"mask.zero_fill"}),
    "a_logger_that_is_not_here": ("mha", LOGGER_THAT_IS_NOT_HERE, " / math.sqrt(self.d)", "", {"scale.missing"}),
    "states": ("cross_attention", STATES, " / math.sqrt(q.shape[-1])", "", {"scale.missing"}),
    "a_logger_of_a_file": ("mha", LOGGER_OF_A_FILE, " / math.sqrt(self.d)", "", {"scale.missing"}),
    "of_the_book": ("additive_attention", OF_THE_BOOK, "torch.tanh(", "(", {"additive.no_tanh"}),
    "an_addend_made_of_flags": ("mha", ADDEND_MADE_OF_FLAGS, "mask == 0, -1e9, 0.0", "mask == 0, 0.0, 0.0",
                                {"mask.lost"}),
    "places_last": ("mha", PLACES_LAST, " / math.sqrt(self.d)", "", {"scale.missing"}),
    "rounded": ("mha", ROUNDED, " / math.sqrt(self.d)", "", {"scale.missing"}),
    "private": ("mha", PRIVATE, " / math.sqrt(self.d)", "", {"scale.missing"}),
    "a_layer_that_is_not_here": ("mha", LAYER_THAT_IS_NOT_HERE, " / math.sqrt(self.d)", "", {"scale.missing"}),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_it_is_read_and_hides_no_mistake(name, shared_engine):
    slug, text, old, new, named = PAIRS[name]
    _, wrong = right_and_wrong(shared_engine, slug, text, old, new)

    assert told(wrong) == named


def test_a_layer_that_stands_for_one_that_is_not_here_is_said(shared_engine):
    report = shared_engine.grade("mha", (HEAD + LAYER_THAT_IS_NOT_HERE).encode(), attempt="mine.py", reads=True)

    assert "'of_mine' is not installed, and its Linear is read as nn.Linear" in report.reading["notes"]


def test_what_is_ready_made_fails_whatever_its_words_speak_of(shared_engine):
    text = ATTEND.replace(
        "        weights = ",
        "        gate = 1\n        v = F.scaled_dot_product_attention(q, k, v)\n        weights = ",
    )
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "failed"
    assert next(one for one in report.findings if one.property == "from_scratch").outcome == "failed"


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("super().__init__()", "super.__init__()", "module.no_super"),
        (
            "super().__init__()",
            "super().__init__()\n        self.scale = torch.sqrt(width)",
            "numerics.root_of_number",
        ),
        ("nn.Linear(width, width)\n\n", "nn.Linear(width)\n\n", "python.arguments"),
        ("self.h, self.d = ", "self.n_h, self.d = ", "python.undefined_name"),
        (
            "self.h, self.d = ",
            "args = nn.Module()\n        args.h, self.d = ",
            "python.undefined_name",
        ),  # set, but not on self
        ("k.transpose(-2, -1)", "torch.transpose(-2, -1)", "python.arguments"),
        ("x.shape\n", "x.shape(0), x.shape(1), x.shape(2)\n", "python.size_called"),
    ],
)
def test_code_that_raises_whatever_it_is_given_fails_and_its_mistake_is_named(old, new, named, shared_engine):
    assert ATTEND.count(old) == 1
    report = shared_engine.grade("mha", (HEAD + ATTEND.replace(old, new)).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "failed"
    assert told(report) == {named}
    assert "It has no layer" not in " ".join(report.reading["notes"])
    assert "Without its mask" not in " ".join(report.reading["notes"])


def test_weights_that_are_plain_tensors_are_named_and_the_rest_is_graded(shared_engine):
    text = MATRICES_OF_ONE_WIDTH.replace(
        "nn.Parameter(torch.randn(embedding_dim, embedding_dim)) for _ in range(3)", "0, 0, 0"
    )
    text = text.replace("self.WQ, self.WK, self.WV = (0, 0, 0)", "self.WQ = torch.rand(embedding_dim, embedding_dim)")
    for name in ("WK", "WV"):
        text = text.replace(
            "\n\n    def", f"\n        self.{name} = torch.rand(embedding_dim, embedding_dim)\n\n    def", 1
        )
    right, wrong = (
        shared_engine.grade("self_attention", (HEAD + each).encode(), attempt="mine.py", reads=True)
        for each in (text, text.replace(" / math.sqrt(q.shape[-1])", ""))
    )

    assert told(right) == {"module.unregistered"}
    assert told(wrong) == {"module.unregistered", "scale.missing"}


def test_a_mask_of_the_constructor_that_nothing_reads_is_said(shared_engine):
    text = ATTEND.replace("width, n_heads):", "width, n_heads, attn_mask=None):")
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    said = "Its constructor takes attn_mask, and nothing reads it. If it is meant to hide keys, this is mask.lost"
    assert said in report.reading["notes"]


def test_dropout_in_eval_at_a_rate_of_the_constructor_is_named_where_the_kata_has_none(shared_engine):
    text = RESULT_BESIDE_X.replace("num_hidden, h):", "num_hidden, h, rate):").replace(
        "self.h = h", "self.h, self.rate = h, rate"
    )
    text = text.replace("result = (weights @ v)", "result = (F.dropout(weights, self.rate) @ v)")
    minding = text.replace("self.rate)", "self.rate, self.training)")
    always, in_train = (
        shared_engine.grade(
            "cross_attention", (HEAD + each.replace("rate", "dropout_rate")).encode(), attempt="mine.py", reads=True
        )
        for each in (text, minding)
    )

    assert told(always) == {"dropout.always"}
    assert in_train.outcome == "passed", in_train.ungraded_because


def test_a_dropout_whose_result_is_forgotten_is_named(shared_engine):
    right = ATTEND.replace("width, n_heads):", "width, n_heads, p):").replace(
        "self.h, self.d = n_heads,", "self.drop, self.h, self.d = nn.Dropout(p), n_heads,"
    )
    assert "self.drop" in right
    none, forgotten = (
        shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)
        for text in (
            right.replace("nn.Dropout(p)", "p"),
            right.replace("        return", "        self.drop(weights)\n        return"),
        )
    )

    assert none.outcome == "passed"  # an author may drop elsewhere, or not at all
    assert forgotten.outcome == "failed"
    assert told(forgotten) == {"dropout.never"}


def test_one_layer_for_all_three_is_named_beside_another_mistake(shared_engine):
    text = ATTEND.replace("for w in (self.w_q, self.w_k, self.w_v))", "for w in (self.w_q, self.w_q, self.w_q))")
    text = text.replace("F.softmax(scores, dim=-1)", "F.softmax(scores, dim=-2)")
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert told(report) == {"project.query_for_key", "softmax.query_axis"}, report.ungraded_because


UNNAMED = """
class Cross(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h = n_heads
        self.q_proj, self.k_proj, self.v_proj, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, sensors, images):
        q, k, v = self.q_proj(sensors), self.k_proj(images), self.v_proj(images)
        q, k, v = (one.unflatten(-1, (self.h, -1)).transpose(1, 2) for one in (q, k, v))
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return self.o((weights @ v).transpose(1, 2).flatten(2))
"""
TURNED = UNNAMED.replace("sensors, images)", "images, sensors)")


@pytest.mark.parametrize("text", [UNNAMED, TURNED], ids=["queries_first", "context_first"])
def test_what_two_inputs_are_is_told_by_their_layers(text, shared_engine):
    report = shared_engine.grade("cross_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed", report.ungraded_because


ROOT_OF_A_SIZE = """
def attend(q, k, v):
    scores = q.bmm(k.transpose(1, 2)) / torch.sqrt(k.size(2))
    return scores.softmax(-1).bmm(v)
"""
# A local name of another method is no attribute.
LOCAL_NAME = ATTEND.replace("self.h, self.d = n_heads,", "self.h, d = n_heads,").replace(
    "    def forward", "    def size(self):\n        d = 1\n        return d\n\n    def forward"
)
OTHER_NAME = ATTEND.replace("mask=None", "attn_mask=None").replace("if mask is", "if attn_mask is")
LOCAL_FUNCTION = ATTEND.replace(
    "        B, T, E = x.shape\n",
    "        B, T, E = x.shape\n\n        def joined(self, heads):\n"
    "            return heads.transpose(1, 2).reshape(B, T, E)\n\n",
).replace("(weights @ v).transpose(1, 2).reshape(B, T, E)", "self.joined(weights @ v)")
NO_INPUT = ATTEND.replace("x, mask=None", "inputs, mask=None")
NEARLY_TAKEN = (
    ATTEND.replace("x, mask=None", "tokens, mask=None").replace("x.shape", "token.shape").replace("w(x)", "w(tokens)")
)
MISSPELT = ATTEND.replace("F.softmax(scores, dim=-1)", "torch.sofmax(scores, dim=-1)")


NO_SELF = ATTEND.replace("out = self.w_o(", "out = w_o(")
A_LETTER_OFF = ATTEND.replace("(weights @ v)", "(weigths @ v)")
NO_SUCH_DIM = ATTEND.replace("F.softmax(scores, dim=-1)", "F.softmax(scores, dim=4)")
KEYS_AS_THEY_COME = ATTEND.replace("q @ k.transpose(-2, -1)", "torch.matmul(q, k)")
NO_RETURN = ATTEND.replace("        return ", "        self.weights = weights\n        out = ")
NO_SELF_OF_A_SIZE = ATTEND.replace("math.sqrt(self.d)", "math.sqrt(d)")


@pytest.mark.parametrize(
    ("kata", "text", "id"),
    [
        ("mha", NO_SELF, "python.undefined_name"),
        ("mha", NO_SELF_OF_A_SIZE, "python.undefined_name"),
        ("mha", A_LETTER_OFF, "python.undefined_name"),
        ("mha", NO_SUCH_DIM, "python.arguments"),
        ("mha", KEYS_AS_THEY_COME, "score.not_transposed"),
        ("mha", NO_RETURN, "python.no_return"),
        ("sdpa", ROOT_OF_A_SIZE, "numerics.root_of_number"),
        ("mha", LOCAL_FUNCTION, "python.undefined_name"),
        ("mha", LOCAL_NAME, "python.undefined_name"),
        ("mha", OTHER_NAME, "python.undefined_name"),
        ("mha", NO_INPUT, "python.undefined_name"),
        ("mha", NEARLY_TAKEN, "python.undefined_name"),
        ("mha", MISSPELT, "python.undefined_name"),
    ],
)
def test_what_raises_in_every_call_by_its_own_mistake_is_named(kata, text, id, shared_engine):
    report = shared_engine.grade(kata, (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert told(report) == {id}, report.ungraded_because


def test_a_function_that_takes_no_input_may_be_a_piece_of_a_script(shared_engine):
    text = "def attend(W_q, W_k, W_v):\n    q, k, v = x @ W_q, x @ W_k, x @ W_v\n"
    text += "    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1]), dim=-1) @ v\n"
    report = shared_engine.grade("sdpa", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"


@pytest.mark.parametrize("sets", ["for x in range(3):\n    print(x)\n", "from elsewhere import *\n"])
def test_a_name_that_other_code_may_set_is_no_verdict(sets, shared_engine):
    report = shared_engine.grade("mha", (HEAD + sets + NO_INPUT).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"
    assert "name 'x' is not defined" in report.ungraded_because


def test_a_name_that_is_like_none_of_the_code_is_no_verdict(shared_engine):
    text = ATTEND.replace("        weights =", "        scores = scores.to(normaliser)\n        weights =")
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"
    assert "name 'normaliser' is not defined" in report.ungraded_because


def test_a_rate_in_a_sequence_of_layers_is_the_codes_own(shared_engine):
    text = ATTEND.replace(
        "self.w_v, self.w_o = nn.Linear(width, width), nn.Linear(width, width)",
        "self.w_v = nn.Linear(width, width)\n"
        "        self.drop = nn.Dropout(0.1)\n"
        "        self.w_o = nn.Sequential(nn.Linear(width, width), nn.Dropout(0.1))",
    ).replace("weights = F.softmax(scores, dim=-1)", "weights = self.drop(F.softmax(scores, dim=-1))")
    assert text.count("Dropout") == 2
    assert "self.drop(F" in text

    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed", report.ungraded_because
    assert "a dropout rate of its own" in report.reading["departures"]


def test_a_method_that_only_sets_a_dropout_forgets_nothing(shared_engine):
    text = ATTEND.replace("width, n_heads):", "width, n_heads, p):").replace(
        "self.h, self.d = n_heads,", "self.set_dropout(p)\n        self.h, self.d = n_heads,"
    )
    text = text.replace("    def forward", "    def set_dropout(self, p):\n        self.p = p\n\n    def forward")
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed"


def test_a_dropout_that_is_forgotten_is_said_where_the_kata_has_none(shared_engine):
    text = UNNAMED.replace("self.h = n_heads", "self.h, self.drop = n_heads, nn.Dropout(0.1)").replace(
        "        return self.o(", "        dropped = self.drop(weights)\n        return self.o("
    )
    report = shared_engine.grade("cross_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed"
    assert any("dropout.never" in note for note in report.reading["notes"])


BEHIND_TOKENS = """
class Heads(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h = n_heads
        self.linear = nn.ModuleList([nn.Linear(width, width) for _ in range(4)])

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            layer(one).unflatten(-1, (self.h, -1)).transpose(1, 2)
            for layer, one in zip(self.linear, (query, key, value))
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        out = F.softmax(scores, dim=-1) @ v
        return self.linear[-1](out.transpose(1, 2).flatten(2))
"""


def test_weights_of_another_shape_that_nobody_returns_hide_no_mistake(shared_engine):
    wrong = BEHIND_TOKENS.replace("(self.h, -1)).transpose(1, 2)", "(self.h, -1))").replace(
        "out.transpose(1, 2).flatten", "out.flatten"
    )
    right_one, wrong_one = (
        shared_engine.grade("qkv_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)
        for text in (BEHIND_TOKENS, wrong)
    )

    assert right_one.outcome == "passed", right_one.ungraded_because
    assert told(wrong_one) == {"split.order"}, wrong_one.ungraded_because


DROPS_BY_A_MODULE = """
def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, dropout: nn.Module):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    return dropout(torch.softmax(scores, dim=-1)) @ v
"""
IN_A_DECODER = UNNAMED.replace("n_heads):", "n_heads, in_decoder=False):").replace(
    "self.h = n_heads", "self.h, self.in_decoder = n_heads, in_decoder"
)
IN_A_DECODER = IN_A_DECODER.replace("sensors, images)", "sensors, images, images_lengths)").replace(
    "        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)",
    "        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])\n"
    "        hidden = torch.arange(k.shape[2])[None] >= images_lengths[:, None]\n"
    "        scores = scores.masked_fill(hidden[:, None, None], float('-inf'))\n"
    "        if self.in_decoder and torch.equal(sensors, images):\n"
    "            later = torch.ones(q.shape[2], k.shape[2]).tril().bool()\n"
    "            scores = scores.masked_fill(later, float('-inf'))\n"
    "        weights = torch.softmax(scores, dim=-1)",
)


@pytest.mark.parametrize(("kata", "text"), [("sdpa", DROPS_BY_A_MODULE), ("cross_attention", IN_A_DECODER)])
def test_it_is_read_with_what_it_is_given(kata, text, shared_engine):
    report = shared_engine.grade(kata, (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed", report.ungraded_because


MATRICES = """
class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.n_heads, self.size = n_heads, width // n_heads
        self.WQ, self.WK, self.WV = [], [], []
        for _ in range(n_heads):
            self.WQ.append(nn.Parameter(torch.randn(width, self.size)))
            self.WK.append(nn.Parameter(torch.randn(width, self.size)))
            self.WV.append(nn.Parameter(torch.randn(width, self.size)))
        self.WO = nn.Parameter(torch.randn(width, width))

    def forward(self, x):
        found = []
        for i in range(self.n_heads):
            q, k, v = x @ self.WQ[i], x @ self.WK[i], x @ self.WV[i]
            found.append(torch.softmax(q @ k.mT / math.sqrt(self.size), dim=-1) @ v)
        return torch.cat(found, dim=-1) @ self.WO
"""


def test_matrices_in_a_plain_list_are_named_and_the_rest_is_graded(shared_engine):
    text = MATRICES.replace(
        "self.WQ, self.WK, self.WV = [], [], []", "self.WQ = []\n        self.WK = []\n        self.WV = []"
    )
    known = text
    for name in ("WQ", "WK", "WV"):
        known = known.replace(f"self.{name} = []", f"self.{name} = nn.ParameterList()")
    listed, unscaled, right = (
        shared_engine.grade("mha", (HEAD + each).encode(), attempt="mine.py", reads=True)
        for each in (text, text.replace(" / math.sqrt(self.size)", ""), known)
    )

    assert told(listed) == {"module.unregistered"}
    assert told(unscaled) == {"module.unregistered", "scale.missing"}
    assert right.passed, right.ungraded_because


TWO_OUTPUTS = """
class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.queries, self.keys, self.values = (nn.Linear(width, width) for _ in range(3))
        self.linear_layer = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for layer in (self.queries, self.keys, self.values)
        )
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        return self.projection((weights @ v).transpose(1, 2).flatten(2))
"""


def test_a_layer_that_nothing_reads_is_none_of_them(shared_engine):
    report = shared_engine.grade("mha", (HEAD + TWO_OUTPUTS).encode(), attempt="mine.py", reads=True)

    assert report.passed, report.ungraded_because
    assert "o=projection.weight" in " ".join(report.reading["flags"])


def test_matrices_in_a_list_may_be_known_in_another_way(shared_engine):
    text = MATRICES.replace(
        "self.WQ, self.WK, self.WV = [], [], []", "self.WQ = []\n        self.WK = []\n        self.WV = []"
    )
    for name in ("WQ", "WK", "WV"):
        known = f"        for i, one in enumerate(self.{name}):\n            self.register_parameter(f'{name}_{{i}}', one)\n"
        text = text.replace("        self.WO =", f"{known}        self.WO =")

    assert not told(shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True))


NORMALIZED = """
class Normalization(nn.Module):
    def forward(self, scores):
        return torch.softmax(scores, dim=-1)


class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.normalize = Normalization()

    def mask_properly(self, scores):
        return scores.masked_fill(torch.ones_like(scores).triu(1) == 1, float("-inf"))

    def forward(self, x):
        q, k, v = (layer(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for layer in (self.query, self.key, self.value))
        weights = self.normalize(self.mask_properly(q @ k.mT / math.sqrt(q.shape[-1])))
        return self.out((weights @ v).transpose(1, 2).flatten(2))
"""


def test_a_normalization_of_scores_is_no_norm_and_what_masks_properly_turns_nothing(shared_engine):
    report = shared_engine.grade("mha", (HEAD + NORMALIZED).encode(), attempt="mine.py", reads=True)

    assert report.passed, report.ungraded_because


MADE = ATTEND.replace("width, n_heads):", "width, n_heads, dropout=0.0):").replace(
    "self.h, self.d = n_heads,", "self.drop = nn.Dropout(dropout)\n        self.h, self.d = n_heads,"
)


def test_a_dropout_that_is_made_and_never_called_is_a_mistake(shared_engine):
    report = shared_engine.grade("mha", (HEAD + MADE).encode(), attempt="mine.py", reads=True)

    assert told(report) == {"dropout.never"}
    line = report.diagnosis[0].mistakes[0].line
    assert "self.drop = nn.Dropout(dropout)" in (HEAD + MADE).splitlines()[line - 1]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        out = self.w_o", "        # weights = self.drop(weights)\n        out = self.w_o"),  # on purpose
        ("self.drop = nn.Dropout(dropout)", "self.resid_drop = nn.Dropout(dropout)"),  # not of the weights
        ("self.drop = nn.Dropout(dropout)", "self.rate = dropout"),
        ("self.drop = nn.Dropout(dropout)", "self.drop = nn.Dropout(0.0)"),
    ],
)
def test_a_dropout_that_may_be_left_out_on_purpose_is_said_alone(old, new, shared_engine):
    assert MADE.count(old) == 1
    report = shared_engine.grade("mha", (HEAD + MADE.replace(old, new)).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed"
    assert not told(report)


def test_a_dropout_that_a_class_below_calls_is_not_forgotten(shared_engine):
    below = """

class Below(Attend):
    def forward(self, x, mask=None):
        return self.drop(super().forward(x, mask))
"""
    name = MADE.split("class ")[1].split("(")[0]
    text = HEAD + MADE + below.replace("Attend", name)
    report = shared_engine.grade("mha", text.encode(), attempt="mine.py", reads=True, flags=(f"entry={name}",))

    assert report.outcome == "passed", report.ungraded_because
    assert not told(report)
