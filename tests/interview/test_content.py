"""Every kata's interview: read strictly, true to its reference, and nothing in it gives the answer away."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from attn_kata import catalog, contract, resources
from attn_kata.errors import KataFileError
from attn_kata.interview import content, control, formulas, plans, stubs

SLUGS = [slug for slug in catalog.slugs() if (resources.katas_folder() / slug / "interview.toml").exists()]

# Runs in a process of its own, where torch is imported already.
EXAMPLES = """
import sys, torch
from torch import nn
from attn_kata import resources
from attn_kata.interview import content
for slug in sys.argv[1:]:
    example = content.of_kata(slug).example
    scope = {"torch": torch, "nn": nn, "__name__": "reference"}
    source = (resources.solutions_folder() / f"{slug}.py").read_text("utf-8")
    exec(compile(source, slug, "exec", dont_inherit=True), scope)
    exec(example.code, scope)
    out, expected = scope["out"].detach(), torch.tensor(example.expected)
    assert out.shape == expected.shape, (slug, out)
    assert torch.allclose(out.double(), expected.double(), atol=1e-4, rtol=1e-4), (slug, out)
"""


def test_the_six_have_an_interview():
    assert {"sdpa", "fused_qkv", "padding_mask", "causal_mask", "mha", "cross_attention"} <= set(SLUGS)


def test_every_worked_example_is_what_the_reference_gives(ready, tmp_path):
    done = ready.run_with_torch(EXAMPLES, *SLUGS, cwd=tmp_path)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("slug", SLUGS)
def test_an_interview_is_read_and_has_enough_of_everything(slug):
    known = content.of_kata(slug)
    matter = [question for question in known.questions if question.matters]

    assert len(known.follow_ups) >= 3
    assert len(matter) >= len(known.silent) >= 1
    assert len(known.questions) > len(matter)
    assert any(follow_up.draw for follow_up in known.follow_ups)


@pytest.mark.parametrize("slug", SLUGS)
def test_the_task_names_every_entry_point_and_is_silent_on_the_points(slug):
    known, kata = content.of_kata(slug), catalog.find(slug)

    assert all(entry in known.task for entry in kata.entries)
    for question in known.questions:
        assert question.answer not in " ".join(known.task.split())


@pytest.mark.parametrize("slug", SLUGS)
def test_the_stub_is_python_has_the_entry_points_and_gives_no_more_away(slug, desk, tmp_path):
    session = control.start(desk, plans.of_katas((slug,)), mode="mock", folder=tmp_path)
    questions = content.of_kata(slug).questions
    for number in range(1, len(questions) + 1):
        session = control.ask(desk, session.id, number)
    source = stubs.render(session, 0)
    names = {node.name for node in ast.parse(source).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}

    assert names == set(catalog.find(slug).entries)
    assert contract.load(catalog.find(slug).prompt).text.splitlines()[-1] not in source
    assert "TODO" not in source
    assert source.count("->") >= len(catalog.find(slug).entries)
    assert max(map(len, source.splitlines())) <= 110


@pytest.mark.parametrize("slug", SLUGS)
def test_no_line_of_an_interview_is_too_wide_for_eighty_columns(slug):
    known = content.of_kata(slug)

    assert (
        max(len(line) for text in (known.task, known.example.code, known.example.says) for line in text.splitlines())
        <= 78
    )


def test_every_formula_is_used_by_some_kata():
    used = {follow_up.formula for slug in SLUGS for follow_up in content.of_kata(slug).follow_ups}

    assert used - {""} == set(formulas.FORMULAS)


@pytest.mark.parametrize(
    ("name", "numbers", "value"),
    [
        ("score_bytes", {"B": 2, "H": 3, "Tq": 5, "Tk": 7, "size": 4}, 840),
        ("square_score_bytes", {"B": 1, "H": 32, "T": 4096, "size": 2}, 2**30),
        ("attention_flops", {"B": 1, "H": 1, "Tq": 2, "Tk": 3, "D": 5}, 120),
        ("fused_parameters", {"inputs": 2, "outputs": 3}, 27),
        ("fused_flops", {"B": 1, "T": 2, "inputs": 3, "outputs": 5}, 180),
        ("fused_rows", {"H": 32, "G": 8, "D": 128}, 6144),
        ("mha_parameters", {"E": 768}, 2_362_368),
        ("gqa_parameters", {"E": 4096, "H": 32, "G": 8}, 41_943_040),
        ("cross_parameters", {"E": 3, "C": 5}, 60),
        ("projection_flops", {"B": 1, "T": 1, "E": 2}, 32),
        ("even_length", {"E": 768}, 1536),
        ("kv_cache_bytes", {"layers": 32, "G": 8, "D": 128, "T": 8192, "B": 1, "size": 2}, 2**30),
        ("causal_pairs", {"Tq": 3, "Tk": 5}, 12),
        ("masked_share", {"T": 4}, 37.5),
        ("padded_share", {"a": 1, "b": 1, "c": 2, "d": 4}, 50),
        ("score_deviation", {"D": 64}, 8),
        ("first_weight", {"gap": 0}, 0.5),
        ("leaked_weight", {"keys": 10, "padded": 4}, 40),
    ],
)
def test_a_formula_by_hand(name, numbers, value):
    assert formulas.FORMULAS[name](**numbers) == pytest.approx(value)


def test_causal_pairs_counts_the_mask():
    mask = [(i, j) for i in range(3) for j in range(7) if j <= i + 7 - 3]

    assert formulas.causal_pairs(Tq=3, Tk=7) == len(mask)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[example]", "task = 'Write it.'\n\n[example]", "'question[6].task' is an unknown key"),
        ("matters = true", "matters = 1", "'question[1].matters' must be true or false"),
        ("matters = true\n", "matters = true\nextra = 1\n", "'question[1].extra' is an unknown key"),
        ('settles = "which leading', 'settles = "what leading', "settles 'what leading dimensions there are', which"),
        (
            'matters = true\nsettles = "which of the sizes may differ"',
            "matters = false",
            "none settles 'which of the sizes",
        ),
        ("tolerance = 0.02", 'tolerance = "2 %"', "tolerance' must be a number"),
        ('formula = "score_deviation"', 'formula = "__import__"', "is no formula of formulas.py"),
        ("draw = { D =", "draw = { E =", "needs exactly these in draw and fixed together: D"),
        ("batch {B}", "batch {X}", "names 'X' in braces, which is not drawn"),
        ("answer = 1\n", "answer = 9\n", "must be the number of an option"),
        ('kind = "free"', 'kind = "essay"', "must be 'numeric', 'choice', 'free' or 'derive', not 'essay'"),
        ("expected = [[[[6.6976", 'expected = [[[["six"', "'example.expected' must be lists of numbers"),
        ("out = scaled_dot", "out == = scaled_dot", "is not Python"),
        ("[[question]]", "[question", "cannot be read"),
    ],
)
def test_an_error_in_an_interview_names_the_file_and_the_key(tmp_path, old, new, said):
    file = tmp_path / "interview.toml"
    for name in ("interview.toml", "prompt.md"):
        shutil.copy(resources.katas_folder() / "sdpa" / name, tmp_path)
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(KataFileError) as wrong:
        content.load(file)

    assert said in str(wrong.value)
    assert str(file) in str(wrong.value)


def test_every_plan_has_katas_with_an_interview():
    names = [plan.name for plan in plans.every()]

    assert {"phone-screen", "deep-dive", "debugging", "inference", "research", "core", "grow-to-mha"} <= set(names)
    for plan in plans.every():
        assert {slug for task in plan.tasks for slug in task} <= set(SLUGS)
        assert {one.kata for one in plan.rounds if one.timed} <= {*SLUGS, *({""} if plan.tasks else ())}


def test_content_needs_nothing_beside_the_package():
    for file in Path(content.__file__).parent.glob("*.py"):
        assert "import torch" not in file.read_text("utf-8")
