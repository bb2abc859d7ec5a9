"""Code that hides later keys by itself, beside a mask of its caller or alone, for as many queries as keys or for fewer."""

from __future__ import annotations

import pytest
from tests.readings.pairs import right_and_wrong, told
from tests.readings.test_interfaces import ATTEND
from tests.readings.test_kinds import HEAD
from tests.readings.test_search import read

from attn_kata.readings.candidates import triangles
from attn_kata.readings.choice import Chosen

FUNCTION = """
def attend(q, k, v GIVEN):
    Tq, Tk = q.shape[-2], k.shape[-2]
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    OWN
    USE
    return scores.softmax(dim=-1) @ v
"""
MODULE = """
class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h, self.d = n_heads, width // n_heads
        self.w_q, self.w_k = nn.Linear(width, width), nn.Linear(width, width)
        self.w_v, self.w_o = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, query, key, value GIVEN):
        B, Tq, E = query.shape
        Tk = key.shape[1]
        q = self.w_q(query).view(B, Tq, self.h, self.d).transpose(1, 2)
        k = self.w_k(key).view(B, Tk, self.h, self.d).transpose(1, 2)
        v = self.w_v(value).view(B, Tk, self.h, self.d).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d)
        OWN
        USE
        return self.w_o((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, Tq, E))
"""
OWN = {
    "upper_left": 'scores = scores.masked_fill(torch.ones(Tq, Tk).triu(1).bool(), float("-inf"))',
    "added": 'scores = scores + torch.full((Tq, Tk), float("-inf"), dtype=scores.dtype).triu(1)',
    "compared": 'scores = scores.masked_fill(torch.arange(Tk)[None] > torch.arange(Tq)[:, None], float("-inf"))',
    "lower_right": 'scores = scores.masked_fill(torch.ones(Tq, Tk).triu(Tk - Tq + 1).bool(), float("-inf"))',
}
# The parameter of a mask, and the line that uses it. The finite number shows what both masks hide.
USES = {
    "no_mask": ("", "pass"),
    "keep": (", keep_mask=None", "scores = scores if keep_mask is None else scores.masked_fill(keep_mask == 0, -1e9)"),
    "hide_always": (", ignore_mask", "scores = scores.masked_fill(ignore_mask, -1e9)"),
}


def source(text: str, own: str, use: str) -> str:
    given, line = USES[use]
    return HEAD + text.replace(" GIVEN", given).replace("OWN", OWN[own]).replace("USE", line)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize(("text", "slug"), [(FUNCTION, "sdpa"), (MODULE, "qkv_attention")], ids=["function", "module"])
def test_a_triangle_of_its_own_is_read(text, slug, own, use):
    found = read(source(text, own, use), slug)

    assert isinstance(found, Chosen)
    assert (found.mistakes, found.reading.causal) == (0, True)
    assert found.reading.square == (own != "lower_right")


@pytest.mark.parametrize(
    ("text", "slug", "own", "use"),
    [
        (FUNCTION, "sdpa", "lower_right", "no_mask"),
        (FUNCTION, "sdpa", "lower_right", "hide_always"),
        (FUNCTION, "sdpa", "upper_left", "keep"),
        (MODULE, "qkv_attention", "lower_right", "no_mask"),
        (MODULE, "qkv_attention", "upper_left", "hide_always"),
    ],
)
def test_right_code_with_a_triangle_of_its_own_passes(text, slug, own, use, shared_engine):
    report = shared_engine.grade(slug, source(text, own, use).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed", [one.message for one in report.findings if one.outcome == "failed"]


@pytest.mark.parametrize(
    ("own", "use", "edit", "mistake"),
    [
        ("upper_left", "keep", ("triu(1)", "triu(0)"), "mask.shifted"),
        ("lower_right", "hide_always", ("Tk - Tq + 1", "Tk - Tq + 2"), "mask.shifted"),
        ("lower_right", "no_mask", ("/ math.sqrt(q.shape[-1])", ""), "scale.missing"),
        ("upper_left", "hide_always", ('triu(1).bool(), float("-inf")', "triu(1).bool(), 0.0"), "mask.zero_fill"),
        ("upper_left", "keep", ("triu(1)", "tril()"), "mask.inverted"),
        ("upper_left", "keep", ("scores = scores.masked_fill(torch", "hidden = scores.masked_fill(torch"), "mask.lost"),
        ("lower_right", "keep", ("dim=-1", "dim=-2"), "softmax.query_axis"),
    ],
)
def test_a_mistake_beside_a_triangle_of_its_own_is_named(own, use, edit, mistake, shared_engine):
    right = source(FUNCTION, own, use)
    report = shared_engine.grade("sdpa", right.replace(*edit).encode(), attempt="mine.py", reads=True)

    assert edit[0] in right
    assert report.outcome == "failed"
    assert mistake in [one.id for found in report.diagnosis for one in found.mistakes]


LAYOUTS = {
    "time_first": (
        MODULE.replace("(self, query, key, value GIVEN)", "(self, x, keep_mask)")
        .replace("        B, Tq, E = query.shape\n", "        x = x.transpose(0, 1)\n        B, Tq, E = x.shape\n")
        .replace("Tk = key.shape[1]", "Tk = Tq")
        .replace("(query)", "(x)").replace("(key)", "(x)").replace("(value)", "(x)")
        .replace("        OWN\n        USE", "        scores = scores.masked_fill(keep_mask == 0, -1e9)")
        .replace(".reshape(B, Tq, E))", ".reshape(B, Tq, E)).transpose(0, 1)"),
        "mha",
    ),
    "three_dimensions": (
        FUNCTION.replace(" GIVEN", ", keep_mask").replace("q @ k.transpose(-2, -1)", "torch.bmm(q, k.transpose(1, 2))")
        .replace("    OWN\n    USE", "    scores = scores.masked_fill(keep_mask == 0, -1e9)"),
        "sdpa",
    ),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_mask_that_must_be_given_is_tried_in_each_layout_of_the_inputs(layout):
    text, slug = LAYOUTS[layout]
    found = read(HEAD + text, slug)

    assert isinstance(found, Chosen)
    assert (found.mistakes, found.reading.mask, found.reading.needs_mask) == (0, "keep", True)


def test_a_row_without_keys_shows_no_dropout_in_eval(shared_engine):
    """Both of two calls give nan there: nothing differs between them."""
    text = MODULE.replace("(self, query, key, value GIVEN)", "(self, x)").replace("        USE\n", "")
    for name in ("query", "key", "value"):
        text = text.replace(f"({name})", "(x)").replace(f"{name}.shape", "x.shape")
    text = text.replace("(self, width, n_heads)", "(self, width, n_heads, dropout=0.1)").replace(
        "OWN", OWN["upper_left"]
    )
    text = text.replace("self.h, self.d =", "self.drop = nn.Dropout(dropout)\n        self.h, self.d =")
    text = text.replace("(scores.softmax(dim=-1) @ v)", "(self.drop(scores.softmax(dim=-1)) @ v)").replace(
        "triu(1)", "triu(0)"
    )

    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert [one.id for found in report.diagnosis for one in found.mistakes] == ["mask.shifted"]


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("later = torch.arange(Tk)[None] > torch.arange(Tq)[:, None]", True),
        ("i = torch.arange(Tq)[:, None]\nj = torch.arange(Tk)[None]\nlater = j > i", True),
        ("i = torch.arange(Tq)\nkept = i[None, :] <= i[:, None]", True),
        ("i = torch.arange(Tq)\nlater = i > i.unsqueeze(1)", True),
        ("real = torch.arange(Tk)[None] < lengths[:, None]", False),
        ("i = torch.arange(Tk)\nreal = i < i.max()", False),
        ("far = torch.arange(Tk) - 3\nbuckets = torch.where(far < 8, far, large)", False),
        ('table = torch.einsum("i,j->ij", t, torch.arange(8))', False),
    ],
)
def test_two_ranges_that_are_compared_make_a_triangle_and_one_with_a_number_does_not(line, is_one):
    assert triangles._compares_positions(line) == is_one


OFF_INSIDE = """
class Head(nn.Module):
    def __init__(self, emb_dim, h, mask=False):
        super().__init__()
        self.size, self.mask = emb_dim // h, mask
        self.WQ, self.WK, self.WV = (nn.Linear(emb_dim, emb_dim // h, bias=False) for _ in range(3))

    def forward(self, x):
        T = x.shape[1]
        if self.mask:
            mask = torch.triu(torch.ones((T, T)) * (-float("inf")), diagonal=1).to(x)
        else:
            mask = torch.zeros((T, T)).to(x)
        scores = self.WQ(x) @ self.WK(x).permute(0, 2, 1) / self.size**0.5 + mask
        return F.softmax(scores, dim=2) @ self.WV(x)


class Heads(nn.Module):
    def __init__(self, emb_dim, h):
        super().__init__()
        self.heads = nn.ModuleList([Head(emb_dim, h) for i in range(h)])
        self.Wo = nn.Linear(emb_dim, emb_dim)

    def forward(self, x):
        return self.Wo(torch.cat([head(x) for head in self.heads], dim=2))
"""


@pytest.mark.parametrize(("given", "causal"), [("", False), (", mask=True", True), (", True", True)])
def test_a_flag_of_a_class_inside_that_nobody_gives_makes_no_triangle(given, causal, shared_engine):
    text = OFF_INSIDE.replace("Head(emb_dim, h)", f"Head(emb_dim, h{given})")

    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed", report.ungraded_because
    assert ("always causal" in report.reading["departures"]) == causal


# A config as a dict, in which a mask may be switched on.
BY_A_PART_OF_A_CONFIG = """
class MultiheadAttention(nn.Module):
    def __init__(self, embed_dim, args):
        super().__init__()
        self.n_head, max_length = args["n_head"], args["max_length"]
        self.W_q, self.W_k = nn.Linear(embed_dim, embed_dim), nn.Linear(embed_dim, embed_dim)
        self.W_v, self.W_o = nn.Linear(embed_dim, embed_dim), nn.Linear(embed_dim, embed_dim)
        if max_length and args.get("mask", False):
            mask = torch.triu(torch.ones(max_length, max_length), diagonal=1)
            self.register_buffer("mask", mask.masked_fill(mask == 1, float("-inf")))
        else:
            self.mask = None

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (w(x).view(B, T, self.n_head, -1).transpose(1, 2) for w in (self.W_q, self.W_k, self.W_v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if self.mask is not None:
            scores = scores + self.mask[:T, :T]
        return self.W_o((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, E))
"""


def test_a_triangle_that_a_part_of_a_config_switches_on_is_off_and_tried_on(shared_engine):
    right, wrong = right_and_wrong(shared_engine, "mha", BY_A_PART_OF_A_CONFIG, "diagonal=1", "diagonal=0")

    assert "always causal" not in right.reading["departures"]
    assert told(wrong) == {"mask.shifted"}


def test_a_triangle_in_no_known_words_is_seen_by_what_its_tokens_see(shared_engine):
    """Another last token changes no earlier row, so the code is asked as one that hides later keys."""
    places = "places = torch.linspace(0, 1, T, dtype=x.dtype)\n        "
    hidden = "scores = scores.masked_fill(places[:, None] < places, float('-inf'))\n        "
    text = ATTEND.replace("mask=None):", "):").replace(
        '        if mask is not None:\n            scores = scores.masked_fill(mask == 0, float("-inf"))\n', ""
    )
    text = text.replace("weights = F.softmax(", f"{places}{hidden}weights = F.softmax(")
    right, wrong = right_and_wrong(shared_engine, "mha", text, " / math.sqrt(self.d)", "")

    assert "always causal" in right.reading["departures"]
    assert told(wrong) == {"scale.missing"}
