"""Learned scores without a layer of the keys: plain products, and keys that the caller has projected."""

from __future__ import annotations

import pytest
from tests.readings.test_kinds import HEAD

from attn_kata.readings import inference

DOT = """
class DotAttention(nn.Module):
    def forward(self, decoder_hidden, encoder_outputs):
        # decoder_hidden (batch, width), encoder_outputs (batch, tokens, width)
        scores = torch.bmm(encoder_outputs, decoder_hidden.unsqueeze(2)).squeeze(2)
        weights = torch.softmax(scores, dim=1)
        return torch.bmm(weights.unsqueeze(1), encoder_outputs).squeeze(1), weights
"""
CAPTIONS = """
class Attention(nn.Module):
    def __init__(self, opt):
        super().__init__()
        self.h2att = nn.Linear(opt.rnn_size, opt.att_hid_size)
        self.alpha_net = nn.Linear(opt.att_hid_size, 1)

    def forward(self, h, att_feats, p_att_feats, att_masks=None):
        dots = self.alpha_net(torch.tanh(p_att_feats + self.h2att(h).unsqueeze(1))).squeeze(-1)
        weights = F.softmax(dots, dim=1)
        if att_masks is not None:
            weights = weights * att_masks.to(weights)
            weights = weights / weights.sum(1, keepdim=True)
        return torch.bmm(weights.unsqueeze(1), att_feats).squeeze(1)
"""
# As in the annotated encoder-decoder: its layer of the keys is for its caller.
OF_A_CALLER = """
class Attention(nn.Module):
    def __init__(self, hidden_size, key_size=None, query_size=None):
        super().__init__()
        self.key_layer = nn.Linear(2 * hidden_size if key_size is None else key_size, hidden_size, bias=False)
        self.query_layer = nn.Linear(hidden_size if query_size is None else query_size, hidden_size, bias=False)
        self.energy_layer = nn.Linear(hidden_size, 1, bias=False)

    def forward(self, query=None, proj_key=None, value=None, mask=None):
        assert mask is not None, "mask is required"
        query = self.query_layer(query)
        scores = self.energy_layer(torch.tanh(query + proj_key)).squeeze(2).unsqueeze(1)
        weights = F.softmax(scores.masked_fill(mask == 0, -float("inf")), dim=-1)
        context = torch.bmm(weights, value)
        return context, weights
"""


@pytest.mark.parametrize(
    ("slug", "text"),
    [("multiplicative_attention", DOT), ("additive_attention", CAPTIONS), ("additive_attention", OF_A_CALLER)],
)
def test_keys_are_compared_as_they_are(slug, text, shared_engine):
    source = (HEAD + text).encode()
    told = inference.kata_of(source)
    report = shared_engine.grade(slug, source, attempt="mine.py", reads=True)
    flags = tuple(report.reading["flags"])
    typed_back = shared_engine.grade(slug, source, attempt="mine.py", reads=True, flags=flags)

    assert told is not None
    assert told[0] == slug
    assert report.outcome == "passed", report.ungraded_because
    assert "no layer of the keys" in report.reading["departures"]
    assert (typed_back.outcome, typed_back.reading["flags"]) == ("passed", list(flags))


@pytest.mark.parametrize(
    ("text", "old", "new", "mistake"),
    [
        (DOT, "scores, dim=1", "scores / scores.shape[1] ** 0.5, dim=1", None),
        (DOT, "dim=1", "dim=0", "softmax.head_axis"),
        (CAPTIONS, "torch.tanh(", "(", "additive.no_tanh"),
        (CAPTIONS, "weights.unsqueeze(1), att_feats)", "weights.unsqueeze(1), p_att_feats)", "mix.keys"),
        (CAPTIONS, "dim=1", "dim=0", "softmax.head_axis"),
        (OF_A_CALLER, "torch.tanh(", "(", "additive.no_tanh"),
        (OF_A_CALLER, "dim=-1)", "dim=0)", "softmax.head_axis"),
    ],
)
def test_its_mistakes_are_seen(text, old, new, mistake, shared_engine):
    assert text.count(old) == 1
    slug, source = "multiplicative_attention" if text == DOT else "additive_attention", HEAD + text.replace(old, new)
    report = shared_engine.grade(slug, source.encode(), attempt="mine.py", reads=True)

    assert report.outcome == ("failed" if mistake else "ungraded")
    assert mistake is None or mistake in [one.id for found in report.diagnosis for one in found.mistakes]


def test_code_that_keeps_its_result_returns_nothing_on_purpose(shared_engine):
    returned = "return torch.bmm(weights.unsqueeze(1), encoder_outputs).squeeze(1), weights"
    kept, lost = (DOT.replace(returned, line) for line in (f"self.context = {returned[7:-9]}", returned[7:]))
    outcomes = [
        shared_engine.grade("multiplicative_attention", (HEAD + text).encode(), attempt="mine.py", reads=True).outcome
        for text in (kept, lost)
    ]

    assert outcomes == ["ungraded", "failed"]


OUTPUTS_FIRST = """
class StateAttention(nn.Module):
    def __init__(self, hidden_dim):
        super().__init__()
        self.W_a, self.U_a = nn.Linear(hidden_dim, hidden_dim), nn.Linear(hidden_dim, hidden_dim)
        self.v_a = nn.Linear(hidden_dim, 1, bias=False)

    def forward(self, lstm_outputs, final_state):
        energy = torch.tanh(self.W_a(final_state.unsqueeze(1)) + self.U_a(lstm_outputs))
        weights = torch.softmax(self.v_a(energy), dim=1)
        return (weights * lstm_outputs).sum(1), weights
"""


def test_the_outputs_of_a_layer_are_keys_and_its_last_state_is_the_query(shared_engine):
    reports = [
        shared_engine.grade("additive_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)
        for text in (OUTPUTS_FIRST, OUTPUTS_FIRST.replace("torch.tanh(", "("))
    ]

    assert reports[0].outcome == "passed", reports[0].ungraded_because
    assert [one.id for found in reports[1].diagnosis for one in found.mistakes] == ["additive.no_tanh"]


PROJECTED = """
class AttentionContext(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.mlp_s = nn.Linear(hidden_size, hidden_size)
        self.mlp_h = nn.Linear(hidden_size, hidden_size)

    def forward(self, decoder_hidden, encoder_outputs):
        s, h = self.mlp_s(decoder_hidden), self.mlp_h(encoder_outputs)
        weights = torch.softmax(torch.bmm(h, s.unsqueeze(2)).squeeze(2), dim=1)
        return torch.bmm(weights.unsqueeze(1), h).squeeze(1)
"""


def test_the_projected_keys_may_be_meant_for_values_that_it_does_not_take(shared_engine):
    report = shared_engine.grade("multiplicative_attention", (HEAD + PROJECTED).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"


def test_a_scale_by_the_width_is_a_convention_that_is_said(shared_engine):
    scaled = DOT.replace("scores, dim=1", "scores / decoder_hidden.shape[1] ** 0.5, dim=1")
    report = shared_engine.grade("multiplicative_attention", (HEAD + scaled).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed", report.ungraded_because
    assert any("this is scale.unwanted" in note for note in report.reading["notes"])
