"""The reader against the pieces: each is read and explained without a flag, in this process; no mistake is hidden."""

from __future__ import annotations

import itertools
import types
from functools import cache

import pytest
import torch

from attn_kata import catalog
from attn_kata.diagnosis import outcomes
from attn_kata.diagnosis.pipeline import load
from attn_kata.grading.local import Local, load_namespace
from attn_kata.protocol import wire
from attn_kata.protocol.messages import Adapt, Load
from attn_kata.readings import contract, conventions, description, origin, reader
from attn_kata.readings.choice import Chosen, NotRead
from attn_kata.readings.reading import parse
from attn_kata.readings.searching.behaviour import assuming
from attn_kata.readings.searching.search import Search
from attn_kata.readings.source import syntax
from attn_kata.specimens import Edit, apply

from . import adapter

PIECES, MISTAKES = adapter.table("pieces"), adapter.table("mistakes")
KATAS = (
    "mha",
    "gqa",
    "qkv_attention",
    "transformer_block",
    "sdpa",
    "cross_attention",
    "self_attention",
    "heads_concat",
    "fused_qkv",
    "padding_mask",
    "causal_mask",
    "additive_attention",
    "multiplicative_attention",
    "rope",
)


# Typed back beside every third piece of a kata.
TYPED_BACK = ("gqa_llama_like", "qkv_value_first", "block_mask_argument", "block_book_shortcut")


class InThisProcess(Local):
    """Code by other names, in this process, that takes adapters. For our own pieces only."""

    def __init__(self, source: bytes) -> None:
        super().__init__(types.ModuleType("attempt"))
        self.ask(Load(filename="piece.py", definitions=True, tensors=(wire.source_tensor(source),)))

    def adapt(self, text: str) -> wire.Reply:
        return self.ask(Adapt(tensors=(wire.source_tensor(text.encode()),)))


@cache
def known(slug: str):
    kata = catalog.find(slug)
    of_kata = contract.of_kata(kata.folder)
    pipelines = load(kata.folder).PIPELINES
    if of_kata.with_mask is not None:
        other = load(catalog.find(of_kata.with_mask.kata).folder).PIPELINES
        pipelines += tuple(one for one in other if one.entry == of_kata.with_mask.entry)
    return of_kata, pipelines, Local(load_namespace(kata.solution))


def read(text: str, slug: str, *flags: str) -> Chosen | NotRead:
    of_kata, pipelines, reference = known(slug)
    source = text.encode()
    search = Search(
        structure=syntax.of_source(source),
        contract=of_kata,
        pipelines=pipelines,
        attempt=InThisProcess(source),
        reference=reference,
        given=parse(flags),
        returns=catalog.find(slug).returns,
    )
    return reader.read(search)


@cache
def of_piece(name: str) -> Chosen | NotRead:
    return read(adapter.source(name), PIECES[name]["kata"])


@pytest.mark.parametrize("slug", KATAS)
def test_every_piece_is_read_without_a_flag_and_needs_no_mistake_and_its_reading_typed_back_is_the_same(slug):
    pieces = {name: row for name, row in PIECES.items() if row["kata"] == slug}
    for number, (name, row) in enumerate(pieces.items()):
        chosen = of_piece(name)

        assert isinstance(chosen, Chosen), (name, chosen)
        assert chosen.mistakes == 0, (name, chosen.reading.flags())
        assert chosen.reading.entry in (row["entry"], row.get("entry_attention")), name
        meant = row.get("behaves", row["mask"])
        if meant in ("keep", "hide") and row.get("mask_dtype") != "lengths" and row.get("mask_shape") != "":
            assert chosen.reading.mask == meant, name
        if number % 3 == 0 or name in TYPED_BACK:
            again = read(adapter.source(name), slug, *chosen.reading.flags())

            assert again.reading == chosen.reading, name
            assert again.adapter == chosen.adapter, name


TIED = """
import math
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second, self.third, self.last = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        b, t, e = x.shape
        q, k, v = (w(x).view(b, t, self.heads, -1).transpose(1, 2) for w in (self.first, self.first, self.third))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return self.last((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, e))
"""


def test_of_two_readings_that_explain_the_code_alike_both_are_said_and_either_can_be_taken():
    chosen = read(TIED, "mha")
    said = description.described(chosen, known("mha")[0], by_contract=None)
    other = read(TIED, "mha", *said["ties"][0])

    assert chosen.mistakes == other.mistakes == 1
    assert other.reading != chosen.reading
    assert f"Taken: q={chosen.reading.q}" in " ".join(said["notes"])
    assert all(f"--read {flag}" in " ".join(said["notes"]) for flag in said["ties"][0])


def test_a_convention_is_said_with_the_mistake_that_it_would_be_and_can_be_refused():
    text = adapter.source("block_minimal_gpt").replace("nn.GELU()", "nn.ReLU()")
    of_kata, _, _ = known("transformer_block")
    read_so = read(text, "transformer_block")
    refused = read(text, "transformer_block", "conventions=")

    notes = description.described(read_so, of_kata, by_contract=None)["notes"]
    assert (read_so.reading.conventions, read_so.mistakes) == (("relu",), 0)
    assert "this is block.relu" in " ".join(notes)
    assert (refused.reading.conventions, refused.mistakes) == ((), 1)


def test_norms_in_a_list_are_taken_in_its_order():
    text = adapter.source("block_mask_argument")
    for name, place in (("attention_norm", 0), ("ffn_norm", 1)):
        text = text.replace(f"self.{name}(", f"self.norms[{place}](")
    text = text.replace(
        "self.attention_norm = nn.LayerNorm(d_model)",
        "self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(2))",
    )
    text = text.replace("        self.ffn_norm = nn.LayerNorm(d_model)\n", "")
    chosen = read(text, "transformer_block")

    assert (chosen.reading.norm1.weight, chosen.mistakes) == ("norms.0.weight", 0)


def test_a_mask_that_is_lost_is_not_read_as_a_mask_of_keys():
    """Narrowed to keys, a mask is that of a query that hides something. The first query of the probes sees every key."""
    row = MISTAKES["qkv_value_first__mask_lost"]
    edits = [Edit(old=edit["old"], new=edit["new"], place="") for edit in row["edit"]]

    assert read(apply(adapter.source(row["piece"]), edits), "qkv_attention").mistakes == 1


def test_with_a_known_mistake_there_is_one_pipeline_for_all_forms_of_a_mask():
    """It keeps what sets of mistakes give, so the forms after the first find it there."""
    asked = [(known("mha")[1][0], None)]
    made = assuming(asked, (("scale.missing", 0),))

    assert made[0][0].stages != asked[0][0].stages
    assert assuming(asked, (("scale.missing", 0),))[0][0] is made[0][0]
    assert assuming(asked, ()) == asked


def test_no_reading_hides_a_mistake():
    """A few mistakes of each kind; `tests/bench/readings.py` tries all of them through the whole path."""
    once_hidden = ["per_head_lists__project_swapped"]
    for name in [*list(MISTAKES)[::83], *once_hidden]:
        row = MISTAKES[name]
        slug = PIECES[row["piece"]]["kata"]
        if slug not in KATAS or row["mistake"] in ("layout.view_of_strided", "dropout.always", "dropout.never"):
            continue  # these show in no value
        edits = [Edit(old=edit["old"], new=edit["new"], place=name) for edit in row["edit"]]
        chosen = read(apply(adapter.source(row["piece"]), edits), slug)

        hidden = isinstance(chosen, Chosen) and chosen.mistakes == 0
        said = row["mistake"] == "mask.inverted" and not chosen.settled if isinstance(chosen, Chosen) else False
        assert not hidden or said, (name, chosen.reading.flags())


DOCUMENTED = '''
import math
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, mask=None):
        """mask (T, T): True = may attend"""
        b, t, e = x.shape
        q, k, v = (w(x).view(b, t, self.heads, -1).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(mask, float("-inf"))
        return self.wo((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, e))
'''


def test_what_a_docstring_says_of_a_mask_is_not_overruled_by_behaviour():
    documented = read(DOCUMENTED, "mha")
    undocumented = read(DOCUMENTED.replace("True = may attend", "a mask"), "mha")

    assert (documented.reading.mask, documented.mistakes, documented.settled) == ("keep", 1, True)
    assert (undocumented.reading.mask, undocumented.mistakes, undocumented.settled) == ("hide", 0, False)


def test_what_is_no_attention_says_what_was_tried():
    classes = "\n".join(f"class Thing{number}:\n    def forward(self, x):\n        return x\n" for number in range(20))
    none = read(classes, "mha")
    checkpoint = read(DOCUMENTED.replace("super().__init__()", "super().__init__(); torch.load(width)"), "mha")

    assert isinstance(none, NotRead)
    assert "nothing in the file looks like an attention" in none.tried[0]
    assert isinstance(checkpoint, NotRead)
    assert "Attention(width=E, heads=H) raises" in checkpoint.tried[0]


def test_a_rotation_in_pairs_of_halves_is_said_with_the_mistake_that_it_would_be():
    """The note is the only word of it, and it can be refused."""
    text = adapter.source("rope_cos_sin_halves")
    of_kata, _, _ = known("rope")
    refused = read(text, "rope", "pairs=neighbours")

    said = description.described(of_piece("rope_cos_sin_halves"), of_kata, by_contract=None)
    assert "this is rope.half_split" in " ".join(said["notes"])
    assert "pairs of two halves" in said["departures"]
    assert (refused.reading.pairs, refused.mistakes) == ("neighbours", 1)


def test_where_words_say_the_layout_of_vectors_another_one_does_not_hide_angles_of_the_heads():
    text = adapter.source("rope_every_two").replace("[:, None]", "[:, :, None]")  # (B, T, 1, D): for time before heads
    documented = read(text, "rope")
    undocumented = read(text.replace("(batch, heads, seq, head_dim)", "vectors"), "rope")

    assert documented.mistakes > 0
    assert (undocumented.reading.order, undocumented.mistakes) == ("time", 0)


def test_a_rotation_of_the_queries_alone_is_a_mistake():
    text = adapter.source("rope_complex_tables").replace("view_as_real(xk_ * freqs_cis)", "view_as_real(xk_)")

    assert read(text, "rope").mistakes > 0


@pytest.mark.parametrize("mistake", ["direction", "exponent", "one_frequency", "from_one"])
def test_no_reading_of_a_rotation_hides_a_mistake(mistake):
    rows = [row for row in MISTAKES.values() if row["mistake"] == f"rope.{mistake}"]
    for row in rows:
        edits = [Edit(old=edit["old"], new=edit["new"], place="") for edit in row["edit"]]

        assert read(apply(adapter.source(row["piece"]), edits), "rope").mistakes == 1, row["piece"]
    assert rows


def test_a_source_with_both_functions_of_a_rotation_is_never_read():
    """A reading puts the kata's own attention around a rotation, so it would leave theirs ungraded."""
    text = "def apply_rope(x, positions):\n    return x\n\ndef rope_attention(q, k, v, positions):\n    return v\n"
    entries = ("apply_rope", "rope_attention")
    for source, by_contract in ((text, True), (text.replace("rope_attention", "other"), False)):
        code = source.encode()
        assert origin.is_by_contract(code, syntax.of_source(code), entries, known("rope")[0]) == by_contract


BY_THE_KEYS = """
import torch

def attention(queries, keys, values):
    b, h, t, d = keys.shape
    causal = torch.ones(t, t).tril().bool()
    scores = (queries @ keys.transpose(-2, -1) / d**0.5).masked_fill(~causal, -torch.inf)
    return (scores.softmax(-1) @ values).contiguous().view(b, h, t, d)
"""


def test_code_that_takes_values_as_wide_as_keys_only_is_read_so():
    found = read(BY_THE_KEYS, "sdpa")
    wrong = read(BY_THE_KEYS.replace(" / d**0.5", ""), "sdpa")

    assert (found.reading.alike, found.mistakes) == (True, 0)
    assert (wrong.reading.alike, wrong.mistakes) == (True, 1)


def test_a_cache_that_is_not_tried_is_a_departure():
    text = adapter.source("minimal_gpt").replace(
        "forward(self, x):", "forward(self, x, layer_past=None, use_cache=False):"
    )
    found = read(text, "mha")

    assert found.mistakes == 0
    assert "its cache is not tried (layer_past, use_cache)" in description.departures(found, known("mha")[0])


ONE_WIDTH = """
import torch
from torch import nn

class GlobalAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear_in = nn.Linear(dim, dim, bias=False)

    def forward(self, input, context):
        score = self.linear_in(input).view(input.shape) @ context.transpose(1, 2)
        return (score.softmax(-1) @ context).transpose(0, 1), score
"""


def test_without_any_answer_to_tell_how_queries_are_laid_out_there_is_no_verdict(shared_engine):
    """Each guess raises or returns something else: what a guess looks like is no mistake of the code."""
    report = shared_engine.grade(
        "multiplicative_attention", ONE_WIDTH.encode(), attempt="theirs.py", reads=True, flags=("alike=no",)
    )

    assert report.outcome == "ungraded"
    assert "line 11 in forward" in report.ungraded_because


def test_code_with_one_width_for_query_and_keys_is_read_with_keys_as_wide():
    found = read(ONE_WIDTH, "multiplicative_attention")

    assert (found.reading.alike, found.mistakes) == (True, 0)


TWO_PATHS = """
import torch
import torch.nn.functional as F
from torch import nn

class Attention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(n_embd, n_embd) for _ in range(4))
        self.n_head = n_head
        self.flash = hasattr(F, "scaled_dot_product_attention")

    def forward(self, x):
        b, t, e = x.shape
        q, k, v = (one(x).view(b, t, self.n_head, -1).transpose(1, 2) for one in (self.q_proj, self.k_proj, self.v_proj))
        if self.flash:
            y = F.scaled_dot_product_attention(q, k, v)
        else:
            y = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1) @ v
        return self.o_proj(y.transpose(1, 2).reshape(b, t, e))
"""


def test_a_path_that_is_switched_off_hides_no_mistake():
    right = read(TWO_PATHS, "mha")
    wrong = read(TWO_PATHS.replace("attention(q, k, v)", "attention(k, q, v)"), "mha")

    assert (right.reading.off, right.mistakes) == (("flash",), 0)
    assert wrong.reading.off == ()
    assert wrong.mistakes > 0


def test_a_wrong_triangle_beside_a_right_mask_is_explained_with_the_mask_or_without_it():
    found = of_mistake("gpt_neo_like__mask_shifted")

    assert (found.reading.causal, found.reading.mask, found.mistakes) == (True, "additive", 1)

    found = of_mistake("gpt_neo_like__mask_after_softmax")

    assert (found.reading.causal, found.reading.mask, found.mistakes) == (True, "none", 1)
    assert "its mask is not tried (attention_mask)" in description.departures(found, known("mha")[0])


def of_mistake(mistake):
    row = MISTAKES[mistake]
    edits = [Edit(old=each["old"], new=each["new"], place=mistake) for each in row["edit"]]
    return read(apply(adapter.source(row["piece"]), edits), "mha")


OF_FLAGS = """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(hidden_size, hidden_size) for _ in range(4))
        self.num_heads = num_heads

    def forward(self, x, mask=None):
        b, t, e = x.shape
        q, k, v = (one(x).view(b, t, self.num_heads, -1).transpose(1, 2) for one in (self.query, self.key, self.value))
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores - 1e12 * (1.0 - mask[:, None, None, :].float())
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, e))
"""


def test_a_mask_that_is_taken_from_1_is_not_read_as_one_that_is_added():
    """Infinities would be hidden by any factor, also by one that is far too small for flags."""
    right = read(OF_FLAGS, "mha")
    wrong = read(OF_FLAGS.replace("1e12", "1e-12"), "mha")

    assert (right.reading.mask, right.mistakes) == ("keep", 0)
    assert wrong.reading.mask != "additive"
    assert wrong.mistakes > 0


CAUSAL_CROSS = """
import torch
from torch import nn

class CausalCrossAttention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.query, self.key, self.value, self.proj = (nn.Linear(n_embd, n_embd) for _ in range(4))
        self.n_head = n_head

    def forward(self, x_kv, x_q):
        b, t, e = x_kv.size()
        k, v = (one(x_kv).view(b, t, self.n_head, e // self.n_head).transpose(1, 2) for one in (self.key, self.value))
        q = self.query(x_q).view(b, t, self.n_head, e // self.n_head).transpose(1, 2)
        scores = (q @ k.mT / k.shape[-1] ** 0.5).masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf)
        return self.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, e))
"""


def test_a_cross_attention_that_hides_later_keys_by_itself_has_no_verdict():
    """The kata's own has a mask of keys only, so the two cannot be compared."""
    found = read(CAUSAL_CROSS, "cross_attention", "square=yes")

    assert isinstance(found, NotRead)
    assert "always hides later keys" in found.tried[0]


def test_three_inputs_that_are_all_x_are_said_with_the_kata_that_tells_them_apart():
    (said,) = (
        one
        for one in description.departures(read(adapter.source("annotated_four_linears"), "mha"), known("mha")[0])
        if "qkv_attention" in one
    )

    assert said == "query, key and value are all x: --kata qkv_attention tries them apart"
    alone = description.departures(read(adapter.source("minimal_gpt"), "mha"), known("mha")[0])
    assert not any("qkv_attention" in one for one in alone)


WITH_CONVENTIONS = [slug for slug in KATAS if contract.of_kata(catalog.find(slug).folder).conventions]


@pytest.mark.parametrize("slug", WITH_CONVENTIONS)
def test_a_convention_is_the_same_in_the_reference_and_in_the_pipeline(slug):
    """Its edit of the reference, and its variant of a mistake, give equal numbers: alone, and with any other one."""
    of_kata, pipelines, _ = known(slug)
    source = catalog.find(slug).solution.read_text("utf-8")
    pipeline = next(one for one in pipelines if one.entry == of_kata.entry)
    every = list(of_kata.conventions.values())
    pairs = [pair for pair in itertools.combinations(every, 2) if not conventions.exclude(*pair)]
    assert every
    for chosen in [*((one,) for one in every), *pairs]:
        namespace = types.ModuleType("edited")
        exec(conventions.reference(source, chosen), namespace.__dict__)
        followed = conventions.followed(pipeline, chosen)
        for probe in pipeline.probes():
            called, given = getattr(namespace, of_kata.entry), ()
            if pipeline.module:
                called = called(*probe.build).double().eval()
                weights = probe.weights({name: tuple(one.shape) for name, one in called.named_parameters()})
                called.load_state_dict(weights)
                given = (weights, probe.build)
            reached = outcomes.outcome(followed, followed.begin(*given, *probe.args), ())
            both = (outcomes.tensors(out) for out in (called(*probe.args), reached.out))
            for of_reference, of_pipeline in zip(*both, strict=True):
                assert torch.allclose(of_reference, of_pipeline, rtol=1e-9, atol=1e-9), chosen


WITH_A_RECURRENT_LAYER = """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, enc_dim, dec_dim, layers):
        super().__init__()
        self.rnn = nn.LSTM(enc_dim, dec_dim, 6, bidirectional=True)
        self.energy, self.v = nn.Linear(enc_dim + dec_dim, dec_dim), nn.Linear(dec_dim, 1, bias=False)

    def forward(self, hidden, encoder_outputs):
        both = torch.cat([hidden[:, None].expand(-1, encoder_outputs.size(1), -1), encoder_outputs], dim=-1)
        return torch.softmax(self.v(torch.tanh(self.energy(both))).squeeze(-1), dim=-1)
"""


def test_a_score_among_many_parameters_is_not_looked_for_in_every_pair_of_them():
    """There are thousands of pairs with each vector: the search took longer than the engine waits."""
    found = read(WITH_A_RECURRENT_LAYER, "additive_attention")

    assert isinstance(found, NotRead)
    assert "its parameters do not say which are q, k and v" in found.tried[0]
