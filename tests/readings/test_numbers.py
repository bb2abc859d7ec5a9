"""Numbers in the place of sizes: of heads in the constructor, at module level beside a config, and asked of a config."""

from __future__ import annotations

import pytest
from tests.readings.test_interfaces import ATTEND
from tests.readings.test_kinds import HEAD

TWELVE = (
    ATTEND.replace(
        "self.h, self.d = n_heads, width // n_heads",
        "self.num_heads = 12  # as in ViT-Base\n        self.d = width // self.num_heads",
    )
    .replace("width, n_heads", "width")
    .replace("self.h,", "self.num_heads,")
)
TWO_NUMBERS = TWELVE.replace("self, width", "self").replace(
    "        self.num_heads = 12", "        self.embed_dim: int = 768\n        self.num_heads = 12"
)
TWO_NUMBERS = TWO_NUMBERS.replace("nn.Linear(width, width)", "nn.Linear(self.embed_dim, self.embed_dim)").replace(
    "width //", "self.embed_dim //"
)
TIMES = "heads = 1\n" + ATTEND.replace("width, n_heads", "config").replace(
    "self.h, self.d = n_heads, width // n_heads",
    'self.h = config.parts["num_heads"]\n        width = config.hidden_size\n        self.d = heads * int(width / self.h)',
).replace("nn.Linear(width, width)", "nn.Linear(width, self.h * self.d)")
ASKED = ATTEND.replace("width, n_heads", "config").replace(
    "self.h, self.d = n_heads, width // n_heads",
    "width, self.h = config.n_embd, config.n_head\n        self.d = width // self.h\n"
    "        more = int(bool(config.num_props)) + int(config.scaffold_maxlen)\n        self.room = torch.zeros(8 + more)",
)
OF_A_CLASS = (
    "from pydantic_not_here import BaseModel\n\nclass Sizes(BaseModel):\n    width: int\n    n_heads: int\n\n"
    + ATTEND.replace("width, n_heads", "c: Sizes").replace(
        "self.h, self.d = n_heads, width // n_heads",
        "self.c, width = c, c.width\n        self.h, self.d = c.n_heads, width // c.n_heads",
    )
)
CODE = {
    "heads": (TWELVE, "self.num_heads is a number"),
    "heads_and_width": (TWO_NUMBERS, "self.embed_dim is a number"),
    "as_many_times_as_wide": (TIMES, "sizes at module level"),
    "a_number_of_a_config": (ASKED, "takes a config"),
    "a_config_of_a_class_whose_base_is_not_here": (OF_A_CLASS, "takes a config"),
}


@pytest.mark.parametrize("name", CODE)
def test_it_is_read_and_hides_no_mistake(name, shared_engine):
    text, departure = CODE[name]
    mixed = text.replace("/ math.sqrt(self.d)", "/ math.sqrt(E)")
    assert mixed != text
    right, wrong = (
        shared_engine.grade("mha", (HEAD + each).encode(), attempt="mine.py", reads=True) for each in (text, mixed)
    )
    flags = tuple(right.reading["flags"])
    typed_back = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True, flags=flags)

    assert right.outcome == "passed", right.ungraded_because
    assert departure in right.reading["departures"]
    assert [one.id for found in wrong.diagnosis for one in found.mistakes] == ["scale.embed_dim"]
    assert (typed_back.outcome, typed_back.reading["flags"]) == ("passed", list(flags))


def test_a_number_that_a_parameter_can_choose_is_no_size(shared_engine):
    chosen = ATTEND.replace("self.h, self.d = n_heads", "self.heads = 4\n        self.h, self.d = n_heads")
    report = shared_engine.grade("mha", (HEAD + chosen).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed"
    assert not [flag for flag in report.reading["flags"] if flag.startswith("constants")]


@pytest.mark.parametrize(
    "line", ["self.num_heads = 1\n        ", "self.num_heads = 4\n        "], ids=["one", "unread"]
)
def test_a_number_of_one_head_and_one_that_nothing_reads_are_no_sizes(line, shared_engine):
    one_head = ATTEND.replace("width, n_heads", "width").replace(
        "self.h, self.d = n_heads, width // n_heads", f"{line}self.d = width"
    )
    one_head = one_head.replace(".view(B, T, self.h, -1).transpose(1, 2)", "").replace(
        ".transpose(1, 2).reshape(B, T, E)", ""
    )
    report = shared_engine.grade("mha", (HEAD + one_head).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"
    assert "says how many heads it has" in report.ungraded_because
    assert not [flag for flag in report.reading["flags"] if flag.startswith("constants")]


HEAD_BY_HEAD = "self.d = width // self.num_heads"
SAME_SIZES = {
    "a_number_for_the_same": (HEAD_BY_HEAD, "self.d = width // 12"),
    "a_root_of_a_number": ("math.sqrt(self.d)", "math.sqrt(64)"),
    "a_local_name": (HEAD_BY_HEAD, "heads = 12\n        self.d = width // heads"),
    "set_again": (HEAD_BY_HEAD, "self.d = 64\n        self.num_heads = width // self.d"),
}


@pytest.mark.parametrize("name", SAME_SIZES)
def test_other_numbers_that_may_be_the_same_sizes_make_no_verdict(name, shared_engine):
    old, new = SAME_SIZES[name]
    assert TWELVE.count(old) == 1
    report = shared_engine.grade("mha", (HEAD + TWELVE.replace(old, new)).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"
