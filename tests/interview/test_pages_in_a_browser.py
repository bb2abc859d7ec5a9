"""The review's page in a real browser: no script error, nothing asked of the network, accessible, no wider than a phone."""

from __future__ import annotations

import html
import json
import re

import pytest

from attn_kata.interview import pages

from ..report.test_browser import BROWSER, ITS_OWN, PHONES, WIDE, axe, browse, sizes_in_frames, with_script

__all__ = ["browse"]  # a fixture
pytestmark = pytest.mark.skipif(
    BROWSER is None,
    reason="no Chromium here; on Debian: apt-get install chromium (the page is also tested without one)",
)
OPENED = "document.querySelectorAll('details').forEach(one => one.open = true);"
JUDGE = """
  axe.run(document).then(found => {
    const told = document.createElement('script');
    told.type = 'application/json';
    told.id = 'told';
    told.textContent = JSON.stringify({
      violations: found.violations.map(one => [one.impact, one.id, one.nodes.map(node => node.html).slice(0, 3)]),
      passes: found.passes.map(one => one.id),
    });
    document.body.append(told);
  });
"""


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


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_it_is_accessible(browse, evil, tmp_path, scheme):
    rules = axe()
    if rules is None:
        pytest.skip("axe-core is not here: pip install axe-core-python, or ATTN_KATA_AXE=path/to/axe.min.js")
    page = pages.as_html(evil)
    if scheme != "light":
        asked_for = {"dark": "@media (prefers-color-scheme: dark)", "print": "@media print"}[scheme]
        assert asked_for in page
        page = page.replace(asked_for, "@media all")
    file = tmp_path / "axe.html"
    file.write_text(with_script(page, rules + OPENED + JUDGE), "utf-8")
    printed, _ = browse(file, "--dump-dom", "--virtual-time-budget=20000", f"--window-size={WIDE},1400")
    told = re.search(r'<script type="application/json" id="told">(.*?)</script>', printed, re.DOTALL)

    assert told, "axe-core did not come to an end"
    found = json.loads(html.unescape(told[1]))
    assert [one for one in found["violations"] if one[0] in ("serious", "critical")] == []
    assert {"color-contrast", "html-has-lang", "document-title", "list"} <= set(found["passes"])


def test_it_is_no_wider_than_the_screen(browse, evil, tmp_path):
    sizes = sizes_in_frames(browse, tmp_path, with_script(pages.as_html(evil), OPENED), (*PHONES, WIDE))
    for width, (scrolled, seen, height) in sizes.items():
        assert width - 30 <= seen <= width  # what the frame's border and a scroll bar take
        assert scrolled <= seen
        assert height > 2000, "nothing was laid out"


@pytest.mark.parametrize("width", [600, 1100])
def test_the_counts_of_the_timeline_fit_beside_the_times(browse, evil, tmp_path, width):
    counted = [{**point, "held": 14, "core": 14} for point in evil["timeline"]]
    measure = """
      const cut = [...document.querySelectorAll('.held')].filter(one => one.scrollWidth > one.clientWidth);
      document.body.dataset.cut = `${cut.length} of ${document.querySelectorAll('.held').length}`;
    """
    file = tmp_path / "review.html"
    file.write_text(with_script(pages.as_html({**evil, "timeline": counted}), measure), "utf-8")
    printed, _ = browse(file, "--dump-dom", f"--window-size={width},1000")

    assert f'data-cut="0 of {len(counted)}"' in printed
