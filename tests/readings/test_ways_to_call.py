"""Ways to call code that public files showed, and flags that people typed: inputs in a tuple, sizes at module level."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.readings.pairs import right_and_wrong, told
from tests.readings.test_kinds import HEAD

from attn_kata.engine.client import Engine

IN_A_TUPLE = """
class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h = n_heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(width, width) for _ in range(4))

    def forward(self, inputs):
        queries, keys, values = inputs
        b, t, e = queries.shape
        q, k, v = self.wq(queries), self.wk(keys), self.wv(values)
        q, k, v = (part.view(b, t, self.h, -1).transpose(1, 2) for part in (q, k, v))
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(e // self.h), dim=-1)
        return self.wo((weights @ v).transpose(1, 2).reshape(b, t, e))
"""
# It needs a mask (B, T), and returns a tuple: with a mask (B, T, T) it answers, too, with a dimension too many.
WITH_WEIGHTS = """
class Attend(nn.Module):
    def __init__(self, width=300):
        super().__init__()
        self.to_q, self.to_k, self.to_v = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.size = width

    def forward(self, q, k, v, mask):
        q, k, v = self.to_q(q), self.to_k(k), self.to_v(v)
        scores = torch.matmul(q, k.transpose(1, 2)) / math.sqrt(self.size)
        mask = mask.unsqueeze(1)
        weights = F.softmax(scores.masked_fill(mask == 0, -1e9), dim=-1)
        return self.out(torch.matmul(weights, v)), weights
"""
SET_LATER = """
WIDTH, HEADS = 384, 6

class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("tril", torch.tril(torch.ones(CONTEXT_LENGTH, CONTEXT_LENGTH)))

    def forward(self, x):
        b, t, e = x.shape
        q, k, v = (part.view(b, t, HEADS, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.tril[:t, :t] == 0, float("-inf"))
        return self.out((F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(b, t, e))

class Model(nn.Module):
    def __init__(self, context_length):
        super().__init__()
        global CONTEXT_LENGTH
        CONTEXT_LENGTH = context_length
        self.attend = Attend()
"""


@pytest.mark.parametrize(
    ("text", "old", "flag"),
    [
        (IN_A_TUPLE, " / math.sqrt(e // self.h)", "call=inputs=qkv"),
        (WITH_WEIGHTS, " / math.sqrt(self.size)", "shape=(B, T)"),
        (SET_LATER, " / math.sqrt(k.shape[-1])", "globals=CONTEXT_LENGTH=L,HEADS=H,WIDTH=E"),
    ],
)
def test_it_is_read_without_a_flag_and_hides_no_mistake(text, old, flag, shared_engine: Engine) -> None:
    right, wrong = right_and_wrong(shared_engine, "mha", text, old, "")

    assert flag in right.reading["flags"]
    assert "scale.missing" in told(wrong)


AT_MODULE_LEVEL = """
d_k = 64

def attention(q, k, v):
    return F.softmax(q @ k.transpose(-2, -1) / math.sqrt(d_k), dim=-1) @ v
"""


def test_a_function_gets_the_sizes_that_it_reads_at_module_level(shared_engine: Engine) -> None:
    right, wrong = right_and_wrong(shared_engine, "sdpa", AT_MODULE_LEVEL, "dim=-1", "dim=-2")

    assert "globals=d_k=D" in right.reading["flags"]
    assert told(wrong) == {"softmax.query_axis"}


def test_a_width_of_all_heads_is_no_size_of_one(shared_engine: Engine) -> None:
    """Divided by the root of the whole width: for (B, H, T, D) that is another number than the size of a head."""
    text = AT_MODULE_LEVEL.replace("d_k", "d_model")
    report = shared_engine.grade("sdpa", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome in ("failed", "ungraded")


def test_a_size_that_the_module_computes_is_its_own(shared_engine: Engine) -> None:
    text = AT_MODULE_LEVEL.replace("d_k = 64", "d_model, n_heads = 512, 8\nd_k = 2 * d_model // n_heads")
    report = shared_engine.grade("sdpa", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"


BY_A_NUMBER = """
width = 8
factor = 1 / math.sqrt(width)

def attend(a, b, c, reach):
    near = torch.arange(a.shape[-2])[:, None] - torch.arange(b.shape[-2])
    scores = (a @ b.transpose(-2, -1) * factor).masked_fill(near.abs() > reach, float("-inf"))
    return F.softmax(scores, dim=-1) @ c
"""


@pytest.mark.parametrize("names", ["a=q,b=k,c=v", "a=query,b=key,c=value"])
def test_what_a_function_is_given_and_reads_may_be_typed(names, shared_engine: Engine) -> None:
    flags = ("entry=attend", f"call={names},reach=L", "globals=factor=1/sqrt(D)")
    report = shared_engine.grade("sdpa", (HEAD + BY_A_NUMBER).encode(), attempt="mine.py", reads=True, flags=flags)

    assert report.outcome == "passed", report.ungraded_because
    assert "call=a=q,b=k,c=v,reach=L" in report.reading["flags"]


ONE_SAMPLE_TURNED = """
def rotate(x):
    first, second = x.chunk(2, dim=-1)
    angle = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * torch.ones(first.shape[-1], dtype=x.dtype)
    return torch.cat([first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()], dim=-1)

class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h = n_heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def rotary(self, x):
        return rotate(x)

    def forward(self, x):
        b, t, e = x.shape
        q, k, v = (part.view(b, t, self.h, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        weights = F.softmax(self.rotary(q) @ self.rotary(k).transpose(-2, -1) / math.sqrt(e // self.h), dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, e))[:1].expand(3, -1, -1)
"""


def test_another_number_of_texts_than_it_was_given_is_no_fault_of_the_grader(shared_engine: Engine) -> None:
    report = shared_engine.grade("mha", (HEAD + ONE_SAMPLE_TURNED).encode(), attempt="mine.py", reads=True)

    assert report.outcome in ("failed", "ungraded")


BY_CHANCE = """
class MultiHeadAttention(nn.Module):
    def __init__(self, WIDTH, n_heads, dropout=0.0):
        super().__init__()
        assert WIDTH % n_heads == 0
        self.h, self.d = n_heads, WIDTH // n_heads
        self.q_proj, self.k_proj = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.v_proj, self.o_proj = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key, value, mask=None):
        layers = ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        q, k, v = (w(x).view(x.shape[0], x.shape[1], self.h, self.d).transpose(1, 2) for w, x in layers)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        out = self.drop(scores.softmax(dim=-1)) @ v
        return self.o_proj(out.transpose(1, 2).flatten(2))
"""


def test_code_that_has_the_names_of_a_contract_by_chance_is_read(tmp_path):
    """Its constructor calls its sizes otherwise. With the contract's names it is graded by the contract, as `--strict` does."""
    mine = tmp_path / "mine.py"
    scale = " / math.sqrt(self.d)"
    outputs = []
    for text, *options in (
        (BY_CHANCE.replace("WIDTH", "d_model"),),
        (BY_CHANCE.replace("WIDTH", "d_model"), "--strict"),
        (BY_CHANCE.replace("WIDTH", "d_model").replace(scale, ""),),
        (BY_CHANCE.replace("WIDTH", "embed_dim").replace("n_heads", "num_heads"),),
    ):
        mine.write_text(HEAD + text)
        outputs.append(
            subprocess.run(
                [sys.executable, "-m", "attn_kata", "grade", mine, *options],
                capture_output=True,
                text=True,
                check=False,
            ).stdout
        )

    read, strict, wrong, by_contract = outputs
    assert read.startswith("RIGHT, AS READ  qkv_attention")
    assert "By the contract alone it fails: " in " ".join(read.split())
    assert "parameters.no_bias" in read
    assert strict.startswith("FAILED  qkv_attention")
    assert wrong.startswith("FAILED  qkv_attention")
    assert "scale.missing" in wrong
    assert by_contract.startswith("FAILED  qkv_attention")
    assert "parameters.no_bias" in by_contract


TIME_FIRST = """
def attend(q, k, v, attn_mask=None):
    \"\"\"q, k, v: [seq_len, batch, embed_dim]. attn_mask: added to the scores, [batch, seq_len, seq_len].\"\"\"
    q, k, v = (one.transpose(0, 1) for one in (q, k, v))
    scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
    if attn_mask is not None:
        scores = scores + attn_mask
    return (torch.softmax(scores, dim=-1) @ v).transpose(0, 1)
"""


def test_a_function_with_time_first_is_read_with_its_mask(shared_engine: Engine) -> None:
    right, wrong = right_and_wrong(shared_engine, "sdpa", TIME_FIRST, " / math.sqrt(q.shape[-1])", "")
    flags = tuple(right.reading["flags"])
    typed_back = shared_engine.grade("sdpa", (HEAD + TIME_FIRST).encode(), attempt="mine.py", reads=True, flags=flags)

    assert {"takes a mask", "time first", "an additive mask"} <= set(right.reading["departures"])
    assert told(wrong) == {"scale.missing"}
    assert [(one.property, one.outcome) for one in typed_back.findings] == [
        (one.property, one.outcome) for one in right.findings
    ]


def test_a_softmax_over_the_batch_of_such_a_function_is_named(shared_engine: Engine) -> None:
    text = TIME_FIRST.replace("(scores, dim=-1)", "(scores, dim=0)")
    report = shared_engine.grade("sdpa", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert told(report) == {"softmax.head_axis"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("self.drop(scores.softmax(dim=-1)) @ v", "F.scaled_dot_product_attention(q, k, v)", "FAILED  qkv_attention"),
        (
            "        scores = q @",
            "        q = q / (1 + q.std(dim=1, keepdim=True))\n        scores = q @",
            "UNGRADED  qkv_attention",
        ),
    ],
    ids=["ready-made", "of another kind"],
)
def test_names_and_checks_of_the_contract_are_no_mistakes_of_such_code(old, new, said, tmp_path):
    """Where its reading is no pass, the contract would fail it for a missing bias and an AssertionError alone."""
    mine = tmp_path / "mine.py"
    text = BY_CHANCE.replace("WIDTH", "d_model")
    assert text.count(old) == 1
    mine.write_text(HEAD + text.replace(old, new))
    done = subprocess.run(
        [sys.executable, "-m", "attn_kata", "grade", mine], capture_output=True, text=True, check=False
    )

    assert done.stdout.startswith(said)
    assert "Read as qkv_attention" in done.stdout
    assert "ask yourself: Does your check" not in done.stdout
    assert "By the contract alone it fails: " in " ".join(done.stdout.split())


# A bias of the caller's for each pair of tokens, and vectors that are added to the keys, neither of which the kata has.
OF_THE_CALLER = """
class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h = n_heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, edges, gain):
        b, t, e = x.shape
        q, k, v = (w(x).view(b, t, self.h, -1).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        scores = q @ k.transpose(-2, -1) / math.sqrt(e // self.h) + edges[:, None].sum(-1)
        weights = F.softmax(scores, dim=-1) * gain[:, :, None, None]
        return self.wo((weights @ v).transpose(1, 2).reshape(b, t, e))
"""
FILLED = "call=x=x,edges=zeros(B, T, S, 3),gain=ones(B,H)"


def test_inputs_of_its_own_get_zeros_or_ones_of_a_shape(shared_engine):
    def graded(text, *flags):
        return shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True, flags=flags)

    without, right = graded(OF_THE_CALLER), graded(OF_THE_CALLER, FILLED)
    wrong = graded(OF_THE_CALLER.replace("math.sqrt(e // self.h)", "math.sqrt(e)"), FILLED)
    typed_back = graded(OF_THE_CALLER, *right.reading["flags"])

    assert without.outcome == "ungraded"
    assert "NAME=zeros(B,T,E) gives it zeros of this shape" in without.ungraded_because
    assert right.outcome == "passed", right.ungraded_because
    assert "what it does with edges, gain is not graded" in right.reading["departures"]
    assert told(wrong) == {"scale.embed_dim"}
    assert "call=x=x,edges=zeros(B,T,S,3),gain=ones(B,H)" in right.reading["flags"]
    assert [(one.property, one.outcome) for one in typed_back.findings] == [
        (one.property, one.outcome) for one in right.findings
    ]


def test_a_function_can_get_them_too(shared_engine):
    text = "def attend(q, k, v, offset):\n    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) + offset\n"
    text += "    return F.softmax(scores, dim=-1) @ v\n"
    flags = ("call=q=q,k=k,v=v,offset=zeros(T,S)",)
    report = shared_engine.grade("sdpa", (HEAD + text).encode(), attempt="mine.py", reads=True, flags=flags)

    assert report.outcome == "passed", report.ungraded_because


# As in an agent that looks at what is around it: one vector for each sample is the query.
ONE_VECTOR = """
class Look(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h, self.d = n_heads, width // n_heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(width, width) for _ in range(4))

    def forward(self, query, keys, values):
        b = query.shape[0]
        q = self.wq(query).view(b * self.h, 1, self.d)
        k, v = (
            w(one).view(b, -1, self.h, self.d).transpose(1, 2).reshape(b * self.h, -1, self.d)
            for w, one in ((self.wk, keys), (self.wv, values))
        )
        weights = F.softmax(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(self.d), dim=-1)
        return self.wo(torch.bmm(weights, v).view(b, -1))
"""


@pytest.mark.parametrize(
    ("old", "new", "id"),
    [
        (" / math.sqrt(self.d)", "", "scale.missing"),
        ("(self.wk, keys), (self.wv, values)", "(self.wk, values), (self.wv, values)", "source.key_from_value"),
    ],
)
def test_a_vector_that_looks_at_a_sequence_is_asked_once_for_each_query(old, new, id, shared_engine):
    right, wrong = right_and_wrong(shared_engine, "qkv_attention", ONE_VECTOR, old, new)
    flags = tuple(right.reading["flags"])
    text = (HEAD + ONE_VECTOR).encode()
    typed_back = shared_engine.grade("qkv_attention", text, attempt="mine.py", reads=True, flags=flags)

    assert "one query at a time, (B, E)" in right.reading["departures"]
    assert told(wrong) == {id}
    assert "query=(B, E)" in flags
    assert typed_back.outcome == "passed"
