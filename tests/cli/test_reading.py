"""`attn-kata grade` on code that was not written from a stub."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

PIECES = Path(__file__).parents[1] / "readings" / "pieces"


@pytest.fixture
def piece(folder):
    """`piece("minimal_gpt")`: a copy of a piece in the candidate's folder, with edits."""

    def copy(name: str, *edits: tuple[str, str]) -> str:
        text = (PIECES / f"{name}.py").read_text(encoding="utf-8")
        for old, new in edits:
            assert text.count(old) == 1
            text = text.replace(old, new)
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
        return f"{name}.py"

    return copy


def test_right_code_by_other_names_is_right_as_read_and_its_adapter_is_an_attempt(run, folder, piece):
    name = piece("causal_buffer_book")
    done = run("grade", name, "--full", "--write-adapter", "adapted.py")

    assert done.returncode == 0, done.stdout
    assert "RIGHT, AS READ  mha" in done.stdout
    assert re.search(r"all \d+ core properties hold, \d+ left\s+out", done.stdout)
    assert "q          W_query.weight" in done.stdout
    assert "mask       always causal" in done.stdout
    assert "not mistakes" in done.stdout
    assert "The class MultiHeadAttention" not in done.stderr
    adapted = run("grade", "adapted.py", "--kata", "mha", "--strict", "--property", "output_shape", "--json")
    report = json.loads(adapted.stdout)
    assert report["reading"] is None
    assert report["passed"]  # it has the contract's parameters and shapes; its triangle is another matter


def test_wrong_code_has_its_mistake_named_at_its_line_and_the_flags_give_the_same_report(run, folder, piece):
    name = piece("chinese_notes", (" / math.sqrt(self.head_dim)", ""), ("import math\n", ""))
    first = run("grade", name, "--json")
    report = json.loads(first.stdout)
    schema = Path(__file__).parents[2] / "grader/attn_kata/report/report.schema.json"
    jsonschema.validate(report, json.loads(schema.read_text()))

    assert first.returncode == 1
    assert [mistake["id"] for mistake in report["diagnosis"][0]["mistakes"]] == ["scale.missing"]
    flags = [part for flag in report["reading"]["flags"] for part in ("--read", flag)]
    again = json.loads(run("grade", name, "--kata", "mha", *flags, "--json").stdout)
    for one in (report, again):
        one.pop("seconds")
        for finding in one["findings"]:
            finding.pop("seconds")
    assert again == report


def test_a_block_around_a_right_attention_is_graded_too(run, piece):
    name = piece("block_minimal_gpt")
    right = run("grade", name)
    piece("block_minimal_gpt", ("x = x + self.mlp(self.ln_2(x))", "x = self.mlp(self.ln_2(x))"))
    wrong = run("grade", name, "--json")
    attention = run("grade", name, "--class", "CausalSelfAttention")
    by_its_call = run("grade", name, "--class", "CausalSelfAttention.forward")

    assert right.returncode == attention.returncode == 0, right.stdout
    assert by_its_call.returncode == 0, by_its_call.stderr
    assert "RIGHT, AS READ  mha" in right.stdout
    assert "Block, which uses it, is right too." in right.stderr
    assert wrong.returncode == 1
    assert "CausalSelfAttention is right, as mha. Block, which uses it, is not:" in wrong.stderr
    report = json.loads(wrong.stdout)
    assert report["kata"] == "transformer_block"
    assert [one["id"] for found in report["diagnosis"] for one in found["mistakes"]] == ["block.no_residual"]
    assert "Block" not in attention.stderr


def test_a_block_that_uses_one_norm_twice_is_graded_too(run, piece):
    done = run("grade", piece("block_minimal_gpt", ("self.mlp(self.ln_2(x))", "self.mlp(self.ln_1(x))")), "--json")

    assert done.returncode == 1
    assert "Block, which uses it, is not:" in done.stderr
    named = [one["id"] for found in json.loads(done.stdout)["diagnosis"] for one in found["mistakes"]]
    assert named == ["block.norm_shared"]


def test_a_block_around_that_cannot_be_read_leaves_the_attention_its_verdict(run, piece):
    done = run(
        "grade",
        piece(
            "block_minimal_gpt",
            ("class LayerNorm(", "class RMSNorm("),
            (
                "= LayerNorm(config.n_embd, bias=config.bias)\n        self.attn",
                "= RMSNorm(config.n_embd, bias=config.bias)\n        self.attn",
            ),
            (
                "= LayerNorm(config.n_embd, bias=config.bias)\n        self.mlp",
                "= RMSNorm(config.n_embd, bias=config.bias)\n        self.mlp",
            ),
        ),
    )

    assert done.returncode == 0, done.stdout
    assert "Block, which uses it, was not graded. attn-kata grade" in done.stderr
    assert "--kata transformer_block --class Block says why." in done.stderr


def test_a_constructor_with_a_misspelt_name_is_named(run, piece):
    done = run("grade", piece("causal_buffer_book", ("def __init__(self, ", "def _init_(self, ")))

    assert done.returncode == 1
    assert "(python.misspelt_method)" in done.stdout
    assert "has no __init__, and nothing calls its '_init_'. Write __init__" in done.stdout.replace("\n", " ")


def test_a_mask_that_nothing_documents_is_said_and_can_be_settled(run, piece):
    name = piece("undocumented_fill")
    open_question = run("grade", name)
    settled = run("grade", name, "--mask", "keep", "--json")

    assert open_question.returncode == 0
    assert "this is mask.inverted" in open_question.stdout.replace("\n", " ")
    report = json.loads(settled.stdout)
    assert [mistake["id"] for mistake in report["diagnosis"][0]["mistakes"]] == ["mask.inverted"]


def test_strict_asks_for_the_contracts_names_and_a_typo_in_a_stub_gets_its_message(run, folder, piece):
    strict = run("grade", piece("chinese_notes"), "--kata", "mha", "--strict", "--property", "parameters")
    assert run("start", "mha").returncode == 0
    header = "\n".join((folder / "mha.py").read_text().splitlines()[:1])
    solution = (Path(__file__).parents[2] / "solutions" / "mha.py").read_text().replace("q_proj", "q_porj")
    (folder / "mha.py").write_text(f"{header}\n{solution}")
    typo = run("grade", "mha", "--full", "--property", "parameters")

    assert strict.returncode == 1
    assert "Read as" not in strict.stdout
    assert typo.returncode == 1
    assert "its parameters are k_proj" in " ".join(typo.stdout.split())
    assert "Read as" not in typo.stdout


def test_what_cannot_be_read_says_what_was_tried_and_what_to_pass(run, folder):
    things = "\n".join(f"class Thing{number}:\n    pass\n" for number in range(20))
    (folder / "things.py").write_text(f"import transformers_that_is_not_here\n{things}")
    done = run("grade", "things.py", "--kata", "mha")

    assert done.returncode == 3
    said = " ".join(done.stdout.split())
    assert "it could not be read as mha: nothing in the file looks like an attention" in said
    assert "not installed here: transformers_that_is_not_here" in said
    assert "--class NAME" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--read", "q=nope"), "it has no parameter 'nope'; it has linear_k.bias"),
        (("--class", "Nope"), "there is no 'Nope' in the file; it defines"),
    ],
)
def test_a_name_that_the_code_does_not_have_is_no_verdict_and_those_that_it_has_are_said(run, piece, arguments, said):
    done = run("grade", piece("chinese_notes"), "--kata", "mha", *arguments)

    assert done.returncode == 3, done.stdout
    assert said in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--read", "fuse=q"), "is not KEY=VALUE with a key that is known"),
        (("--strict", "--class", "X"), "Leave one of the two out"),
        (("--read", "q=x", "--kata", "softmax"), "takes code with the names of its contract only"),
    ],
)
def test_a_wrong_option_is_said_in_a_sentence(run, piece, arguments, said):
    done = run("grade", piece("chinese_notes"), *arguments)

    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_code_without_layers_in_a_file_with_the_name_of_a_kata_with_layers_is_read_as_a_function(run, folder):
    text = (
        "import torch\nfrom torch import nn\n\n\nclass SelfAttention(nn.Module):\n"
        "    def forward(self, q, k, v):\n"
        "        return torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1) @ v\n"
    )
    (folder / "self_attention.py").write_text(text, encoding="utf-8")
    done = run("grade", "self_attention.py")

    assert done.returncode == 0, done.stdout
    assert "RIGHT, AS READ  sdpa" in done.stdout


def test_a_function_with_the_name_of_a_katas_that_takes_fewer_arguments_is_read_as_what_it_is(run, folder):
    text = (
        "import torch\n\n\ndef flash_attention(q, k, v):\n"
        "    return torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1) @ v\n"
    )
    (folder / "flash_attention.py").write_text(text, encoding="utf-8")
    done = run("grade", "flash_attention.py")

    assert done.returncode == 0, done.stdout
    assert "RIGHT, AS READ  sdpa" in done.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "It defines no class and no function."),
        ("class Net:\n    pass\n\n\ndef train():\n    pass\n", "It defines Net, train."),
        ("import tensorflow as tf\n\n\nclass Net(tf.Module):\n    pass\n", "It imports tensorflow and not torch"),
    ],
)
def test_a_file_without_an_attention_is_told_so(run, folder, text, said):
    (folder / "other.py").write_text(text)

    done = run("grade", "other.py")

    assert done.returncode == 2
    assert (
        "Nothing in 'other.py' looks like an attention, and its name does not say which kata it is. It" in done.stderr
    )
    assert said in done.stderr


@pytest.mark.parametrize("named", ["Net", "Net.go"])
def test_a_class_that_says_nothing_of_its_kata_asks_for_it(run, folder, named):
    (folder / "other.py").write_text("class Net:\n    def go(self, x):\n        return x\n")

    done = run("grade", "other.py", "--class", named)

    assert done.returncode == 2
    assert f"Nothing in '{named}' tells which kata it is." in done.stderr
    assert "--kata KATA" in done.stderr


PLAIN = """
import torch


class Attend(torch.nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads = heads
        self.w_q, self.w_k = torch.nn.Linear(width, width), torch.nn.Linear(width, width)
        self.w_v, self.w_o = torch.nn.Linear(width, width), torch.nn.Linear(width, width)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, x, mask=None):
        B, T, E = x.shape
        q, k, v = (f(x).view(B, T, self.heads, -1).transpose(1, 2) for f in (self.w_q, self.w_k, self.w_v))
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        return self.w_o((self.dropout(scores.softmax(-1)) @ v).transpose(1, 2).reshape(B, T, E))
"""


@pytest.mark.parametrize("takes_mask", [True, False])
def test_an_adapter_is_advised_where_the_contract_alone_would_pass_it(run, folder, takes_mask):
    text = PLAIN if takes_mask else PLAIN.replace("mask=None", "*more").replace("mask is not None", "False")
    (folder / "mine.py").write_text(text)

    done = run("grade", "mine.py", "--kata", "mha")

    assert done.returncode == 0, done.stdout
    assert ("--write-adapter FILE" in done.stdout.rpartition("Next: ")[2]) == takes_mask
    assert "attn-kata start mha" in done.stdout.rpartition("Next: ")[2]
