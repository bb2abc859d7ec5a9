"""The page: what is on it, and that nothing of an attempt becomes part of it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from attn_kata.report.formats import render
from attn_kata.report.heatmaps import draw
from attn_kata.report.listing import lines
from attn_kata.report.model import Example

ALLOWED = {
    "section",
    "table",
    "tr",
    "th",
    "td",
    "code",
    "html",
    "head",
    "meta",
    "link",
    "title",
    "style",
    "body",
    "main",
    "header",
    "footer",
    "h1",
    "h2",
    "h3",
    "p",
    "span",
    "strong",
    "article",
    "pre",
    "figure",
    "figcaption",
    "div",
    "details",
    "summary",
    "dl",
    "dt",
    "dd",
    "svg",
    "text",
    "rect",
    "path",
}
VOID = {"meta", "link"}


class Page(HTMLParser):
    """What a reader of HTML makes of it: tags, their attributes, the text, and whether every tag is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_nothing_of_an_attempt_becomes_markup_and_nothing_is_loaded(any_report, hostile_source):
    written = render(any_report, "html", source=hostile_source)
    page = Page(written)

    assert {tag for tag, _ in page.tags} <= ALLOWED
    assert page.open == []
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    addresses = [value for _, found in page.tags for name, value in found.items() if name in ("src", "href", "action")]
    assert addresses == ["data:,"]
    assert re.search(r"@import|url\(", written) is None
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\u202e]", written) is None
    assert all(letter.isprintable() for letter in set(written) - {"\n"})


def test_the_page_says_verdict_claim_diagnosis_line_and_where_to_look(reports, source):
    page = Page(render(reports["failed"], "html", source=source))
    text = " ".join(page.text.split())

    assert "FAILED" in text
    assert "The output is softmax(q kᵀ / sqrt(D)) v." in text
    assert "You divided by nothing; the contract divides by √16 = √head_dim." in text
    assert "Look at the scale" in text
    assert "B=2 T=3" in text
    marked = [attributes for tag, attributes in page.tags if attributes.get("class") == "line marked"]
    assert len(marked) == 2  # about the mistake, and in the whole source
    assert "here (2 times)" in text


def test_the_page_says_how_code_by_other_names_is_read_with_flags_to_type(reports):
    text = " ".join(Page(render(reports["read"], "html")).text.split())

    assert "RIGHT, AS READ" in text
    assert "config.n_embd = E, config.n_head = H" in text
    assert "Departs from the contract (not mistakes): names · takes a config" in text
    assert "No name and no comment says what True in the mask means." in text
    assert "Others that may be meant: CrossAttention" in text
    assert "entry=Attention" in text
    assert "'shape=(B, T, T)'" in text


def test_every_picture_is_named_in_words_and_has_labelled_axes(reports, source):
    page = Page(render(reports["failed"], "html", source=source))
    drawings = [attributes for tag, attributes in page.tags if tag == "svg"]

    assert len(drawings) == 3 + 2 + 2 + 3  # weights, their mask, the heads, and the failing values
    assert all(one["role"] == "img" and one["aria-label"] for one in drawings)
    assert "got: 3 by 3, query by key; 3 of 9 cells differ from the contract, the first at query 0, key 0" in (
        drawings[1]["aria-label"] or ""
    )
    for axis in ("← query", "key →", "← token", "column of the merged heads →"):
        assert axis in page.text


def test_a_weight_of_exactly_zero_is_drawn_as_masked(reports):
    weights, mask = draw(reports["failed"].pictures[0])
    expected, got, _ = weights.panels
    contract, yours = mask.panels

    assert [at for at, square in enumerate(expected.squares) if square.hidden] == [1, 2, 5]
    assert [square.wrong for square in yours.squares] == [False, True, True, *[False] * 6]
    assert [square.text for square in contract.squares[:3]] == ["●", "", ""]
    assert sum(square.wrong for square in got.squares) == 3


def test_the_heads_are_drawn_by_where_each_number_comes_from(reports):
    (layout,) = draw(reports["failed"].pictures[1])
    _, yours = layout.panels

    assert [square.text for square in yours.squares[:4]] == ["0 0·0", "0 0·1", "1 0·0", "1 0·1"]
    assert [square.ink for square in yours.squares[4:]] == ["head1", "head1", "head1", "head1"]
    assert [square.wrong for square in yours.squares] == [False, False, True, True, True, True, False, False]


def test_lines_are_numbered_as_python_numbers_them():
    shown = lines(b"# -*- coding: latin-1 -*-\ra = '\xe9\x0c'\r\n\tb = 1\n\n", marked=[3])

    assert [(line.number, "".join(text for _, text in line.parts), line.marked) for line in shown] == [
        (1, "# -*- coding: latin-1 -*-", False),
        (2, "a = 'é '", False),
        (3, "    b = 1", True),
    ]
    assert ("number", "1") in shown[2].parts
    assert lines(b"") == []


def test_tiles_are_drawn_as_shares_and_a_lost_one_is_hatched():
    whole, lost = [[1.0, 0.75], [1.0, 1.0]], [[1.0, 0.75], [1.0, 0.0]]
    tiles = Example(
        what="tiles: the share of query-key pairs that reach the output",
        rows="block of 2 queries",
        columns="key block of 2",
        expected=whole,
        got=lost,
    )
    (drawing,) = draw(tiles)
    contract, yours = drawing.panels

    assert [square.text for square in contract.squares] == ["100%", "75%", "100%", "100%"]
    assert [square.text for square in yours.squares] == ["100%", "75%", "100%", "none"]
    assert [square.hidden for square in yours.squares] == [square.wrong for square in yours.squares]
    assert "Hatched: the tile was not computed" in drawing.legend
    assert "1 of 4 cells differ from the contract, the first at block of 2 queries 1, key block of 2 1" in yours.summary
