"""A method that is an attention, in a class that cannot be read: it is graded alone, as the forward of its class."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.readings.test_kinds import HEAD

from attn_kata.readings import inference
from attn_kata.readings.source import methods

CLASSIFIER = """
class Classifier(nn.Module):
    def __init__(self, vocab_size, embed_dim, hidden_dim, n_classes):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.rnn = nn.LSTM(embed_dim, hidden_dim, batch_first=True)
        self.head = nn.Linear(hidden_dim, n_classes)

    def attend(self, outputs, state):
        \"\"\"outputs (B, T, H) of every step, state (B, H) of the last one\"\"\"
        scores = torch.bmm(outputs, state.unsqueeze(2)).squeeze(2)
        weights = F.softmax(scores, dim=1)
        return torch.bmm(weights.unsqueeze(1), outputs).squeeze(1)

    def forward(self, tokens, lengths_of_all):
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(tokens), lengths_of_all.cpu(), batch_first=True)
        outputs, (state, _) = self.rnn(packed)
        return self.head(self.attend(outputs.data, state[-1]))
"""
HEADS = """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.words = open("words.txt").read()
        self.q_proj, self.k_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.v_proj, self.out_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.n_heads = n_heads

    def attend(self, q, k, v):
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return torch.softmax(scores, dim=-1) @ v

    def forward(self, x):
        q, k, v = (self.split(one(x)) for one in (self.q_proj, self.k_proj, self.v_proj))
        return self.out_proj(self.attend(q, k, v).transpose(1, 2).flatten(2))

    def split(self, x):
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
"""


@pytest.fixture
def grade(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTN_KATA_HOME", str(tmp_path / "home"))

    def grade(text: str, *options: str, json: bool = False) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "mine.py"
        path.write_text(HEAD + text, "utf-8")
        command = [sys.executable, "-m", "attn_kata", "grade", str(path), *(["--json"] * json), *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)

    return grade


def test_the_attention_of_a_model_is_graded_and_said_to_be_all_that_is(grade) -> None:
    done = grade(CLASSIFIER, json=True)

    report = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout
    assert report["kata"] == "multiplicative_attention"
    assert report["reading"]["entry"] == "Classifier.attend"
    assert any(note.startswith("Only Classifier.attend is graded") for note in report["reading"]["notes"])
    assert "Classifier could not be read. Only its method Classifier.attend is graded" in done.stderr


def test_the_line_of_its_mistake_is_that_of_the_file(grade) -> None:
    wrong = CLASSIFIER.replace("F.softmax(scores, dim=1)", "F.softmax(scores, dim=0)")
    report = json.loads(grade(wrong, json=True).stdout)

    assert report["outcome"] == "failed"
    (mistake,) = report["diagnosis"][0]["mistakes"]
    assert mistake["source_line"] == "weights = F.softmax(scores, dim=0)"
    assert mistake["line"] == 1 + (HEAD + wrong)[: (HEAD + wrong).index("dim=0")].count("\n")


def test_what_is_shown_can_be_typed_and_gives_the_same(grade) -> None:
    first = json.loads(grade(CLASSIFIER, json=True).stdout)
    flags = [part for flag in first["reading"]["flags"] for part in ("--read", flag)]
    again = json.loads(grade(CLASSIFIER, "--kata", first["kata"], *flags, json=True).stdout)

    assert again["reading"] == first["reading"]
    untimed = [[one | {"seconds": 0} for one in report["findings"]] for report in (first, again)]
    assert untimed[0] == untimed[1]


def test_a_right_method_does_not_make_an_attention_right_that_could_not_be_read(grade) -> None:
    done = grade(HEADS)

    assert done.returncode == 3, done.stdout
    said = " ".join(done.stdout.split())
    assert (
        "MultiHeadAttention.attend is right, as sdpa (--kata sdpa --class MultiHeadAttention.attend shows it)" in said
    )
    assert grade(HEADS, "--class", "MultiHeadAttention.attend").returncode == 0


def test_a_wrong_method_makes_it_wrong(grade) -> None:
    done = grade(HEADS.replace("math.sqrt(q.shape[-1])", "q.shape[-1]"))

    assert done.returncode == 1, done.stdout
    assert "scale.no_sqrt" in done.stdout


def test_the_adapter_has_only_what_is_graded(grade, tmp_path: Path) -> None:
    pipeline = HEADS.replace("(nn.Module)", "").replace("MultiHeadAttention", "Pipeline")
    done = grade(pipeline, "--class", "Pipeline.attend", "--write-adapter", "adapted.py")
    strict = [sys.executable, "-m", "attn_kata", "grade", "adapted.py", "--kata", "sdpa", "--strict"]
    again = subprocess.run(strict, capture_output=True, text=True, timeout=120, cwd=tmp_path)

    assert done.returncode == 0, done.stdout
    assert again.stdout.startswith("PASSED  sdpa"), again.stdout
    assert "words.txt" not in (tmp_path / "adapted.py").read_text("utf-8")


def test_what_is_wrong_however_it_is_read_is_said_before_a_method_is_tried(grade) -> None:
    shared = HEADS.replace(
        "self.v_proj, self.out_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)",
        "self.v_proj, self.out_proj = nn.ModuleList([nn.Linear(d_model, d_model)] * 3), nn.Linear(d_model, d_model)",
    )
    done = grade(shared.replace("math.sqrt(q.shape[-1])", "q.shape[-1]"))

    assert done.returncode == 1, done.stdout
    assert "module.repeated" in done.stdout
    assert "scale.no_sqrt" not in done.stdout


def test_the_greatest_length_is_no_mask(grade) -> None:
    text = HEADS.replace("def attend(self, q, k, v):", "def attend(self, q, k, v, max_seq_length):")
    text = text.replace("dim=-1) @ v", "dim=-1) @ v[..., :max_seq_length, :]")
    done = grade(text, "--class", "MultiHeadAttention.attend")

    assert done.returncode == 0, done.stdout


def test_what_raises_is_said_to_be_in_the_method(grade) -> None:
    raising = CLASSIFIER.replace("weights = F", "assert len(scores) > 99, 'few'\n        weights = F")
    done = grade(raising, "--class", "Classifier.attend")

    assert done.returncode == 3
    assert "in attend." in " ".join(done.stdout.split())
    assert "in forward" not in done.stdout


def test_an_unknown_method_is_said_with_what_there_is(grade) -> None:
    done = grade(CLASSIFIER, "--class", "Classifier.attention")

    assert done.returncode == 2
    assert "The file has no class or function 'Classifier.attention'. Did you mean 'Classifier.attend'?" in done.stderr


def test_only_methods_that_mix_by_weights_are_found() -> None:
    text = HEAD + CLASSIFIER + HEADS
    more = """
class Other:
    def sample(self, logits, values):
        return torch.softmax(logits, -1) @ values

    @property
    def mixed(self):
        return torch.softmax(self.a @ self.b, -1)

    def mix(self, values):
        return torch.softmax(values @ values.mT, -1)
"""
    assert methods.of((text + more).encode()) == ["Classifier.attend", "MultiHeadAttention.attend"]
    assert [name for _, name, _ in inference.methods_of(text.encode())] == [
        "Classifier.attend",
        "MultiHeadAttention.attend",
    ]


WITH_TABS = (
    "class A:\n\tdef __init__(self, a,\n\t\tb, c=1):\n\t\tself.a = a\n\t\tself.c = c\n"
    "\tdef mix(self, q, k):\n\t\treturn self.c * q @ k\n"
)


def test_lines_and_tabs_stay_and_only_what_is_used_of_the_constructor() -> None:
    only = methods.alone(WITH_TABS.encode(), "A.mix")

    assert only is not None
    assert only.decode().split("\n") == [
        'class A(__import__("torch").nn.Module):',
        "\tdef __init__(self, c=1):",
        "",
        "",
        "\t\tsuper().__init__(); self.c = c",
        "\tdef forward(self, q, k):",
        "\t\treturn self.c * q @ k",
        "",
    ]


def test_methods_that_it_calls_stay_and_a_static_one_gets_its_instance() -> None:
    text = """
class A(nn.Module):
    def __init__(self, width):
        super().__init__()
        self._make(width)
        self.other = nn.Linear(width, 3)
    def _make(self, width):
        self.layer = nn.Linear(width, width)
    def go(self, x):
        return self.other(x)
    def forward(self, x):
        return self.go(x)
    def projected(self, x):
        return self.layer(x)
    @staticmethod
    def weigh(scores, values):
        return scores.softmax(-1) @ values
    def mix(self, q, k):
        return self.weigh(self.projected(q) @ k.mT, k)
"""
    mixed, weighed = (methods.alone(text.encode(), name) for name in ("A.mix", "A.weigh"))

    assert mixed is not None
    assert weighed is not None
    assert "self._make(width)" in mixed.decode()
    assert "def _make(self, width)" in mixed.decode()
    assert "self.other" not in mixed.decode()
    assert "def weigh(scores, values)" in mixed.decode()
    assert "def forward(self, scores, values)" in weighed.decode()
    assert "Linear" not in weighed.decode()
    assert "staticmethod" not in weighed.decode()


@pytest.mark.parametrize("name", ["A.forward", "A.__init__", "A.none", "B.mix", "A", "mix", "A.mix.more", ""])
def test_anything_else_is_graded_as_it_is(name: str) -> None:
    text = b"class A:\n    def __init__(self): pass\n    def forward(self, q, k): return q @ k\n"

    assert methods.taken(text, name) == (text, name)


def test_a_method_of_one_input_is_one_if_its_name_says_so():
    text = "class Memory(nn.Module):\n    def {}(self, memory):\n        scores = memory @ memory.transpose(1, 2)\n"
    text += "        return scores.softmax(dim=-1) @ memory\n"

    assert methods.of(text.format("self_attention").encode()) == ["Memory.self_attention"]
    assert methods.of(text.format("update").encode()) == []
