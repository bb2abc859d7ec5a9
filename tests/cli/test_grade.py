"""`attn-kata grade`, with the real engine."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pexpect
import pytest

import attn_kata.report
from attn_kata import catalog

pytestmark = pytest.mark.skipif(not catalog.find("sdpa").solution.exists(), reason="sdpa has no reference yet")

SCHEMA = json.loads((Path(attn_kata.report.__file__).parent / "report.schema.json").read_text("utf-8"))
WRONG = """\
import torch


def scaled_dot_product_attention(q, k, v):
    print("[red]called\\x1b[2J")
    scores = q @ k.transpose(-2, -1) / q.shape[-1]
    return scores.softmax(-1) @ v
"""
BY_CONTRACT = """
class SelfAttention(torch.nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        self.q_proj, self.k_proj = torch.nn.Linear(input_dim, key_dim), torch.nn.Linear(input_dim, key_dim)
        self.v_proj = torch.nn.Linear(input_dim, value_dim)
"""


@pytest.fixture
def reference() -> str:
    return catalog.find("sdpa").solution.read_text("utf-8")


def test_a_right_attempt_passes_and_is_remembered(run, folder, reference):
    run("start", "sdpa")
    (folder / "sdpa.py").write_text(reference, "utf-8")
    done = run("grade")

    assert done.returncode == 0, done.stdout
    assert done.stderr == ""
    assert done.stdout.startswith("PASSED  sdpa  sdpa.py")
    assert max(map(len, done.stdout.splitlines())) <= 80
    listed = run("list").stdout.splitlines()
    assert listed[0].split() == ["First", "steps", "passed"]
    assert time.strftime("%Y-%m-%d") in listed[1]
    status = run("status").stdout
    assert status.startswith("1 of ")
    assert run("solution").returncode == 0
    assert "saw the reference" not in run("status").stdout


def test_a_wrong_attempt_fails_with_the_property_and_what_it_printed(run, folder):
    (folder / "mine.py").write_text(WRONG)
    done = run("grade", "mine.py", "--kata", "sdpa")

    assert done.returncode == 1
    assert done.stdout.startswith("FAILED  sdpa  mine.py")
    assert "FAIL   values" in done.stdout
    assert "[red]called" in done.stdout
    assert "\x1b" not in done.stdout
    assert "sdpa: values (1 of 1 gradings)" in run("status").stdout
    following = done.stdout.partition("Next: change it, then attn-kata ")[2].partition(" (stuck")[0].split()
    assert following == ["grade", "mine.py", "--kata", "sdpa"]  # its name does not say the kata
    assert run(*following).returncode == 1


def test_a_file_is_known_by_what_it_defines_and_that_is_said(run, folder):
    (folder / "mine.py").write_text(WRONG)
    done = run("grade", "mine.py", "--format", "json")

    assert done.returncode == 1
    assert done.stderr == "'mine.py' defines scaled_dot_product_attention, so it is graded as sdpa.\n"
    assert json.loads(done.stdout)["kata"] == "sdpa"


def test_what_the_file_defines_is_read_and_not_run(run, folder):
    (folder / "mine.py").write_text("open('ran', 'w')\nclass MultiHeadAttention: ...\n" + "x = " + "(" * 5000)
    done = run("grade", "mine.py")

    assert done.returncode == 2
    assert "it cannot be told which kata it is" in done.stderr
    assert not (folder / "ran").exists()


SPOILED = {
    "scale.embed_dim": ("math.sqrt(self.head_dim)", "math.sqrt(E)"),
    "mask.inverted": ("~mask", "mask"),
    "layout.view_of_strided": (".reshape(B, T, E)", ".view(B, T, E)"),
    "line 29 in forward": ("if mask is not None:", "if mask:"),
    "MultiHeadAttention, line": ("B, T, E = x.shape", "raise RuntimeError('MultiHeadAttention')"),
}


@pytest.mark.parametrize(("said", "edit"), SPOILED.items(), ids=SPOILED)
def test_the_commonest_failures_fit_one_screen_and_full_has_it_all(run, folder, said, edit):
    plain = (catalog.find("mha").folder / "right" / "plain.py").read_text("utf-8")
    assert plain.count(edit[0]) == 1
    (folder / "mha.py").write_text(plain.replace(*edit), "utf-8")
    short = run("grade", "mha.py").stdout

    assert said in " ".join(short.split())
    assert len(short.splitlines()) <= 24
    assert max(map(len, short.splitlines())) <= 80
    assert "not tried: attn-kata grade mha.py --full\n" in short
    assert "SKIP" not in short
    assert "no known mistake" not in short
    if said == "mask.inverted":
        whole = run("grade", "mha.py", "--full").stdout
        assert "SKIP" in whole
        assert "PASS" in whole


def test_an_encoding_without_the_signs_gets_words_for_them(run, folder):
    plain = (catalog.find("mha").folder / "right" / "plain.py").read_text("utf-8")
    (folder / "mha.py").write_text(plain.replace(*SPOILED["scale.embed_dim"]), "utf-8")
    text = run("grade", "mha.py", PYTHONIOENCODING="ascii").stdout

    assert "You divided by sqrt 15 = sqrt embed_dim" in text
    assert "softmax(q k^T /" in text


def test_the_untouched_stub_is_told_kindly_and_known_by_its_header_under_any_name(run, folder):
    run("start", "sdpa")
    (folder / "sdpa.py").rename(folder / "my attempt.py")
    done = run("grade", "my attempt.py")

    assert done.returncode == 1
    assert done.stdout.startswith("NOT WRITTEN YET  sdpa  my attempt.py")
    assert "FAIL " not in done.stdout
    assert "attn-kata grade 'my attempt.py'" in done.stdout


def test_json_is_alone_on_stdout_keeps_to_its_schema_and_one_seed_gives_one_report(run, folder):
    jsonschema = pytest.importorskip("jsonschema")
    (folder / "sdpa.py").write_text(WRONG)
    both = [run("grade", "sdpa.py", "--format", "json", "--seed", "7") for _ in range(2)]
    bodies = [json.loads(done.stdout) for done in both]

    assert [(done.returncode, done.stderr) for done in both] == [(1, "")] * 2
    first = bodies[0]
    assert [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(first)] == []
    assert (first["kata"], first["attempt"], first["outcome"], first["seed"]) == ("sdpa", "sdpa.py", "failed", 7)
    for body in bodies:
        body.pop("seconds")
        for finding in body["findings"]:
            finding.pop("seconds")
    assert bodies[0] == bodies[1]


def test_a_file_takes_the_report_and_stdout_stays_empty(run, folder, reference):
    (folder / "sdpa.py").write_text(reference, "utf-8")
    done = run("grade", "sdpa.py", "--format", "json", "--output", "report.json")

    assert done.returncode == 0
    assert done.stdout == ""
    assert done.stderr == "sdpa: passed. The report is in 'report.json'.\n"
    assert json.loads((folder / "report.json").read_text("utf-8"))["passed"] is True


def test_one_property_brings_what_it_needs_and_is_no_pass_of_the_kata(run, folder, reference):
    (folder / "sdpa.py").write_text(reference, "utf-8")
    done = run("grade", "sdpa.py", "--property", "values", "--format", "json")
    graded = {finding["property"] for finding in json.loads(done.stdout)["findings"]}

    assert done.returncode == 0
    assert "values" in graded
    assert len(graded) < 5
    assert "passed 20" not in run("list").stdout


def test_a_file_name_that_is_not_unicode_is_graded_and_shown(run, folder):
    jsonschema = pytest.importorskip("jsonschema")
    name = b"sd\xffpa.py"
    with open(bytes(folder) + b"/" + name, "w", encoding="utf-8") as file:
        file.write(WRONG)
    done = run("grade", os.fsdecode(name), "--kata", "sdpa", "--format", "json")
    body = json.loads(done.stdout)

    assert done.returncode == 1
    assert body["attempt"] == "sd\ufffdpa.py"
    assert [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(body)] == []


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (b"", "scaled_dot_product_attention"),
        (b"\x00\x93NUMPY", "not Python"),
        (b"def f(:\n", "in line 1: def f(:"),
        (b"import no_such_package\n", "no_such_package"),
        (b"def scaled_dot_attention(q, k, v): ...\n", "scaled_dot_attention"),
        (b"import os\nos._exit(0)\n", "import"),
    ],
    ids=["empty", "binary", "syntax", "missing package", "misspelt name", "exit"],
)
def test_what_cannot_be_graded_says_why(run, folder, source, said):
    (folder / "sdpa.py").write_bytes(source)
    done = run("grade", "sdpa.py")

    assert done.returncode == 3
    assert done.stdout.startswith("UNGRADED  sdpa  sdpa.py")
    assert "Not graded: " in done.stdout
    assert said in " ".join(done.stdout.split())
    assert "Traceback" not in done.stdout + done.stderr


def test_an_endless_loop_ends_with_the_timeout(run, folder):
    (folder / "sdpa.py").write_text("while True: pass\n")
    begun = time.monotonic()
    done = run("grade", "sdpa.py", "--timeout", "1")

    assert done.returncode == 3
    assert time.monotonic() - begun < 15


# What needs no engine ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sdap"], "Did you mean 'sdpa'?"),
        (["mah"], "Did you mean 'mha'?"),
        (["nothing.py"], "There is no file 'nothing.py'. Did you mean 'something.py'?"),
        (["some/where.py"], "There is no file 'some/where.py'."),
        (["rope.txt"], "There is no file 'rope.txt'."),
        (["a_folder"], "'a_folder' is a folder."),
        (["other.py"], "attn-kata grade other.py --kata KATA"),
        (["both.py"], "'both.py' defines what several katas ask for: sdpa and self_attention."),
        (
            ["unclosed.py"],
            "'unclosed.py' is not valid Python, so it cannot be told which kata it is: '(' was never closed",
        ),
        (["my notes.ipynb"], "The notebook 'my notes.ipynb' has no code in it."),
        (["broken.ipynb", "--kata", "sdpa"], "'broken.ipynb' is not a notebook: it is not valid JSON."),
        (["-", "--kata", "sdap"], "Did you mean 'sdpa'?"),
        (["something.py", "--kata", "sdap"], "Did you mean 'sdpa'?"),
        (["sdpa", "--kata", "mha"], "--kata is 'mha'"),
        (["mha"], "attn-kata start mha"),
        ([], "You have not started a kata yet."),
        (["something.py", "--kata", "sdpa", "--seed", "x"], "'x'"),
        (["something.py", "--kata", "sdpa", "--seed", "-1"], "-1"),
        (["something.py", "--kata", "sdpa", "--timeout", "0"], "0 is not a time"),
        (["something.py", "--kata", "sdpa", "--timeout", "nan"], "nan is not a time"),
        (["something.py", "--kata", "sdpa", "--timeout", "inf"], "inf is not a time"),
        (["something.py", "--kata", "sdpa", "--timeout", "soon"], "'soon'"),
        (["something.py", "--kata", "sdpa", "--output", "no/where"], "There is no folder 'no'"),
        (["something.py", "--kata", "sdpa", "--output", "a_folder"], "'a_folder' is a folder."),
        (["something.py", "--kata", "sdpa", "--output", "something.py"], "'something.py' is your attempt"),
        (["something.py", "--kata", "sdpa", "--property", "valeus"], "Did you mean 'values'?"),
        (["a_pipe", "--kata", "sdpa"], "'a_pipe' is not a regular file."),
        (["big.py", "--kata", "sdpa"], "2,000,000 bytes"),
    ],
    ids=lambda value: " ".join(value) or "no argument" if isinstance(value, list) else None,
)
def test_a_usage_error_has_one_sentence_the_next_command_and_nothing_on_stdout(run, folder, arguments, said):
    (folder / "something.py").write_text(WRONG)
    (folder / "other.py").write_text("def attention(q, k, v): ...\n")
    (folder / "both.py").write_text(WRONG + BY_CONTRACT)
    (folder / "unclosed.py").write_text("scores = (1,\n")
    (folder / "my notes.ipynb").write_text('{"cells": []}')
    (folder / "broken.ipynb").write_text('{"cells": [')
    (folder / "a_folder").mkdir()
    os.mkfifo(folder / "a_pipe")
    with (folder / "big.py").open("wb") as big:
        big.truncate(2_000_000)
    done = run("grade", *arguments)

    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert (folder / "something.py").read_text() == WRONG


def test_a_file_with_the_names_of_several_katas_is_graded_by_the_one_whose_contract_it_has(run, folder):
    (folder / "both.py").write_text(f"{WRONG}\nclass MultiHeadAttention: ...\n")
    done = run("grade", "both.py")

    assert done.returncode == 1
    assert done.stdout.startswith("FAILED  sdpa")
    assert "--kata mha or --kata qkv_attention grades its other code." in done.stderr


NEEDS_A_HELPER = (
    "class SelfAttendWithHeads(torch.nn.Module):\n    def __init__(self, width, n_heads):\n        super().__init__()\n"
    "        self.q, self.k = torch.nn.Linear(width, width), helper(width)\n\n"
    "    def forward(self, x):\n        return (self.q(x) @ self.k(x).mT).softmax(-1) @ x\n"
)


def test_where_a_definition_cannot_be_read_the_next_one_gives_no_failure_that_names_nothing(run, folder):
    unexplained = "import torch\n\ndef attend(q, k, v):\n    return ((q @ k.mT) ** 3).softmax(-1) @ v.abs()\n\n"
    (folder / "both.py").write_text(unexplained + NEEDS_A_HELPER)
    done = run("grade", "both.py")

    assert done.returncode == 3
    assert done.stdout.startswith("UNGRADED  mha")
    assert "attend looks like" not in done.stderr


def test_where_a_definition_cannot_be_read_the_next_ones_kata_is_tried_and_that_is_said(run, folder):
    (folder / "both.py").write_text(WRONG.replace("scaled_dot_product_attention", "attend") + NEEDS_A_HELPER)
    done = run("grade", "both.py")

    assert done.returncode == 1
    assert done.stdout.startswith("FAILED  sdpa")
    assert "The class SelfAttendWithHeads looks like mha" in done.stderr
    said = (
        "SelfAttendWithHeads could not be read as mha, and is not graded. The function attend looks like sdpa, so it is"
    )
    assert f"{said} read as sdpa." in done.stderr
    assert "--kata sdpa --class attend" in done.stdout


def test_a_class_that_the_file_does_not_have_is_said_with_those_that_it_has(run, folder):
    (folder / "mine.py").write_text("import torch\n\n\nclass MultiHead(torch.nn.Module): ...\n")
    done = run("grade", "mine.py", "--class", "MultiHed")

    assert done.returncode == 2
    assert "The file has no class or function 'MultiHed'. Did you mean 'MultiHead'?" in done.stderr
    assert "Name one that it has: MultiHead" in done.stderr


def test_code_with_heads_in_a_file_called_after_a_kata_without_is_not_graded_as_one_head(run, folder):
    """As one head it would pass, whatever is wrong with the heads."""
    with_heads = (
        "import torch\n\n\nclass Attend(torch.nn.Module):\n"
        "    def __init__(self, width, n_heads):\n        super().__init__()\n"
        "        self.h, self.qkv, self.out = n_heads, torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)\n\n"
        "    def forward(self, x):\n        B, T, E = x.shape\n"
        "        q, k, v = (one.view(B, T, self.h, -1).transpose(1, 2) for one in self.qkv(x).chunk(3, dim=-1))\n"
        "        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)\n"
        "        return self.out((weights @ v).reshape(B, T, E))\n"  # the heads are never merged
    )
    (folder / "self_attention.py").write_text(with_heads)
    done = run("grade", "self_attention.py")

    assert done.returncode == 1
    assert done.stdout.startswith("FAILED  mha")
    assert "merge.no_transpose" in done.stdout


def test_a_file_without_permission_is_said(run, folder):
    file = folder / "sdpa.py"
    file.write_text(WRONG)
    file.chmod(0)
    try:
        file.read_bytes()
    except PermissionError:
        pass
    else:
        pytest.skip("this user may read everything")
    done = run("grade", "sdpa.py")

    assert done.returncode == 2
    assert done.stderr == "'sdpa.py' cannot be read: Permission denied.\n"


def test_an_attempt_that_has_moved_is_missed_with_the_next_command(run, folder):
    run("start", "sdpa", "--dir", "there")
    (folder / "there" / "sdpa.py").unlink()
    done = run("grade")

    assert done.returncode == 2
    assert "no longer at 'there/sdpa.py'" in done.stderr


def test_a_folder_of_a_katas_name_does_not_hide_the_kata(run, folder):
    (folder / "sdpa").mkdir()
    done = run("grade", "sdpa")

    assert done.returncode == 2
    assert "attn-kata start sdpa" in done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"])
@pytest.mark.parametrize("seconds", [0.1, 2.0], ids=["while torch loads", "in the attempt"])
def test_a_signal_ends_it_and_leaves_nothing_behind(folder, environment, tmp_path, number, code, seconds):
    psutil = pytest.importorskip("psutil")
    (folder / "sdpa.py").write_text("import time\nwhile True: time.sleep(1)\n")
    (tmp_path / "tmp").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "attn_kata", "grade", "sdpa.py"],
        cwd=folder,
        env={**environment, "TMPDIR": str(tmp_path / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 20
    while not psutil.Process(process.pid).children() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(seconds)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    printed, errors = process.communicate(timeout=15)

    assert process.returncode == code
    assert (printed, errors) == ("", "")
    assert children
    assert psutil.wait_procs(children, timeout=5)[1] == []
    assert list((tmp_path / "tmp").iterdir()) == []


def test_in_a_terminal_the_report_is_coloured_and_fits(folder, environment, ready):
    pexpect = pytest.importorskip("pexpect")
    pyte = pytest.importorskip("pyte")
    (folder / "sdpa.py").write_text(WRONG)
    printed = pexpect.run(
        shlex.join(ready.face("grade", "sdpa.py")),
        cwd=str(folder),
        env={**environment, "TERM": "xterm-256color"},
        dimensions=(200, 80),
        timeout=60,
    ).decode()
    screen = pyte.Screen(80, 200)
    pyte.Stream(screen).feed(printed)
    lines = [line.rstrip() for line in screen.display]

    assert "\x1b[1;31mFAILED" in printed
    assert lines[0].startswith("FAILED  sdpa  sdpa.py")
    assert [line for line in lines if line][-1].startswith("Next: ")


def test_a_part_that_holds_is_no_pass_of_the_kata_and_says_so(run, folder):
    (folder / "softmax.py").write_text("import torch\n\n\ndef softmax(x, dim):\n    return torch.zeros_like(x)\n")
    done = run("grade", "softmax.py", "--property", "output_shape")

    assert "1 of 1 core properties that you asked for holds\n" in done.stdout
    assert "attn-kata solution" not in done.stdout
    assert (
        run("grade", "softmax.py", "--property", "output_shape", "--format", "json").stdout.count('"part": true') == 1
    )


def test_an_untouched_stub_counts_as_no_attempt(run):
    run("start", "sdpa")
    assert "NOT WRITTEN YET" in run("grade").stdout

    assert json.loads(run("list", "--json").stdout)[0]["attempts"] == 0


def test_an_endless_loop_is_waited_for_once(run, folder):
    loop = "while True:\n        time.sleep(1)"
    (folder / "sdpa.py").write_text(f"import time\n\n\ndef scaled_dot_product_attention(q, k, v):\n    {loop}\n")
    started = time.monotonic()
    done = run("grade")

    assert done.returncode == 1
    assert "no answer within 10 s" in done.stdout
    assert time.monotonic() - started < 10 + 2 * 2 + 8  # once, then twice a little, and what a busy machine takes


def test_who_waits_at_a_terminal_is_told_what_for(folder, home, ready):
    (folder / "sdpa.py").write_text(  # slow once, where a call would be made three times
        "import time\n\ntime.sleep(5)\n\n\ndef scaled_dot_product_attention(q, k, v):\n    return v\n"
    )
    python, *arguments = ready.face("grade", "--property", "output_shape")
    child = pexpect.spawn(
        python,
        arguments,
        cwd=str(folder),
        timeout=60,
        env={**os.environ, "ATTN_KATA_HOME": str(home), "TERM": "xterm"},
    )
    child.expect("Grading … ".encode())
    child.expect("FAILED")
    child.expect(pexpect.EOF)


HELPER = """\
import torch


def weights(q, k):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return scores.softmax(-2)
"""
USES_IT = """\
from helper import weights


def scaled_dot_product_attention(q, k, v):
    return weights(q, k) @ v
"""


def test_what_an_attempt_imports_from_a_file_beside_it_is_read_and_a_mistake_there_has_its_line(run, folder):
    (folder / "sdpa.py").write_text(USES_IT, "utf-8")
    (folder / "helper.py").write_text(HELPER, "utf-8")
    wrong = run("grade", "sdpa.py")

    assert wrong.returncode == 1, wrong.stdout
    assert "(softmax.query_axis)" in wrong.stdout
    assert "helper.py, line 6" in wrong.stdout
    assert "> 6  return scores.softmax(-2)" in wrong.stdout
    assert "Note: Read with what it imports from helper.py." in wrong.stdout

    (folder / "helper.py").write_text(HELPER.replace("-2)\n", "-1)\n"), "utf-8")
    right = run("grade", "sdpa.py")
    assert right.returncode == 0, right.stdout

    report = json.loads(run("grade", "sdpa.py", "--json").stdout)
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(report, SCHEMA)
    assert {cell["name"] for cell in report["cells"]} == {"", "helper.py"}


def test_a_mistake_in_the_file_itself_has_its_own_line_whatever_it_imports(run, folder):
    (folder / "sdpa.py").write_text(USES_IT.replace("weights(q, k) @ v", "weights(q, k).softmax(-2) @ v"), "utf-8")
    (folder / "helper.py").write_text(HELPER.replace(".softmax(-2)", ""), "utf-8")
    wrong = run("grade", "sdpa.py", "--format", "github")

    assert wrong.returncode == 1
    assert "::error file=sdpa.py,line=5,title=" in wrong.stdout
    assert "softmax.query_axis" in wrong.stdout


def test_another_persons_file_reads_no_file_beside_it(run, folder):
    (folder / "sdpa.py").write_text(USES_IT, "utf-8")
    (folder / "helper.py").write_text(HELPER, "utf-8")
    done = run("grade", "sdpa.py", "--untrusted")

    assert done.returncode == 3, done.stdout
    assert "No module named 'helper'" in done.stdout
    assert "everything else takes one file" in " ".join(done.stdout.split())
