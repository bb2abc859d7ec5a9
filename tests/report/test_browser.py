"""The page in a real browser: no script error, nothing asked of the network, and accessible as axe-core judges it."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from attn_kata.report.formats import render

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(
    BROWSER is None,
    reason="no Chromium here; on Debian: apt-get install chromium (the page is also tested without one)",
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--disable-features=NetworkTimeServiceQuerying,OptimizationHints,MediaRouter",
)
ITS_OWN = re.compile(r"https?://[^/]*\.(google|googleapis|gvt1)\.com/")  # what Chromium asks for itself
WIDE, PHONES = 1100, (320, 360)


@pytest.fixture
def browse(tmp_path: Path):
    """`browse(file, ...)`: what Chromium printed and what it complained of, with a profile of its own."""

    def browse(file: Path, *arguments: str) -> tuple[str, str]:
        assert BROWSER is not None
        done = subprocess.run(
            [
                BROWSER,
                *FLAGS,
                f"--user-data-dir={tmp_path / 'profile'}",
                "--enable-logging=stderr",
                *arguments,
                file.as_uri(),
            ],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "HOME": str(tmp_path)},
            timeout=60,
            check=False,
        )
        return done.stdout, done.stderr

    return browse


def axe() -> str | None:
    """axe-core's own file: of ATTN_KATA_AXE, else of the package axe-core-python."""
    chosen = os.environ.get("ATTN_KATA_AXE")
    if chosen:
        return Path(chosen).read_text("utf-8")
    try:
        return resources.files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")
    except ModuleNotFoundError:
        return None


def with_script(page: str, script: str) -> str:
    """The page with a script, which its own policy would not let run."""
    bare = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    assert bare != page
    escaped = script.replace("</script", "<\\/script")
    return bare.replace("</body>", f"<script>{escaped}</script></body>")


@pytest.mark.parametrize("name", ["failed", "hostile"])
def test_nothing_is_asked_of_the_network_and_nothing_goes_wrong(
    browse, reports, source, hostile_source, tmp_path, name
):
    file = tmp_path / "report.html"
    file.write_text(render(reports[name], "html", source=hostile_source if name == "hostile" else source), "utf-8")
    log = tmp_path / "net.json"
    shot = tmp_path / "page.png"
    printed, errors = browse(
        file, f"--log-net-log={log}", f"--screenshot={shot}", "--window-size=1100,1600", "--dump-dom"
    )
    asked = set(re.findall(r'"url":"([a-z]+:[^"]*)"', log.read_text("utf-8", "replace")))

    assert [url for url in asked if url.startswith(("http", "ws", "ftp")) and not ITS_OWN.match(url)] == []
    assert "CONSOLE" not in errors
    assert "<title>FAILED" in printed
    assert "<script" not in printed
    assert shot.stat().st_size > 10_000


JUDGE = """
  document.querySelectorAll('details').forEach(one => one.open = true);
  axe.run(document).then(found => {
    parent.document.body.dataset[frameElement.id] = JSON.stringify({
      violations: found.violations.map(one => [one.impact, one.id, one.nodes.map(node => node.html).slice(0, 3)]),
      passes: found.passes.map(one => one.id),
    });
  });
"""


def assert_accessible(browse, folder: Path, page: str, schemes: dict[str, str], shown: str) -> None:
    """axe-core finds nothing serious, with each of these media rules for all media, in one browser.

    `shown`: a rule of axe-core that has to apply.
    """
    rules = axe()
    if rules is None:
        pytest.skip("axe-core is not here: pip install axe-core-python, or ATTN_KATA_AXE=path/to/axe.min.js")
    frames = []
    for scheme, rule in schemes.items():
        assert rule in page
        inner = html.escape(with_script(page.replace(rule, "@media all") if rule else page, rules + JUDGE), quote=True)
        frames.append(f'<iframe id="{scheme}" width="{WIDE}" height="1400" srcdoc="{inner}"></iframe>')
    file = folder / "axe.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><body>{''.join(frames)}</body>", "utf-8")
    printed, _ = browse(file, "--dump-dom", "--virtual-time-budget=20000", f"--window-size={WIDE + 50},1500")
    for scheme in schemes:
        told = re.search(f'data-{scheme}="([^"]*)"', printed)

        assert told, f"axe-core did not come to an end: {scheme}"
        found = json.loads(html.unescape(told[1]))
        assert [one for one in found["violations"] if one[0] in ("serious", "critical")] == [], scheme
        assert {"color-contrast", "html-has-lang", "document-title", shown} <= set(found["passes"]), scheme


def test_it_is_accessible(browse, reports, source, tmp_path):
    schemes = {"light": "", "dark": "@media (prefers-color-scheme: dark)"}

    assert_accessible(browse, tmp_path, render(reports["ties"], "html", source=source), schemes, "svg-img-alt")


def sizes_in_frames(browse, folder: Path, page: str, widths: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
    """By width of a frame: how wide the page in it is, how wide it is seen, and how high it is.

    In frames, because Chromium's own window is never narrower than 500.
    """
    inner = html.escape(page, quote=True)
    frames = [f'<iframe width="{width}" height="900" srcdoc="{inner}"></iframe>' for width in widths]
    measure = """
      const roots = [...document.querySelectorAll('iframe')].map(one => one.contentDocument.documentElement);
      const sizes = roots.map(one => [one.scrollWidth, one.clientWidth, one.scrollHeight].join(' '));
      document.body.dataset.sizes = sizes.join(', ');
    """
    file = folder / "framed.html"
    file.write_text(
        f"<!doctype html><meta charset=utf-8><body>{''.join(frames)}<script>onload = () => {{ {measure} }}</script></body>",
        "utf-8",
    )
    printed, _ = browse(file, "--dump-dom", "--window-size=1300,1000")
    told = re.search(r'data-sizes="([\d ,]+)"', printed)
    assert told, printed[:2000]
    sizes = [tuple(map(int, each.split())) for each in told[1].split(", ")]
    return dict(zip(widths, sizes, strict=True))


def test_it_is_no_wider_than_the_screen(browse, reports, source, tmp_path):
    opened = "document.querySelectorAll('details').forEach(one => one.open = true);"
    page = with_script(render(reports["ties"], "html", source=source), opened)
    sizes = sizes_in_frames(browse, tmp_path, page, (*PHONES, WIDE))
    for width, (scrolled, seen, height) in sizes.items():
        assert width - 30 <= seen <= width  # what the frame's border and a scroll bar take
        assert scrolled <= seen
        assert height > 1000, "nothing was laid out"
