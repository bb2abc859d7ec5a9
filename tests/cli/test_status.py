"""`attn-kata status`."""

from __future__ import annotations

from attn_kata import catalog


def test_a_new_user_sees_every_kata_and_where_to_begin(run):
    done = run("status")

    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == f"0 of {len(catalog.slugs())} katas passed"
    assert {line.split()[0] for line in lines[3:] if line.startswith("  ")} >= set(catalog.slugs())
    assert lines[-1] == "Next: attn-kata start sdpa"


def test_sixty_columns_are_enough(run):
    run("start", "sdpa")
    run("solution", "sdpa", "--give-up")
    lines = run("status", COLUMNS="60").stdout.splitlines()

    assert any("saw the reference" in line for line in lines)
    assert max(map(len, lines)) <= 60


def test_the_current_kata_comes_next(run):
    run("start", "mha")

    assert run("status").stdout.splitlines()[-1] == "Next: attn-kata grade"


def test_hints_are_counted(run):
    run("hint", "sdpa")
    run("hint", "sdpa")
    row = next(line for line in run("status").stdout.splitlines() if line.startswith("  sdpa"))

    assert row.split() == ["sdpa", "-", "-", "0", "2"]


def test_what_was_graded_comes_back_in_a_few_lines(run, folder):
    run("start", "sdpa")
    (folder / "sdpa.py").write_text("def scaled_dot_product_attention(q, k, v):\n    return v[..., :1]\n")
    run("grade", "sdpa")
    told = run("status")
    begin = told.stdout.splitlines().index("Practise again")

    assert told.stdout.splitlines()[begin + 1].startswith("  sdpa: output_shape")
    assert told.stdout.splitlines()[begin + 1].endswith("failed last time")
    assert told.stderr == ""
