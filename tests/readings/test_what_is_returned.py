"""What code returns otherwise than the contract: heads side by side, the weights under a name that says output."""

from __future__ import annotations

import pytest
from tests.readings.test_kinds import HEAD
from tests.readings.test_search import read

from attn_kata.readings.choice import Chosen

JOINED = """
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    out = torch.softmax(scores, dim=-1) @ v
    B, H, T, D = out.shape
    return out.transpose(1, 2).reshape(B, T, H * D)
"""
BY_EINOPS = "from einops import rearrange\n" + JOINED.replace("    B, H, T, D = out.shape\n", "").replace(
    "out.transpose(1, 2).reshape(B, T, H * D)", 'rearrange(out, "b h t d -> b t (h d)")'
)


@pytest.mark.parametrize("text", [JOINED, BY_EINOPS])
def test_a_function_that_returns_its_heads_side_by_side_is_read(text):
    right, wrong = read(HEAD + text, "sdpa"), read(HEAD + text.replace("math.sqrt(q.shape[-1])", "q.shape[-1]"), "sdpa")

    assert isinstance(right, Chosen)
    assert (right.mistakes, right.reading.joins, right.reading.mask) == (0, True, "keep")
    assert read(HEAD + text, "sdpa", *right.reading.flags()).reading == right.reading
    assert wrong.mistakes == 1


NAMED = """
class Heads(nn.Module):
    def __init__(self, dim_model, num_heads):
        super().__init__()
        self.h = num_heads
        self.q, self.k, self.v = (nn.Linear(dim_model, dim_model) for _ in range(3))
        self.linear = nn.Linear(dim_model, dim_model)

    def forward(self, query, key, value, mask=None):
        q, k, v = self.q(query), self.k(key), self.v(value)
        q, k, v = (one.unflatten(-1, (self.h, -1)).transpose(1, 2) for one in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        scores = scores if mask is None else scores.masked_fill(mask == 0, -1e9)
        softmax_out = scores.softmax(-1)
        attention = self.linear((softmax_out @ v).transpose(1, 2).flatten(2))
        return attention, softmax_out
"""


@pytest.mark.parametrize(
    "text",
    [
        NAMED,
        NAMED.replace("softmax_out", "out_of_heads"),
        NAMED.replace("return attention, softmax_out", "return softmax_out, attention"),
    ],
)
def test_which_of_two_results_is_the_output_is_found_whatever_their_names(text):
    right, wrong = (
        read(HEAD + one, "qkv_attention") for one in (text, text.replace("q.shape[-1])", "query.shape[-1])"))
    )

    assert isinstance(right, Chosen)
    assert (right.mistakes, set(right.reading.places)) == (0, {"0", "1"})
    assert wrong.mistakes == 1


GENERAL = """
class GeneralScore(nn.Module):
    def __init__(self, hidden_dim):
        super().__init__()
        self.wa = nn.Linear(hidden_dim, hidden_dim)

    def forward(self, encoder_outputs, decoder_hidden):
        keys = self.wa(encoder_outputs)
        weights = F.softmax(torch.bmm(decoder_hidden.unsqueeze(1), keys.transpose(1, 2)).squeeze(1), dim=1)
        context = torch.bmm(weights.unsqueeze(1), encoder_outputs)
        return context.squeeze(1), weights
"""


@pytest.mark.parametrize(("values", "mistakes"), [("encoder_outputs", []), ("keys", ["mix.keys"])])
def test_right_weights_beside_a_wrong_context_hide_nothing(values, mistakes, shared_engine):
    text = HEAD + GENERAL.replace("unsqueeze(1), encoder_outputs)", f"unsqueeze(1), {values})")
    report = shared_engine.grade("multiplicative_attention", text.encode(), attempt="mine.py", reads=True)

    assert [each.id for one in report.diagnosis for each in one.mistakes] == mistakes
    assert (report.outcome == "passed") == (not mistakes)


OF_A_LIBRARY = """
def repeat_kv(x, n_rep):
    return x if n_rep == 1 else x.repeat_interleave(n_rep, dim=1)


def attention_forward(module: nn.Module, query, key, value, attention_mask, scaling: float, dropout: float = 0.0, **named):
    key, value = repeat_kv(key, module.num_key_value_groups), repeat_kv(value, module.num_key_value_groups)
    weights = torch.matmul(query, key.transpose(2, 3)) * scaling
    if attention_mask is not None:
        weights = weights + attention_mask[:, :, :, : key.shape[-2]]
    weights = F.softmax(weights, dim=-1, dtype=torch.float32).to(query.dtype)
    weights = F.dropout(weights, p=dropout, training=module.training)
    return torch.matmul(weights, value).transpose(1, 2).contiguous(), weights
"""


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ("dim=-1", "dim=-2", "softmax.query_axis"),
        (" * scaling", "", "scale.missing"),
        ("torch.matmul(weights, value)", "torch.matmul(weights, key)", None),
    ],
)
def test_a_function_that_a_module_calls_and_that_returns_its_heads_behind_the_tokens(old, new, mistake, shared_engine):
    assert OF_A_LIBRARY.count(old) == 1
    right, wrong = (
        shared_engine.grade("sdpa", (HEAD + text).encode(), attempt="mine.py", reads=True)
        for text in (OF_A_LIBRARY, OF_A_LIBRARY.replace(old, new))
    )

    assert right.outcome == "passed"
    assert {"returns the heads behind the tokens", "called with a stand-in for its module"} <= set(
        right.reading["departures"]
    )
    assert wrong.outcome == "failed"
    assert mistake is None or mistake in [one.id for found in wrong.diagnosis for one in found.mistakes]
