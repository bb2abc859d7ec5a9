"""The review's page in a real browser: no script error, nothing asked of the network, accessible, no wider than a phone."""

from __future__ import annotations

import html
import re

import pytest

from attn_kata.interview import pages

from ..report.test_browser import (
    BROWSER,
    ITS_OWN,
    PHONES,
    WIDE,
    assert_accessible,
    browse,
    sizes_in_frames,
    with_script,
)

__all__ = ["browse"]  # a fixture
pytestmark = pytest.mark.skipif(
    BROWSER is None,
    reason="no Chromium here; on Debian: apt-get install chromium (the page is also tested without one)",
)
OPENED = "document.querySelectorAll('details').forEach(one => one.open = true);"


def test_nothing_is_asked_of_the_network_and_nothing_goes_wrong(browse, evil, tmp_path):
    file, log, shot = tmp_path / "review.html", tmp_path / "net.json", tmp_path / "page.png"
    file.write_text(pages.as_html(evil), "utf-8")
    printed, errors = browse(
        file, f"--log-net-log={log}", f"--screenshot={shot}", "--window-size=1100,1600", "--dump-dom"
    )
    asked = set(re.findall(r'"url":"([a-z]+:[^"]*)"', log.read_text("utf-8", "replace")))

    assert [url for url in asked if url.startswith(("http", "ws", "ftp")) and not ITS_OWN.match(url)] == []
    assert "CONSOLE" not in errors
    assert "<title>Interview 1" in printed
    assert printed.count("<script") == 2  # the replay's; the policy lets no other one run
    assert shot.stat().st_size > 10_000


def test_it_is_accessible(browse, evil, tmp_path):
    schemes = {"light": "", "dark": "@media (prefers-color-scheme: dark)", "print": "@media print"}

    assert_accessible(browse, tmp_path, pages.as_html(evil), schemes, "list")


def test_it_is_no_wider_than_the_screen(browse, evil, tmp_path):
    sizes = sizes_in_frames(browse, tmp_path, with_script(pages.as_html(evil), OPENED), (*PHONES, WIDE))
    for width, (scrolled, seen, height) in sizes.items():
        assert width - 30 <= seen <= width  # what the frame's border and a scroll bar take
        assert scrolled <= seen
        assert height > 2000, "nothing was laid out"


def test_the_counts_of_the_timeline_fit_beside_the_times(browse, evil, tmp_path):
    counted = [{**point, "held": 14, "core": 14} for point in evil["timeline"]]
    measure = """
      const cut = [...document.querySelectorAll('.held')].filter(one => one.scrollWidth > one.clientWidth);
      parent.document.body.dataset[frameElement.id] = `${cut.length} of ${document.querySelectorAll('.held').length}`;
    """
    inner = html.escape(with_script(pages.as_html({**evil, "timeline": counted}), measure), quote=True)
    widths = {"narrow": 600, "wide": WIDE}
    frames = [
        f'<iframe id="{name}" width="{width}" height="900" srcdoc="{inner}"></iframe>' for name, width in widths.items()
    ]
    file = tmp_path / "framed.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><body>{''.join(frames)}</body>", "utf-8")
    printed, _ = browse(file, "--dump-dom", "--window-size=1300,1000")

    for name in widths:
        assert f'data-{name}="0 of {len(counted)}"' in printed
