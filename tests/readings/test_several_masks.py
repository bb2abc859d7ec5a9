"""Code whose call takes more than one mask, or a mask that it cannot do without."""

from __future__ import annotations

import pytest
from tests.readings.test_kinds import HEAD
from tests.readings.test_search import read

from attn_kata.readings.choice import Chosen

TWO = """
class Heads(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h = n_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, query, key, value, attn_mask=None, key_padding_mask=None):
        q, k, v = self.w_q(query), self.w_k(key), self.w_v(value)
        q, k, v = (one.unflatten(-1, (self.h, -1)).transpose(1, 2) for one in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if attn_mask is not None:
            scores = scores.masked_fill(attn_mask, float("-inf"))
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None], float("-inf"))
        return self.w_o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""
OF_KEYS = """        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None], float("-inf"))
"""
LOST = TWO.replace("scores = scores.masked_fill(key_padding_mask", "scores.masked_fill(key_padding_mask")
ZEROED = TWO.replace('key_padding_mask[:, None, None], float("-inf")', "key_padding_mask[:, None, None], 0.0")
UNREAD = TWO.replace(
    OF_KEYS,
    "",
)


def test_each_of_two_masks_is_tried():
    found = read(HEAD + TWO, "qkv_attention")

    assert isinstance(found, Chosen)
    assert (found.mistakes, dict(found.reading.call)["attn_mask"], found.masks_untried) == (0, "mask", ())


@pytest.mark.parametrize("text", [LOST, ZEROED])
def test_a_mistake_of_the_second_mask_is_found_beside_a_first_that_is_right(text):
    found = read(HEAD + text, "qkv_attention")

    assert (found.mistakes, dict(found.reading.call)["key_padding_mask"]) == (1, "mask")
    assert any("With attn_mask it is right" in note for note in found.notes)


def test_a_mask_that_nothing_reads_is_said(shared_engine):
    report = shared_engine.grade("qkv_attention", (HEAD + UNREAD).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed"
    assert any(
        "key_padding_mask, and nothing reads it" in note and "mask.lost" in note for note in report.reading["notes"]
    )


LOOKED_AT = """
class Attend(nn.Module):
    def __init__(self, n_heads, mask_flag=True):
        super().__init__()
        self.n_heads, self.mask_flag = n_heads, mask_flag

    def forward(self, queries, keys, values, attn_mask):
        B, L, _ = queries.shape
        queries, keys, values = (one.view(B, one.shape[1], self.n_heads, -1) for one in (queries, keys, values))
        scores = torch.einsum("blhe,bshe->bhls", queries, keys) / math.sqrt(queries.shape[-1])
        if self.mask_flag:
            if attn_mask is None:
                # attn_mask = causal_mask(queries.shape[1])
                pass
            # scores.masked_fill_(attn_mask.mask, -math.inf)
        return torch.einsum("bhls,bshd->blhd", torch.softmax(scores, dim=-1), values).reshape(B, L, -1), None
"""


def test_a_mask_that_is_only_looked_at_is_said(shared_engine):
    report = shared_engine.grade("sdpa", (HEAD + LOOKED_AT).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed"
    assert (
        "The call takes attn_mask, and nothing reads it. If it is meant to hide keys, this is mask.lost"
        in (report.reading["notes"])
    )
