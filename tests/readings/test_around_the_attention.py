"""What lies around an attention in public code: sizes by other names, layers beside x, imports that are not there."""

from __future__ import annotations

import pytest
from tests.readings.test_interfaces import ATTEND
from tests.readings.test_kinds import HEAD
from tests.readings.test_masks_and_flags import told

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
KIND_BESIDE = ATTEND.replace("class ", "TOP_K = 2\n\n\nclass ", 1)
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
    "a_layer_that_is_not_here": ("mha", LAYER_THAT_IS_NOT_HERE, " / math.sqrt(self.d)", "", {"scale.missing"}),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_it_is_read_and_hides_no_mistake(name, shared_engine):
    slug, text, old, new, named = PAIRS[name]
    assert text.count(old) == 1
    right, wrong = (
        shared_engine.grade(slug, (HEAD + each).encode(), attempt="mine.py", reads=True)
        for each in (text, text.replace(old, new))
    )

    assert right.outcome == "passed", (right.ungraded_because, [one.message for one in right.findings])
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
