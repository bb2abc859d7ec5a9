"""The line finder on the wrong attempts that travel with the katas: the line that it shows is one that an edit has changed."""

from __future__ import annotations

import pytest

from attn_kata import specimens
from attn_kata.diagnosis import lines
from attn_kata.resources import katas_folder

KATAS = ("gqa", "kv_cache", "rope", "alibi", "sliding_window", "paged_attention")
FAMILIES = ("group", "cache", "rope", "alibi", "window", "paged")


@pytest.mark.parametrize("slug", KATAS)
def test_the_line_shown_is_one_that_an_edit_has_changed(slug: str) -> None:
    found = 0
    for specimen in specimens.read(katas_folder() / slug):
        right, wrong = specimens.source_of(specimen.base).split("\n"), specimen.source()
        for id in specimen.mistakes:
            if id.split(".")[0] in FAMILIES:
                line = lines.find(id, wrong.encode())
                found += line is not None
                assert line is None or wrong.split("\n")[line - 1] not in right, (specimen.name, id, line)
    assert found, "no line was found in any specimen"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("k = k.repeat(1, H // G, 1)\nv = v.repeat(1, H // G, 1)", 2),
        ("keys = k_pages[pages].flatten(0, 1)[:n].tile(1, H // G, 1)", 2),
        ("slot = t % S\ng = h % G", 3),
        ("mask = mask.repeat(1, H, 1)\nk = k.repeat_interleave(H // G, dim=1)", None),
        ("slot = t % S", None),
    ],
)
def test_the_repeat_of_keys_or_the_number_modulo_the_groups_is_where_heads_are_taken_in_turn(
    body: str, expected: int | None
) -> None:
    text = "".join(f"    {line}\n" for line in body.split("\n"))
    source = f"def paged_attention(q, k_pages, v_pages, block_table, lengths):\n{text}    return q\n"

    assert lines.find("group.repeated", source.encode()) == expected
