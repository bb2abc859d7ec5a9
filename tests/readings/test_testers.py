"""What two testers met with code of their own, in our words."""

from __future__ import annotations

import pytest
from tests.readings.pairs import told
from tests.readings.test_kinds import HEAD

from attn_kata.engine.client import Engine
from attn_kata.readings import inference
from attn_kata.report.model import Report

SELF = """
class SelfAttention(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.wqkv, self.wo = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)

    def forward(self, x{inputs}):
        B, T, D = x.shape
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for t in self.wqkv(x).chunk(3, -1))
        scores = q @ k.mT * q.size(-1) ** -0.5
        {masks}
        return self.wo((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


def code(*masks: str, inputs: str = "") -> str:
    return SELF.format(inputs=inputs, masks="\n        ".join(masks))


def graded(engine: Engine, text: str, slug: str = "mha", *flags: str) -> Report:
    return engine.grade(slug, (HEAD + text).encode(), attempt="mine.py", reads=True, flags=flags)


@pytest.mark.parametrize(
    "masks",
    [
        (
            "places = torch.arange(T)",
            "distance = places[:, None] - places[None, :]",
            "scores = scores.masked_fill(~((distance >= 0) & (distance < T)), float('-inf'))",
        ),
        ("p = torch.arange(T)", "scores = scores.masked_fill(p[None] > p[:, None], float('-inf'))"),
        ("for i in range(T):", "    scores[:, :, i, T - (T - 1 - i) :] = float('-inf')"),
    ],
    ids=["distance", "one_name", "in_a_loop"],
)
def test_later_keys_may_be_hidden_in_any_way_of_writing(masks: tuple[str, ...], shared_engine: Engine) -> None:
    right = graded(shared_engine, code(*masks))
    wrong = graded(shared_engine, code(*masks).replace(" * q.size(-1) ** -0.5", ""))

    assert right.passed, (told(right), right.ungraded_because)
    assert "always causal" in right.reading["departures"]
    assert told(wrong) == {"scale.missing"}


def test_what_is_meant_to_be_causal_and_is_shifted_is_no_other_reading(shared_engine: Engine) -> None:
    masks = ("p = torch.arange(T)", "scores = scores.masked_fill(p[None] > p[:, None] + 1, float('-inf'))")
    report = graded(shared_engine, code(*masks))

    assert not report.passed


@pytest.mark.parametrize(("name", "said"), [("sperre", "nicht gesehen werden"), ("blocked", "not be seen")])
def test_a_mask_of_any_name_is_one_where_it_fills_scores(name: str, said: str, shared_engine: Engine) -> None:
    masks = (f"# {name}: True = {said}", f"if {name} is not None:", f"    scores = scores.masked_fill({name}, -1e9)")
    text = code(*masks, inputs=f", {name}=None")
    right, wrong = (graded(shared_engine, each) for each in (text, text.replace(f"fill({name}", f"fill(~{name}")))

    assert right.passed, (told(right), right.ungraded_because)
    assert any(line["what"] == "mask" and "hidden" in line["value"] for line in right.reading["lines"])
    assert told(wrong) == {"mask.inverted"}


def test_a_smallest_number_that_overflows_in_float64_is_graded_in_float32(shared_engine: Engine) -> None:
    masks = "scores = scores + torch.full((T, T), torch.finfo(scores.dtype).min).triu(1)"
    report = graded(shared_engine, code(masks))

    assert report.passed, report.ungraded_because
    assert "float32=yes" in report.reading["flags"]


def test_a_scale_of_the_width_of_values_is_not_hidden_by_values_as_wide_as_keys(shared_engine: Engine) -> None:
    text = """
def attend(q, k, v, allowed=None, causal=False):
    scores = q @ k.mT * q.shape[-1] ** -0.5
    if causal:
        allowed = torch.arange(k.shape[-2]) <= torch.arange(q.shape[-2])[:, None]
    if allowed is not None:
        scores = torch.where(allowed, scores, -torch.inf)
    return scores.softmax(-1) @ v
"""
    right, wrong = (
        graded(shared_engine, each, "sdpa") for each in (text, text.replace("q.shape[-1] **", "v.shape[-1] **"))
    )

    assert right.passed
    assert not wrong.passed


def test_a_flag_of_a_cache_for_code_without_one_is_no_fault_of_the_file(shared_engine: Engine) -> None:
    report = graded(shared_engine, code("pass"), "mha", "by_token=yes")

    assert report.outcome == "ungraded"
    assert "_holds_something" not in (report.ungraded_because or "")


WITH_A_BUILDER = """
def subsequent_mask(size):
    return torch.ones(1, size, size).triu(1) == 0

class Attend(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h, self.d_k = h, d_model // h
        self.linears = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(4)])

    def forward(self, query, key, value, mask=None):
        B = query.size(0)
        query, key, value = (
            layer(x).view(B, -1, self.h, self.d_k).transpose(1, 2)
            for layer, x in zip(self.linears, (query, key, value))
        )
        scores = query @ key.mT / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask.unsqueeze(1) == 0, -1e9)
        return self.linears[-1]((scores.softmax(-1) @ value).transpose(1, 2).reshape(B, -1, self.h * self.d_k))
"""


def test_a_builder_that_is_named_for_code_whose_contract_has_none_does_not_upset_the_tool(
    shared_engine: Engine,
) -> None:
    report = graded(shared_engine, WITH_A_BUILDER, "qkv_attention", "builder=subsequent_mask")

    assert report.outcome == "ungraded"
    assert graded(shared_engine, WITH_A_BUILDER, "qkv_attention").passed


def test_a_cache_that_the_module_keeps_without_being_asked_is_said_not_to_be_tried(shared_engine: Engine) -> None:
    masks = ("if self.training is None:", "    self.kv_store = (k, v)")
    report = graded(shared_engine, code(*masks))

    assert report.passed
    assert any("Its cache is not tried (kv_store)" in note for note in report.reading["notes"])


BY_A_FLAG = """
def attend(q, k, v, allowed=None, causal=False):
    scores = torch.einsum("...nd,...md->...nm", q, k) * q.shape[-1] ** -0.5
    if causal:
        rows, cols = torch.arange(q.shape[-2]).unsqueeze(1), torch.arange(k.shape[-2])
        earlier = cols <= rows
        allowed = earlier if allowed is None else allowed & earlier
    if allowed is not None:
        scores = torch.where(allowed, scores, torch.full_like(scores, -torch.inf))
    return scores.softmax(-1) @ v
"""


def test_a_triangle_of_positions_under_a_flag_of_a_function_is_tried(shared_engine: Engine) -> None:
    right, wrong = (
        graded(shared_engine, each, "sdpa") for each in (BY_A_FLAG, BY_A_FLAG.replace("cols <= rows", "cols < rows"))
    )

    assert right.passed
    assert told(wrong) == {"mask.shifted"}


ONE_GROUP = """
class MultiQueryAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.dh = heads, dim // heads
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)
        self.to_k = nn.Linear(dim, self.dh, bias=False)
        self.to_v = nn.Linear(dim, self.dh, bias=False)

    def forward(self, x):
        b, n, _ = x.shape
        q = self.to_q(x).view(b, n, self.heads, self.dh).transpose(1, 2)
        scores = torch.einsum("bhid,bjd->bhij", q, self.to_k(x)) * self.dh**-0.5
        out = torch.einsum("bhij,bjd->bhid", scores.softmax(dim=-1), self.to_v(x))
        return self.to_out(out.transpose(1, 2).reshape(b, n, -1))
"""


def test_one_key_and_value_head_by_a_short_name_of_its_size(shared_engine: Engine) -> None:
    right, wrong = (
        graded(shared_engine, each, "gqa") for each in (ONE_GROUP, ONE_GROUP.replace("self.to_v(x))", "self.to_k(x))"))
    )

    assert right.passed, right.ungraded_because
    assert told(wrong) == {"project.key_for_value"}


def test_an_input_of_no_known_kind_is_said_not_to_be_tried_and_may_be_named_as_the_mask(shared_engine: Engine) -> None:
    masks = ("if sperre is not None:", "    scores = scores - 1e9 * sperre.float()")
    text = code(*masks, inputs=", sperre=None")
    wrong = text.replace("1e9", "1e-9")
    unsaid = graded(shared_engine, text)
    said = graded(shared_engine, text, "mha", "call=x=x,sperre=mask")

    assert unsaid.passed
    assert "not tried: sperre" in unsaid.reading["departures"]
    assert said.passed, said.ungraded_because
    assert not any("not tried" in one or "no mask" in one for one in said.reading["departures"])
    assert not graded(shared_engine, wrong, "mha", "call=x=x,sperre=mask").passed


def test_a_class_named_cross_that_takes_one_input_is_self_attention() -> None:
    text = code(inputs=", mask=None").replace("class SelfAttention", "class CrossSelfAttention")
    two = text.replace("x, mask=None", "x, other, mask=None")

    assert [(inference.kata_of((HEAD + each).encode()) or "")[0] for each in (text, two)] == ["mha", "cross_attention"]


SWITCHED = """
class Attend(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(width, width) for _ in range(4))

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, x, use_mask=False, mask=None):
        q, k, v = self.split(self.w_q(x)), self.split(self.w_k(x)), self.split(self.w_v(x))
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if use_mask:
            scores = scores + mask
        return self.w_o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


def test_a_flag_that_switches_the_mask_on_is_passed_with_it(shared_engine: Engine) -> None:
    right, wrong = (
        shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)
        for text in (SWITCHED, SWITCHED.replace("scores = scores + mask", "scores = scores + 0"))
    )

    assert right.outcome == "passed", right.ungraded_because
    assert any("use_mask=masked" in flag for flag in right.reading["flags"])
    assert told(wrong) == {"mask.lost"}


def test_a_flag_that_makes_a_mask_is_not_passed_with_the_one_that_is_given(shared_engine: Engine) -> None:
    text = SWITCHED.replace("use_mask=False", "causal_mask=False").replace(
        "        if use_mask:\n            scores = scores + mask\n",
        "        if causal_mask:\n            scores = scores.masked_fill(torch.ones_like(scores).triu(1) == 1, -1e9)\n"
        "        if mask is not None:\n            scores = scores.masked_fill(mask == 0, -1e9)\n",
    )
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed", report.ungraded_because
    assert not any("masked" in flag for flag in report.reading["flags"])
