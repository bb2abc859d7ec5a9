"""The value, its flags, and what names and words say."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from attn_kata import catalog
from attn_kata.errors import UsageError
from attn_kata.readings import contract, inference, origin, reading
from attn_kata.readings.candidates import blocks, masks
from attn_kata.readings.reading import Layer, Reading, parse, with_flags
from attn_kata.readings.source import syntax, vocabulary
from attn_kata.resources import katas_folder

from . import adapter

FULL = Reading(
    kata="mha",
    entry="Attention",
    is_class=True,
    build=(("config.n_embd", "E"), ("heads", "H"), ("eps", "0.02")),
    globals=(("n_embd", "E"),),
    q=Layer(weight="heads.*.q.weight", bias="heads.*.q.bias"),
    k=Layer(weight="W_k", layout="columns"),
    v=Layer(weight="W_v", bias="b_v", layout="heads"),
    o=Layer(weight="out.0.weight"),
    fused=("k", "q", "v"),
    arrangement="by_head",
    call=(("query", "x"), ("mask", "mask")),
    mask="hide",
    mask_type="int",
    shape="(B, 1, T, T)",
    needs_mask=True,
    causal=True,
    order="time",
    dims=3,
    returns="1",
    bypassed=("norm", "heads.*.drop"),
    rates=("attention.dropout",),
    square=True,
    off=("flash",),
    residual=True,
    alike=True,
    one_sample=True,
    full_precision=True,
    sure=True,
    hides_queries=True,
)


def test_flags_read_back_give_the_same_reading():
    empty = Reading(kata="mha", entry="", is_class=True)

    assert with_flags(empty, parse(tuple(FULL.flags()))) == FULL
    assert empty.flags() == []


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("lazy=E,wide", "it is one width or several"),
        ("fused", "is not KEY=VALUE"),
        ("fuse=q,k,v", "is not KEY=VALUE with a key that is known"),
        ("onehead=yes", "Did you mean 'one_head=yes'?"),
        ("mask", "Did you mean 'mask=VALUE'?"),
        ("fused=q,q,v", "an order of q, k and v"),
        ("mask=maybe", "one of keep, hide"),
        ("build=width=__import__('os')", "is not a name with a size"),
        ("call=x=x,bias=zeros(B,Q)", "zeros or ones of a shape, as zeros(B,T,E)"),
        ("call=x=x,bias=zeros(__import__('os'))", "zeros or ones of a shape"),
        ("q=a b", "is no path of a parameter"),
        ('q=x"];import os;["', "is no path of a parameter"),
        ("off=flash;x", "is one name or several"),
        ("returns=last-1", "the place of the output"),
        ("entry=1x", "the name of a class"),
        ("constants=cfg.n_heads=H", "'cfg.n_heads' is no attribute of the class itself"),
        ("globals=Config.made=module", "'module' is no size"),
    ],
)
def test_a_flag_that_cannot_be_understood_is_said_with_what_can(flag, said):
    with pytest.raises(UsageError, match="--read") as problem:
        parse((flag,))

    assert said in str(problem.value)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("W_q", "q"),
        ("toqueries", "q"),
        ("key_layer", "k"),
        ("linear_v", "v"),
        ("fc_out", "o"),
        ("linears.0", None),
        ("q_layers.0.weight", "q"),
        ("qkv_layers.0.weight", None),
        ("query.linear", "q"),
        ("linear_list.0", None),
        ("q_list.0", "q"),
        ("linear.proj", "o"),
        ("x1", None),
    ],
)
def test_the_role_of_a_layer_by_its_name(name, role):
    assert vocabulary.role_of(name) == role


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        ("mask: True = may attend", "keep"),
        ("mask (B, T), 1 for real tokens and 0 for padding", "keep"),
        ("positions where mask is 0 are ignored", "keep"),
        ("mask: 1 for real tokens, 0 for padding", "keep"),
        ("mask: 0 for real tokens, 1 for padding", "hide"),
        ("mask: (1=keep, 0=mask out)", "keep"),
        ("mask: attend where it is 1, ignore where it is 0", "keep"),
        ("mask: hidden = 1, visible = 0", "hide"),
        ("mask: a boolean tensor indicating non-PAD tokens", "keep"),
        ("mask: indicates which positions are padding", "hide"),
        ("mask: 1 for non-padded tokens, 0 for pad", "keep"),
        ("mask 中 1 表示有效, 0 表示填充", "keep"),
        ("mask: 1 表示可以看到", "keep"),
        ("mask: True where attention is not allowed", "hide"),
        ("positions with True are masked out", "hide"),
        ("mask: 为 True 的位置会被屏蔽", "hide"),
        ("mask: 0 where allowed, -inf elsewhere", "additive"),
        ("mask: True to keep, False to mask", "keep"),
        ("values of 1 indicate positions to mask", "hide"),
        ("additive attention (Bahdanau). mask: the mask", None),
        ("mask: one mask for all heads", None),
        ("mask of shape (batch, 1, 1, seq), for a masked decoder", None),
        ("mask out key positions (0 in invalid positions, 1 else)", "keep"),
        ("mask: 1 for invalid tokens", "hide"),
        ("attention_mask (b, h, q, k). True indicates masking.", "hide"),
        ("mask: the mask", None),
        ("mask: (T, T) with 0 (keep) or -inf (mask)", "additive"),
        ("mask: 0 or float('-inf')", "additive"),
        ("mask: -inf for padding, 0 for tokens", "additive"),
        ("mask is additive: (B, 1, 1, T), 0 for real tokens and -10000 for padding", "additive"),
        ("mask: 0 for real tokens and -10000.0 elsewhere", "additive"),
        ("mask: 0 keep, -inf padding", "additive"),
        ("apply the mask (non-padding=0, padding=large negative)", "additive"),
        ("mask: real=0, padding=1", "hide"),
        ("mask: 1 = attend, pad=0, fill=-1e9", "keep"),
        ("mask: 1 for real tokens and 0 for padding", "keep"),
        ("mask: positions with 0 get -1e9", None),
        ("mask: 0 for visible keys, -1e9 for hidden ones", "additive"),
        ("scores.masked_fill(mask == 0, -1e9)", "keep"),
        ("mask: a mask. Apply it (precomputed for all layers in forward)", "additive"),
        ("mask: broadcastable to the scores; True = mask.", "hide"),
        ("mask: True -> mask", "hide"),
        (
            "mask: the mask\n\n    use_scaling: if False, no scale. Default\n    True keeps the standard behaviour.",
            None,
        ),
        ("bias: True keeps the biases\n    mask: True hides a key", "hide"),
        ("Core building block of a model:\n    1. attention with a mask\n    2. add and norm", None),
        ("What the block has:\n    1. hiding by a mask", None),
        ("mask: all values set to 1 will\n        be excluded from the attention", "hide"),
    ],
)
def test_what_words_say_of_a_mask(words, meaning):
    said = masks.documented(f'def f(x, mask):\n    """{words}"""', "mask")

    assert (None if said is None else said.meaning) == meaning


@pytest.mark.parametrize(
    ("name", "text", "symbol"),
    [
        ("head_size", "self.att_size = hidden_size // head_size", "H"),
        ("head_dim", "self.num_heads = width // head_dim", "D"),
        ("head_dim", "inner = head_dim * heads", "D"),
        ("scale", "scores = q @ k.mT / self.scale", "sqrt(D)"),
        ("scale", "scores = q @ k.mT * config.scale", "1/sqrt(D)"),
        ("embedding_dim", "w = nn.Linear(width, num_heads * embedding_dim)", "D"),
        (
            "embedding_dim",
            "        self.d_q = self.d_k = c.embedding_dim\n        w = nn.Linear(c.width, self.d_k * self.num_heads)",
            "D",
        ),
        ("embedding_dim", "self.d = embedding_dim\nw = nn.Linear(embedding_dim, num_heads * self.d)", "E"),
        ("dim_k", "to_q = nn.Linear(dim_k, dim_k * heads)", "E"),
        ("h_dim", "query = nn.Linear(config.h_dim, config.head_size)", "E"),
        ("head_size", "query = nn.Linear(config.h_dim, config.head_size)", "D"),
        ("head_channel", "q = nn.Linear(in_channel, num_head * head_channel)", "D"),
    ],
)
def test_what_the_code_does_with_a_size_says_which_one_it_is(name, text, symbol):
    assert vocabulary.size_in(name, text) == symbol


def test_a_block_that_is_named_is_read_as_a_block_and_an_attention_with_a_norm_is_not():
    for name, row in adapter.table("pieces").items():
        source = adapter.source(name).encode()
        told = inference.kata_of(source, row["entry"].partition(".")[0])
        assert (told is not None and told[0] == "transformer_block") == (row["kata"] == "transformer_block"), name


def test_the_blocks_around_an_attention_are_found():
    source = adapter.source("block_minimal_gpt").encode()
    found = syntax.of_source(source)
    _, attention, _ = next(inference.katas_of(source))

    assert blocks.around(found, attention) == ["Block"]
    assert blocks.around(found, "Block") == []


@pytest.mark.parametrize("slug", ["mha", "qkv_attention", "transformer_block"])
def test_every_property_of_dropout_can_be_left_out(slug):
    """Code by other names may drop nothing: a property of dropout that is forgotten here calls it wrong."""
    folder = katas_folder() / slug
    about = set(re.findall(r"^def test_(\w*drop\w*)\(", (folder / f"test_{slug}.py").read_text("utf-8"), re.MULTILINE))
    known = contract.of_kata(folder).left_out

    assert about
    assert about <= {*known["always"], *known["dropout"]}


def test_a_name_of_an_output_is_not_that_of_the_weights():
    names = ("attn_weights", "attn_out", "attn_output", "attn_values", "scores", "context")

    assert [name for name in names if vocabulary.is_beside(name)] == ["attn_weights", "scores"]


def test_a_comment_makes_no_heads():
    text = (
        "import torch\nfrom torch import nn\n\nclass Attention(nn.Module):\n"
        "    def __init__(self, embed_dim, head_dim):\n        super().__init__()\n"
        "        self.q = nn.Linear(embed_dim, head_dim)  # 1 / n_heads of it\n"
        "        self.k = nn.Linear(embed_dim, head_dim)\n        self.v = nn.Linear(embed_dim, head_dim)\n\n"
        "    def forward(self, x):\n"
        "        return (self.q(x) @ self.k(x).mT / self.q.out_features**0.5).softmax(-1) @ self.v(x)\n"
    )

    assert inference.kata_of(text.encode())[0] == "self_attention"
    assert inference.kata_of(text.replace("# 1 / n_heads of it", "; self.heads = nn.ModuleList()").encode())[0] == "mha"


def test_a_function_with_the_name_of_the_contract_is_written_for_it_only_with_its_arguments():
    known = contract.of_kata(katas_folder() / "sdpa")
    own = "def scaled_dot_product_attention(q, k, v):\n    return v\n"
    other = own.replace("(q, k, v)", "(query, key, value)").replace("return v", "return value")
    by_contract = [
        origin.is_by_contract(text.encode(), syntax.of_source(text.encode()), ("scaled_dot_product_attention",), known)
        for text in (own, other)
    ]

    assert by_contract == [True, False]


@pytest.mark.parametrize("slug", ["causal_mask", "combined_mask", "padding_mask", "rope"])
def test_functions_of_a_contract_that_belong_together_are_never_read_as_one_of_them(slug: str) -> None:
    """A reading of the attention alone would leave a wrong mask ungraded."""
    kata = catalog.find(slug)
    known = contract.of_kata(kata.folder)
    source = kata.solution.read_bytes()
    names = {one.name: f"{one.name}_given" for one in syntax.of_source(source).find(known.entry).call}
    renamed = re.sub(r"\b(?:" + "|".join(names) + r")\b", lambda found: names[found[0]], source.decode()).encode()

    assert renamed != source
    assert [origin.is_by_contract(text, syntax.of_source(text), kata.entries, known) for text in (source, renamed)] == [
        True,
        True,
    ]


@pytest.mark.parametrize("slug", [slug for slug in catalog.slugs() if contract.of_kata(catalog.find(slug).folder)])
def test_a_reference_is_graded_by_its_contract(slug: str) -> None:
    kata = catalog.find(slug)
    source = kata.solution.read_bytes()

    assert origin.is_by_contract(source, syntax.of_source(source), kata.entries, contract.of_kata(kata.folder))


def test_the_list_of_the_keys_has_every_key_with_an_example_that_is_taken():
    table = reading.HELP.partition("\n\n")[0].split("\n")
    words = " ".join(table)
    examples = [one for row in table for one in re.split(r" or |, (?=\w+=)", re.split(r" {2,}| (?=\w+=)", row)[-1])]

    assert [key for key in reading.KEYS if re.search(rf"(?<![\w=]){key}\b", words) is None] == []
    for example in examples:
        if "=" in example:
            assert set(parse((example,))) & {*reading.KEYS, "arrangement"}
    assert sum("=" in example for example in examples) > 40


def test_the_keys_are_listed_without_a_file():
    done = subprocess.run(
        [sys.executable, "-m", "attn_kata", "grade", "--read", "help"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0
    assert "hides_queries=yes" in done.stdout


def test_an_mlp_may_be_any_number_of_times_as_wide():
    assert parse(("mlp_ratio=24",)) == {"mlp_ratio": 24}
    with pytest.raises(UsageError, match="it is a number, as 4"):
        parse(("mlp_ratio=wide",))


def test_a_shape_may_be_typed_without_spaces_and_a_tuple_with_its_comma():
    assert parse(("shape=(B,T)", "query=(B,1,E)")) == {"shape": "(B, T)", "query": "(B, 1, E)"}
    assert parse(("build=window=(1,L),heads=H",)) == {"build": (("window", "(1,L)"), ("heads", "H"))}
