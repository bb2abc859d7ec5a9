"""`attn-kata start` and the stubs that it writes."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import attn_kata
from attn_kata import catalog, contract, resources, stub

EVERY_STUB = [(slug, level) for slug in catalog.slugs() for level in stub.LEVELS]


def test_the_stub_is_written_and_named_with_the_next_command(run, folder):
    done = run("start", "mha")

    assert done.returncode == 0
    assert done.stdout.startswith("mha.py: ")
    assert "attn-kata grade" in done.stdout
    assert (folder / "mha.py").read_text("utf-8").startswith("# attn-kata: mha (standard)\n")


@pytest.mark.parametrize("name", ["SDPA", "Sdpa", " sdpa "])
def test_the_name_may_be_written_in_any_case(run, folder, name):
    assert run("start", name).returncode == 0
    assert (folder / "sdpa.py").exists()


def test_a_misspelt_kata_gets_the_nearest_name_and_the_next_command(run, folder):
    done = run("start", "sdap")

    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "There is no kata 'sdap'. Did you mean 'sdpa'?\nSee them all: attn-kata list\n"
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["", "../sdpa", "sdpa/../sdpa", "sdpa.py", "\x1b[31m"])
def test_nothing_but_a_kata_is_a_kata(run, folder, name):
    done = run("start", name)

    assert done.returncode == 2
    assert done.stdout == ""
    assert "\x1b" not in done.stderr
    assert list(folder.iterdir()) == []


def test_a_file_is_never_written_over(run, folder):
    (folder / "sdpa.py").write_text("mine")
    done = run("start", "sdpa")

    assert done.returncode == 2
    assert done.stdout == ""
    assert "'sdpa.py' exists already and was not changed" in done.stderr
    assert "attn-kata reset sdpa" in done.stderr
    assert (folder / "sdpa.py").read_text() == "mine"


def test_a_link_that_leads_nowhere_is_not_written_through(run, folder, tmp_path):
    (folder / "sdpa.py").symlink_to(tmp_path / "elsewhere.py")
    done = run("start", "sdpa")

    assert done.returncode == 2
    assert not (tmp_path / "elsewhere.py").exists()


def test_a_file_that_was_there_becomes_the_current_kata(run, folder):
    (folder / "sdpa.py").write_text("mine")
    run("start", "mha")
    run("start", "sdpa")

    assert "> sdpa" in run("list").stdout


def test_of_two_starts_at_once_one_writes(folder, environment):
    command = [sys.executable, "-m", "attn_kata", "start", "sdpa"]
    both = [subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.DEVNULL) for _ in range(4)]
    codes = sorted(process.wait(60) for process in both)

    assert codes == [0, 2, 2, 2]
    assert (folder / "sdpa.py").read_text("utf-8").endswith('attn-kata grade")\n')


def test_another_folder_is_made_where_it_is_missing(run, folder):
    done = run("start", "sdpa", "--dir", "some/where")

    assert done.returncode == 0
    assert (folder / "some" / "where" / "sdpa.py").exists()


def test_a_folder_that_cannot_be_made_is_said(run, folder):
    (folder / "file").touch()
    done = run("start", "sdpa", "--dir", "file/below")

    assert done.returncode == 2
    assert done.stderr.startswith("'file/below/sdpa.py' cannot be written: ")


def test_a_current_folder_that_is_gone_is_said(run, folder, environment):
    script = f'rmdir "$PWD" && exec "{sys.executable}" -m attn_kata start sdpa'
    done = subprocess.run(
        ["sh", "-c", script], cwd=folder, env=environment, capture_output=True, check=False, text=True
    )

    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_the_levels_say_less_and_less(run, folder):
    sizes = []
    for level in stub.LEVELS:
        run("start", "mha", "--level", level, "--dir", level)
        text = (folder / level / "mha.py").read_text("utf-8")
        sizes.append(len(text))

        assert ("TODO" in text) == (level != "blank")
        assert ("shape: " in text) == (level == "guided")
    assert sizes == sorted(sizes, reverse=True)


def test_an_unknown_level_is_a_usage_error(run):
    done = run("start", "mha", "--level", "easy")

    assert done.returncode == 2
    assert done.stdout == ""
    assert "'easy'" in done.stderr


@pytest.mark.parametrize(("slug", "level"), EVERY_STUB)
def test_every_stub_is_clean_python_with_the_contract_in_full(slug, level):
    kata = catalog.find(slug)
    source = stub.render(kata, level)
    tree = ast.parse(source)

    compile(source, f"{slug}.py", "exec", dont_inherit=True)
    assert contract.load(kata.prompt).text in (ast.get_docstring(tree, clean=False) or "")
    assert "<!--" not in source
    assert max(map(len, source.splitlines())) <= 120
    assert source.endswith("\n")
    assert not source.endswith("\n\n")
    defined = [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    assert defined == list(kata.entries)
    assert stub.header(source.encode()) == (slug, level)


def test_every_stub_is_as_the_formatter_would_write_it(tmp_path):
    for slug, level in EVERY_STUB:
        file = tmp_path / f"{slug}_{level}.py"
        file.write_text(stub.render(catalog.find(slug), level), encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff"]
    if subprocess.run([*ruff, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("ruff is not installed")

    options = ["--isolated", "--line-length", "120", "--no-cache", str(tmp_path)]
    assert subprocess.run([*ruff, "check", "--select", "E,F,W,I", *options], check=False).returncode == 0
    assert subprocess.run([*ruff, "format", "--check", *options], check=False).returncode == 0


def test_the_untouched_stub_says_that_it_is_not_written_yet_and_its_smoke_check_runs_on_the_reference(tmp_path, ready):
    """In one process for all katas, which has loaded torch."""
    for folder in ("stubs", "references"):
        (tmp_path / folder).mkdir()
    for kata in catalog.katas():
        (tmp_path / "stubs" / f"{kata.slug}.py").write_text(stub.render(kata, "blank"), encoding="utf-8")
        code = f"{kata.solution.read_text('utf-8')}\n\nimport torch\n\n{stub.shape_check(kata)}\nprint('done')\n"
        (tmp_path / "references" / f"{kata.slug}.py").write_text(code, encoding="utf-8")
    names = [f"{slug}.py" for slug in catalog.slugs()]
    runner = """
import os, runpy, sys
os.chdir("stubs")
for name in sys.argv[1:]: runpy.run_path(name, run_name="__main__")
print("references")
os.chdir("../references")
for name in sys.argv[1:]: runpy.run_path(name)
"""
    done = ready.run_with_torch(runner, *names, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    of_stubs, of_references = (part.splitlines() for part in done.stdout.split("references\n"))
    assert len(of_stubs) == len(names)
    assert all("is not written yet" in line and line.endswith("attn-kata grade") for line in of_stubs)
    assert of_references.count("done") == len(names)
    assert len(of_references) >= 2 * len(names)


def test_the_steps_are_numbered_through_wrapped_and_indented_with_the_code():
    source = stub.render(catalog.find("padding_mask"), "guided")

    assert (
        """
    # TODO 4: Align keep with the scores.
    #     Its first dimension is the sample, its last is the key. Every head and every query sees
    #     the same flags.
    #     shape: (B, 1, 1, Tk)
    # TODO 5: """
        in source
    )
    assert "        # TODO 1: " in stub.render(catalog.find("mha"), "standard")


def test_the_signatures_alone_say_nothing_of_the_contract():
    assert (
        stub.signatures(catalog.find("mha"))
        == """\
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        raise NotImplementedError("MultiHeadAttention.__init__ is not written yet")

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        raise NotImplementedError("MultiHeadAttention.forward is not written yet")"""
    )


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A copy of the package with two katas, to be written into."""
    root = tmp_path / "copy"
    package = Path(attn_kata.__file__).parent
    own = shutil.ignore_patterns(
        "katas", "solutions", "templates"
    )  # what is compiled stays valid: the times are the same
    shutil.copytree(package, root / "attn_kata", ignore=own)
    shutil.copytree(resources.templates_folder(), root / "attn_kata" / "templates")
    for slug in ("sdpa", "mha"):
        shutil.copytree(catalog.find(slug).folder, root / "attn_kata" / "katas" / slug)
    return root


def of_copy(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(root), "ATTN_KATA_HOME": str(root / "home")}
    command = [sys.executable, "-m", "attn_kata", *arguments]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


def test_an_author_is_told_what_is_missing_and_which_hidden_tests_cannot_be_read(installed):
    """Both were called a fault of attn-kata's own, to be reported."""
    tests = installed / "attn_kata" / "katas" / "sdpa" / "test_sdpa.py"
    solutions = installed / "attn_kata" / "solutions"
    solutions.mkdir()
    right = tests.read_text("utf-8")
    tests.unlink()
    without = of_copy(installed, "dev", "check", "sdpa")
    shutil.copy(catalog.find("sdpa").solution, solutions)
    tests.write_text(f"{right}def test_(:\n", "utf-8")
    broken = of_copy(installed, "dev", "check", "sdpa")

    assert "- there is no solutions/sdpa.py" in without.stdout
    assert "- there is no sdpa/test_sdpa.py" in without.stdout
    assert "- test_sdpa.py cannot be used: " in broken.stdout
    assert "def test_(:" in broken.stdout
    assert "SyntaxError" in broken.stdout
    assert [(done.returncode, done.stderr) for done in (without, broken)] == [(1, "")] * 2


def test_an_author_may_name_the_folder_and_is_told_which_file_it_lacks(installed):
    katas = installed / "attn_kata" / "katas"
    (katas / "my_kata").mkdir()
    shutil.copytree(katas / "sdpa", installed / "elsewhere")
    (installed / "attn_kata" / "solutions").mkdir()

    of_folder = of_copy(installed, "dev", "check", "attn_kata/katas/sdpa/")
    by_slug = of_copy(installed, "dev", "check", "my_kata")
    by_path = of_copy(installed, "dev", "check", str(katas / "my_kata"))
    elsewhere = of_copy(installed, "dev", "check", "elsewhere")
    unknown = of_copy(installed, "dev", "check", "spda")

    assert of_folder.stdout.startswith("sdpa: 0 graded, 1 problem\n")
    for done in (by_slug, by_path):
        assert done.stderr.startswith("There is no kata.toml in 'attn_kata/katas/my_kata'.\n")
        assert "CONTRIBUTING.md" in done.stderr
    assert "Move it to 'attn_kata/katas/elsewhere'" in elsewhere.stderr
    assert "Did you mean 'sdpa'?" in unknown.stderr
    assert {done.returncode for done in (by_slug, by_path, elsewhere, unknown)} == {2}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "{% block code %}",
            "{% block cod %}",
            "sdpa/stub.py.j2, line 1: TemplateRuntimeError: Required block 'code' not found",
        ),
        ("{% block shapes %}", "{% block %}", "sdpa/stub.py.j2, line 33: expected token 'name'"),
        ("{{ todo(", "{{ tudo(", "sdpa/stub.py.j2, line 10: UndefinedError: 'tudo' is undefined"),
        ("shape=", "shapes=", "sdpa/stub.py.j2, line 10: TypeError: "),
        ('"Score every query against every key."', '""', "line 10: ValueError: a todo says what to do"),
    ],
)
def test_a_template_that_does_not_render_is_said_with_file_and_line(installed, old, new, said):
    template = installed / "attn_kata" / "katas" / "sdpa" / "stub.py.j2"
    text = template.read_text("utf-8")
    assert old in text
    template.write_text(text.replace(old, new, 1), "utf-8")

    done = of_copy(installed, "start", "sdpa")

    assert done.returncode == 4
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (installed / "sdpa.py").exists()


def test_where_a_new_stub_cannot_be_made_the_old_file_is_left_as_it_is(installed):
    (installed / "sdpa.py").write_text("mine")
    (installed / "attn_kata" / "katas" / "sdpa" / "stub.py.j2").unlink()

    done = of_copy(installed, "reset", "sdpa")

    assert done.returncode == 4
    assert (installed / "sdpa.py").read_text() == "mine"
    assert not list(installed.glob("*.bak*"))


def test_a_kata_without_its_stub_or_contract_says_which_file_it_lacks(installed):
    (installed / "attn_kata" / "katas" / "mha" / "stub.py.j2").unlink()
    (installed / "attn_kata" / "katas" / "sdpa" / "prompt.md").unlink()

    no_stub = of_copy(installed, "start", "mha")
    no_contract = of_copy(installed, "start", "sdpa")

    assert "There is no template mha/stub.py.j2." in no_stub.stderr
    assert "prompt.md cannot be read: " in no_contract.stderr
    for done in (no_stub, no_contract):
        assert done.returncode == 4
        assert "Traceback" not in done.stderr
    assert not (installed / "mha.py").exists()
