"""Learned scores, as of Luong and Bahdanau, with more layers or more kinds of score than the kata has."""

from __future__ import annotations

import pytest
from tests.readings.pairs import right_and_wrong, told
from tests.readings.test_kinds import HEAD

from attn_kata.readings import inference

# The context goes on, beside the query, through a layer and tanh (Luong et al., 2015): the weights are what can be compared.
CONTEXT_GOES_ON = """
class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear_out = nn.Linear(2 * dim, dim)

    def forward(self, output, context):
        weights = F.softmax(torch.bmm(output, context.transpose(1, 2)), dim=2)
        mixed = torch.cat((torch.bmm(weights, context), output), dim=2)
        return torch.tanh(self.linear_out(mixed)), weights
"""
# The same with a softmax by another name, and a layer of the query.
SOFTMAX_BY_ANOTHER_NAME = """
class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear_in = nn.Linear(dim, dim, bias=False)
        self.sm = nn.Softmax(dim=1)
        self.linear_out = nn.Linear(2 * dim, dim, bias=False)

    def forward(self, query, context):
        weights = self.sm(torch.bmm(context, self.linear_in(query).unsqueeze(2)).squeeze(2))
        mixed = torch.bmm(weights.unsqueeze(1), context).squeeze(1)
        return torch.tanh(self.linear_out(torch.cat((mixed, query), 1))), weights
"""
PRODUCT_OF_TWO_LAYERS = """
class Attention(nn.Module):
    def __init__(self, hidden_size, attention_size):
        super().__init__()
        self.of_listener = nn.Linear(hidden_size, attention_size)
        self.of_speller = nn.Linear(hidden_size, attention_size)

    def forward(self, h_enc, h_dec):
        scores = self.of_listener(h_enc) @ self.of_speller(h_dec).permute(1, 2, 0)  # (B, T, 1)
        return (h_enc.transpose(1, 2) @ F.softmax(scores, dim=1)).transpose(1, 2)
"""
KIND_IN_THE_CALL = """
class Attention(nn.Module):
    def __init__(self, hidden_dim):
        super().__init__()
        self.Wa = nn.Linear(hidden_dim, hidden_dim, bias=False)

    def forward(self, encoder_outputs, decoder_hidden, align_method):
        if align_method == "dot":
            keys = encoder_outputs
        elif align_method == "general":
            keys = self.Wa(encoder_outputs)
        else:
            raise ValueError("choose dot or general")
        weights = torch.softmax(torch.bmm(keys, decoder_hidden.unsqueeze(2)), dim=1)
        return (weights * encoder_outputs).sum(1), weights
"""
# A well-known way to write it: the layer has one output, so that the weights do not depend on the query.
ONE_VECTOR_FOR_BOTH = """
class Attention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.energy = nn.Linear(hidden_size * 3, 1)

    def forward(self, decoder_hidden, encoder_output):
        expanded = decoder_hidden.unsqueeze(1).expand(-1, encoder_output.size(1), -1)
        weights = F.softmax(self.energy(torch.cat((expanded, encoder_output), 2)), dim=1)
        return (weights * encoder_output).sum(1)
"""
KINDS_BY_A_NAME = """
class Attention(nn.Module):
    def __init__(self, name, query_dim, value_dim, attn_dim):
        super().__init__()
        self.name = name
        if name == "dot":
            pass
        elif name in ["general", "gen"]:
            self.w = nn.Linear(value_dim, query_dim)
        elif name in ["concat", "cat"]:
            self.w, self.v = nn.Linear(query_dim + value_dim, attn_dim), nn.Linear(attn_dim, 1)

    def forward(self, dec_hidden, enc_outputs):
        if self.name in ["concat", "cat"]:
            query = dec_hidden[:, None].expand(-1, enc_outputs.shape[1], -1)
            scores = self.v(torch.tanh(self.w(torch.cat((query, enc_outputs), -1))))
        else:
            keys = enc_outputs if self.name == "dot" else self.w(enc_outputs)
            scores = keys @ dec_hidden[..., None]
        return (F.softmax(scores, dim=1) * enc_outputs).sum(1)
"""
QUERY_BESIDE_CONTEXT = """
class LuongAttention(nn.Module):
    def __init__(self, encoder_size, decoder_size):
        super().__init__()
        self.softmax = nn.Softmax(dim=-1)
        self.linear = nn.Linear(decoder_size, encoder_size)

    def forward(self, decoder_outputs, encoder_outputs):
        attn_weight = self.softmax(torch.bmm(self.linear(decoder_outputs), encoder_outputs.transpose(1, 2)))
        context = torch.bmm(attn_weight, encoder_outputs)
        output = torch.cat([decoder_outputs, context], dim=-1)
        return output, attn_weight
"""
# The widths have the names of the inputs, and a layer follows.
NAMED_BY_INPUTS = """
class MultiplicativeAttention(nn.Module):
    def __init__(self, q_dim, s_dim, out_dim):
        super().__init__()
        self.w = nn.Parameter(torch.randn(q_dim, s_dim))
        self.out = nn.Linear(s_dim, out_dim)

    def forward(self, q, s, mask):
        \"\"\"q: [B, q_len, q_dim], s: [B, s_len, s_dim], mask: [B, 1, s_len]\"\"\"
        scores = torch.einsum("bqi,ij,bsj->bqs", q, self.w, s)
        scores.masked_fill_(mask == 0, -1e10)
        weights = F.softmax(scores, dim=-1)
        return weights, self.out(weights @ s)
"""
PAIRS = {
    "widths_named_by_inputs": (
        NAMED_BY_INPUTS,
        "F.softmax(scores, dim=-1)",
        "F.softmax(scores, dim=-2)",
        {"softmax.query_axis"},
    ),
    "the_query_beside_the_context": (
        QUERY_BESIDE_CONTEXT,
        "nn.Softmax(dim=-1)",
        "nn.Softmax(dim=1)",
        {"softmax.query_axis"},
    ),
    "the_context_goes_on": (CONTEXT_GOES_ON, "dim=2)\n        mixed", "dim=1)\n        mixed", {"softmax.query_axis"}),
    "a_softmax_by_another_name": (
        SOFTMAX_BY_ANOTHER_NAME,
        "nn.Softmax(dim=1)",
        "nn.Softmax(dim=0)",
        {"softmax.head_axis"},
    ),
    "a_product_of_two_layers": (PRODUCT_OF_TWO_LAYERS, "F.softmax(scores, dim=1)", "scores", {"softmax.missing"}),
    "a_kind_in_the_call": (
        KIND_IN_THE_CALL,
        "torch.softmax(torch.bmm(keys, decoder_hidden.unsqueeze(2)), dim=1)",
        "torch.bmm(keys, decoder_hidden.unsqueeze(2))",
        {"softmax.missing"},
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_it_is_read_and_hides_no_mistake(name, shared_engine):
    text, old, new, named = PAIRS[name]
    _, wrong = right_and_wrong(shared_engine, "multiplicative_attention", text, old, new)

    assert told(wrong) == named


def test_that_only_the_weights_are_graded_is_said(shared_engine):
    text = (HEAD + CONTEXT_GOES_ON).encode()
    report = shared_engine.grade("multiplicative_attention", text, attempt="mine.py", reads=True)

    assert "Its output goes through linear_out and is not graded: its weights are" in report.reading["notes"]


def test_that_a_query_beside_the_context_is_not_graded_is_said(shared_engine):
    text = (HEAD + QUERY_BESIDE_CONTEXT).encode()
    report = shared_engine.grade("multiplicative_attention", text, attempt="mine.py", reads=True)

    assert "Its output is the query beside the context, and is not graded: its weights are" in report.reading["notes"]


def test_one_vector_for_query_and_key_is_named(shared_engine):
    report = shared_engine.grade(
        "additive_attention", (HEAD + ONE_VECTOR_FOR_BOTH).encode(), attempt="mine.py", reads=True
    )
    again = shared_engine.grade(
        "additive_attention",
        (HEAD + ONE_VECTOR_FOR_BOTH).encode(),
        attempt="mine.py",
        reads=True,
        flags=tuple(report.reading["flags"]),
    )

    assert told(report) == told(again) == {"additive.no_tanh"}


@pytest.mark.parametrize("slug", ["additive_attention", "multiplicative_attention"])
def test_the_kind_of_score_that_the_kata_asks_for_is_chosen(slug, shared_engine):
    right, wrong = (
        shared_engine.grade(slug, (HEAD + text).encode(), attempt="mine.py", reads=True)
        for text in (KINDS_BY_A_NAME, KINDS_BY_A_NAME.replace("F.softmax(scores, dim=1)", "scores"))
    )

    assert right.outcome == "passed", right.ungraded_because
    assert told(wrong) == {"softmax.missing"}


NAMES_OF_ITS_METHOD = """
class Attention(nn.Module):
    def mix(self, encoder_outputs, decoder_outputs):
        weights = F.softmax(decoder_outputs.bmm(encoder_outputs.transpose(1, 2)), dim=-1)
        return weights.bmm(encoder_outputs)

    def forward(self, out_e, out_d):
        return self.mix(out_e, out_d)
"""


def test_inputs_are_known_by_what_a_method_calls_them(shared_engine):
    right, wrong = right_and_wrong(shared_engine, "multiplicative_attention", NAMES_OF_ITS_METHOD, "dim=-1", "dim=1")

    assert right.reading is not None
    assert "call=out_e=k,out_d=q" in right.reading["flags"]
    assert told(wrong) == {"softmax.query_axis"}


# The score stands below the softmax in the text, and is called before it.
SCORE_BELOW = """
class Attn(nn.Module):
    def __init__(self, method, hidden_size):
        super().__init__()
        self.method, self.hidden_size = method, hidden_size
        if method == "general":
            self.attn = nn.Linear(hidden_size, hidden_size)
        elif method == "concat":
            self.attn = nn.Linear(hidden_size * 2, hidden_size)
            self.v = nn.Parameter(torch.rand(1, hidden_size))

    def forward(self, hidden, encoder_outputs):
        # hidden (1, B, E), encoder_outputs (L, B, E)
        return F.softmax(self.score(hidden, encoder_outputs), dim=1).unsqueeze(1)

    def score(self, hidden, encoder_outputs):
        length, batch_size, _ = encoder_outputs.size()
        if self.method == "general":
            return torch.bmm(hidden.transpose(0, 1), self.attn(encoder_outputs).permute(1, 2, 0)).squeeze(1)
        sides = torch.cat((hidden.repeat(length, 1, 1), encoder_outputs), dim=2)
        energy = self.attn(sides.view(-1, 2 * self.hidden_size)).view(length, batch_size, self.hidden_size)
        return torch.bmm(self.v.repeat(batch_size, 1, 1), torch.tanh(energy).permute(1, 2, 0)).squeeze(1)
"""


@pytest.mark.parametrize(
    ("slug", "edit", "id"),
    [
        ("additive_attention", ("torch.tanh(energy)", "energy"), "additive.no_tanh"),
        (
            "multiplicative_attention",
            ("F.softmax(self.score(hidden, encoder_outputs), dim=1)", "self.score(hidden, encoder_outputs)"),
            "softmax.missing",
        ),
    ],
)
def test_a_score_below_the_softmax_in_the_text_is_read(slug, edit, id, shared_engine):
    """And where one size of the code's stands for query, keys and what it compares, all are as wide."""
    _, wrong = right_and_wrong(shared_engine, slug, SCORE_BELOW, *edit)

    assert told(wrong) == {id}


def test_an_input_whose_name_says_nothing_takes_the_place_that_the_others_leave(shared_engine):
    text = KIND_IN_THE_CALL.replace("encoder_outputs", "inputs").replace("decoder_hidden", "hidden")

    right, wrong = right_and_wrong(shared_engine, "multiplicative_attention", text, "dim=1", "dim=0")

    assert right.reading is not None
    assert "inputs=k,hidden=q" in str(right.reading["flags"])
    assert told(wrong) == {"softmax.head_axis"}


SCALED = """
class DotProductAttention(nn.Module):
    def forward(self, query, keys, mask=None):
        scores = torch.bmm(query, keys.transpose(1, 2)) / math.sqrt(query.size(-1))
        if mask is not None:
            scores = scores.masked_fill(mask.unsqueeze(1) == 0, -1e9)
        return torch.bmm(F.softmax(scores, dim=-1), keys)
"""
SCALED_WITH_A_LAYER = """
class LuongAttention(nn.Module):
    def __init__(self, dec_dim, enc_dim):
        super().__init__()
        self.W = nn.Linear(enc_dim, dec_dim, bias=False)
        self.scale = 1.0 / math.sqrt(dec_dim)

    def forward(self, decoder_hidden, encoder_outputs):
        scores = torch.bmm(self.W(encoder_outputs), decoder_hidden.unsqueeze(2)).squeeze(2) * self.scale
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights.unsqueeze(1), encoder_outputs).squeeze(1), weights
"""


@pytest.mark.parametrize("text", [SCALED, SCALED_WITH_A_LAYER])
def test_a_score_that_is_scaled_is_a_convention_that_is_said(text, shared_engine):
    right, wrong = right_and_wrong(shared_engine, "multiplicative_attention", text, "dim=-1)", "dim=-2)")

    assert inference.kata_of((HEAD + text).encode())[0] == "multiplicative_attention"
    assert any("this is scale.unwanted" in note for note in right.reading["notes"])
    assert told(wrong) in ({"softmax.query_axis"}, {"softmax.head_axis"})


NAMES_BY_A_LETTER = """
class Attention(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(hidden_size, input_size), nn.Linear(hidden_size, input_size)
        self.linear3 = nn.Linear(input_size, 1)

    def forward(self, out_e, hidden_d):
        hidden_d = hidden_d.repeat(out_e.shape[0], 1, 1)
        weights = torch.softmax(self.linear3(torch.tanh(self.linear1(hidden_d) + self.linear2(out_e))), dim=0)
        return torch.einsum("sne,snh->enh", weights, out_e), weights
"""


def test_states_of_an_encoder_and_a_decoder_by_a_letter(shared_engine):
    report = shared_engine.grade(
        "additive_attention", (HEAD + NAMES_BY_A_LETTER).encode(), attempt="mine.py", reads=True
    )

    assert report.outcome == "passed", report.ungraded_because
    assert "call=out_e=k,hidden_d=q" in report.reading["flags"]


STATES_BY_A_LETTER = '''
class Pooled(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.to_h, self.to_q = nn.Linear(size, size, bias=False), nn.Linear(size, size, bias=False)
        self.score = nn.Linear(size, 1, bias=False)

    def forward(self, h, q):
        """h are the hidden states (batch, seq_len, size), and q is one of them (batch, size)."""
        weights = torch.softmax(self.score(torch.tanh(self.to_h(h) + self.to_q(q.unsqueeze(1)))), dim=1)
        return (weights * h).sum(dim=1)
'''


def test_beside_a_query_the_hidden_states_are_the_keys(shared_engine):
    right, wrong = right_and_wrong(shared_engine, "additive_attention", STATES_BY_A_LETTER, ")), dim=1)", ")), dim=0)")

    assert "call=h=k,q=q" in right.reading["flags"]
    assert "time first" not in " ".join(right.reading["departures"])
    assert told(wrong) == {"softmax.head_axis"}  # or over the batch


A_LAYER_AFTER_VALUES = """
WIDTH_OF_SCORE = 24

class Additive(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.w_q, self.w_k = nn.Linear(dim, WIDTH_OF_SCORE), nn.Linear(dim, WIDTH_OF_SCORE)
        self.v, self.out = nn.Linear(WIDTH_OF_SCORE, 1), nn.Linear(dim, dim)

    def forward(self, query, keys, values, mask=None):
        score = self.v(torch.tanh(self.w_q(query).unsqueeze(1) + self.w_k(keys))).squeeze(-1)
        if mask is not None:
            score = score.masked_fill(mask == 0, -1e9)
        weights = F.softmax(score, dim=-1)
        return self.out(torch.bmm(weights.unsqueeze(1), values).squeeze(1)), weights
"""


def test_values_are_as_wide_as_a_layer_after_them_needs(shared_engine):
    _, wrong = right_and_wrong(shared_engine, "additive_attention", A_LAYER_AFTER_VALUES, "dim=-1", "dim=0")

    assert told(wrong) == {"softmax.head_axis"}  # or over the batch
