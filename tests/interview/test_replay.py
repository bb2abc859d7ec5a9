"""The replay: the moments of a session on one line of time, on its page and in a terminal."""

from __future__ import annotations

import html
import json
import re

import pytest

from attn_kata.errors import UsageError
from attn_kata.interview import control, pages, replay, review

from ..report.test_browser import BROWSER, browse, with_script
from .conftest import RIGHT
from .terminal import Terminal

__all__ = ["browse"]  # a fixture


@pytest.fixture
def played(desk, clock, begin, engine):
    """The body of a session: a question, two saves, one of them run, a wait, another save, then handed in."""
    session = begin("sdpa", "padding_mask")
    clock.goes(seconds=30)
    control.save(desk, session.id, b"import torch\n# holds: output_shape\nx = 1\n")
    clock.goes(seconds=30)
    control.ran(desk, session.id, b"import torch\n# holds: output_shape, values\nx = 2\n", outcome="failed")
    control.ask(desk, session.id, 1, text="always 4d?")
    clock.goes(minutes=10)
    control.save(desk, session.id, b"import torch\n# holds: values\nx = 3 # <b>\n")
    control.submit(desk, session.id, RIGHT)
    session = control.end(desk, session.id)
    review.grade(desk.store, session, engine)
    return pages.body(review.gather(desk.store, session), None, [])


def test_the_moments_stand_on_one_line_and_a_wait_is_shortened(played):
    made = replay.of(played)
    saves = [one for one in made.frames if one.new]

    assert [one.held for one in saves[1:]] == [f"{n} of 4 core properties hold" for n in (1, 2, 1, 4)]
    assert saves[3].flips == (("output_shape", "broke"),)
    assert (saves[3].at - saves[2].at, saves[3].place - saves[2].place) == (600, 120)
    assert [row for row in made.versions[saves[2].version] if row[0] != "same"] == [
        ("gone", "# holds: output_shape"),
        ("gone", "x = 1"),
        ("added", "# holds: output_shape, values"),
        ("added", "x = 2"),
    ]
    assert {mark for mark, _ in made.versions[0]} == {"same"}
    assert made.frames[made.at_time(660)].at == 660
    assert made.frames[made.at_time(-99)] == made.frames[0]


def test_a_version_that_was_not_graded_says_so(desk, clock, begin):
    session = begin("sdpa")
    clock.goes(seconds=30)
    control.save(desk, session.id, b"x = 1\n")
    made = replay.of(pages.body(review.gather(desk.store, control.end(desk, session.id)), None, []))

    assert {one.held for one in made.frames if one.version is not None} == {"not run"}
    assert "sdpa: saved (6 bytes)  (not run)" in replay.as_text(made)


def test_in_a_pipe_it_is_plain_text(played):
    made = replay.of(played)
    whole, one = replay.as_text(made), replay.as_text(made, replay.time_from("1:00"))

    assert "\n          - x = 1\n" in whole
    assert "    1:00  sdpa: ran the smoke check, failed  (2 of 4 core properties hold)" in whole
    assert "  import torch\n- # holds" in one
    assert "[x] output_shape\n          [x] values\n          [ ] float32\n          [ ] gradients\n" in one


@pytest.mark.parametrize("text", ["12", "1:60", "x", "--", "1:2", "٣:00"])
def test_a_time_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match="is not a time of the clock"):
        replay.time_from(text)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "fast", "3601"])
def test_a_speed_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match="is not a speed"):
        replay.speed_from(text)


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here; on Debian: apt-get install chromium")
def test_on_the_page_keys_move_in_time_and_it_plays(browse, played, tmp_path):
    """On the page as it is, its policy lets its own script run; then by keyboard, at a phone's width."""
    file = tmp_path / "page.html"
    file.write_text(pages.as_html(played), "utf-8")
    printed, errors = browse(file, "--dump-dom")
    assert "CONSOLE" not in errors
    assert re.search(r'<section id="replay" aria-labelledby="replay-title">', printed)  # no longer hidden

    keys = """
      const told = [], get = (name) => document.getElementById('replay-' + name);
      const press = (key) => get('at').dispatchEvent(new KeyboardEvent('keydown', { key, cancelable: true }));
      const tell = () => told.push([get('clock').textContent, get('says').textContent, get('held').textContent,
        [...get('code').querySelectorAll('.added')].map((one) => one.textContent).join('|')]);
      tell();
      press('PageDown'); press('PageDown'); tell();
      press('PageDown'); tell();
      press('PageUp'); tell();
      press('ArrowLeft'); tell();
      press('End'); tell();
      press('PageDown'); tell();
      get('at').value = 61; get('at').dispatchEvent(new Event('input')); tell();
      press('Home'); tell();
      const page = document.documentElement;
      told.push([page.scrollWidth <= page.clientWidth, get('at').tabIndex, get('code').tabIndex]);
      const said = [' ', ' '].map((key) => { press(key); return get('play').textContent; });
      get('play').click();
      told.push([...said, get('play').textContent]);
      setTimeout(() => {
        tell();
        told.push([get('play').textContent]);
        page.dataset.told = JSON.stringify(told);
      }, 20000);
    """
    inner = html.escape(with_script(pages.as_html(played), keys), quote=True)
    file.write_text(
        f'<!doctype html><meta charset=utf-8><body><iframe id="page" width="390" height="900" srcdoc="{inner}"></iframe>'
        "<script>setTimeout(() => { document.body.dataset.told = document.getElementById('page')"
        ".contentDocument.documentElement.dataset.told; }, 21000)</script></body>",
        "utf-8",
    )
    printed, errors = browse(file, "--dump-dom", "--virtual-time-budget=25000", "--window-size=1300,1000")
    assert "CONSOLE" not in errors
    found = re.search(r'data-told="(.*?)"', printed)
    assert found, printed[-2000:]
    first, second, third, back, moment, end, still, dragged, home, sizes, playing, after, button = json.loads(
        html.unescape(found[1])
    )

    assert first == ["0:00", "interview created", "", ""]
    assert second[:3] == ["0:30", "sdpa: saved (41 bytes)", "1 of 4 core properties hold"]
    assert third[2] == "2 of 4 core properties hold · holds: values"
    assert third[3] == "+ # holds: output_shape, values|+ x = 2"
    assert back == second
    assert moment[1] == "sdpa: coding begins"
    assert end == still
    assert dragged[:2] == ["1:00", "sdpa: asked question 1: always 4d?"]
    assert home == first
    assert sizes == [True, 0, 0]
    assert playing == ["Pause", "Play", "Pause"]
    assert after == end
    assert button == ["Play"]


def test_in_a_terminal_keys_move_in_time(folder, home, played):
    one = Terminal(folder, home, "replay", "1", "--at", "0:45")
    try:
        one.shows("paused, speed 60")
        one.shows("0:30  sdpa: saved")
        one.shows("☑ output_shape")
        one.child.send("\x1b[C")
        one.shows("+ x = 2")
        one.shows("2 of 4 core")
        one.is_resized(12, 40)
        one.shows("q leave")
        one.child.send("\r\tytext\x0c+++++ ")
        one.shows("ended early")
        one.child.send("q")
        assert one.ends() == 0
        assert b"Traceback" not in one.raw
    finally:
        one.child.close(force=True)
