"""Saves, as editors make them."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from attn_kata.sources import Source
from attn_kata.watch.files import Missing, Saved, Watcher, look

pytest.importorskip("watchfiles")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    file = folder / "mha.py"
    file.write_text("first")
    return file


@pytest.fixture
def seen(file: Path) -> Iterator[queue.Queue]:
    """What the watcher tells, its first look taken out."""
    told: queue.Queue = queue.Queue()
    watcher = Watcher(file, told.put)
    assert told.get(timeout=5) == Saved(source=Source(code=b"first"))
    yield told
    watcher.stop()


def quiet(seen: queue.Queue) -> bool:
    try:
        seen.get(timeout=0.4)
    except queue.Empty:
        return True
    return False


def test_a_save_in_place_is_seen_once(file, seen):
    file.write_text("second")

    assert seen.get(timeout=5) == Saved(source=Source(code=b"second"))
    assert quiet(seen)


def test_a_save_by_rename_is_seen_and_the_next_one_too(file, seen):
    for text in ("second", "third"):
        beside = file.with_name(".mha.py.swp")
        beside.write_text(text)
        os.replace(beside, file)

        assert seen.get(timeout=5) == Saved(source=Source(code=text.encode()))


def test_a_save_by_unlink_and_create_never_looks_like_a_missing_file_for_long(file, seen):
    file.unlink()
    file.write_text("second")
    last = seen.get(timeout=5)
    while last != Saved(source=Source(code=b"second")):
        last = seen.get(timeout=5)

    assert quiet(seen)


def test_a_file_that_is_emptied_first_is_seen_when_it_is_written(file, seen):
    with file.open("w") as half:
        half.flush()
        os.fsync(half.fileno())
        half.write("second")

    assert seen.get(timeout=5) == Saved(source=Source(code=b"second"))


def test_a_half_written_file_is_followed_by_the_whole(file, seen):
    with file.open("w") as half:
        half.write("def f(")
        half.flush()
        seen.get(timeout=5)
        half.write("): pass")

    assert seen.get(timeout=5) == Saved(source=Source(code=b"def f(): pass"))


def test_saving_the_same_again_says_nothing(file, seen):
    file.write_text("first")

    assert quiet(seen)


def test_a_file_that_vanishes_becomes_a_folder_and_comes_back_is_followed(file, seen):
    file.unlink()
    gone = seen.get(timeout=5)
    file.mkdir()
    folder = seen.get(timeout=5)
    file.rmdir()
    file.write_text("back")
    last = seen.get(timeout=5)
    while isinstance(last, Missing):
        last = seen.get(timeout=5)

    assert isinstance(gone, Missing)
    assert isinstance(folder, Missing)
    assert "is a folder" in folder.why
    assert last == Saved(source=Source(code=b"back"))


def test_a_folder_that_goes_and_comes_back_is_watched_again(file, seen):
    away = file.parent.with_name("away")
    file.parent.rename(away)
    assert isinstance(seen.get(timeout=5), Missing)
    away.rename(file.parent)

    assert seen.get(timeout=5) == Saved(source=Source(code=b"first"))
    file.write_text("second")
    assert seen.get(timeout=5) == Saved(source=Source(code=b"second"))


def test_what_a_link_points_to_is_watched(tmp_path, file):
    link = tmp_path / "link.py"
    link.symlink_to(file)
    told: queue.Queue = queue.Queue()
    watcher = Watcher(link, told.put)
    try:
        assert told.get(timeout=5) == Saved(source=Source(code=b"first"))
        file.write_text("second")
        assert told.get(timeout=5) == Saved(source=Source(code=b"second"))
    finally:
        watcher.stop()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_file_that_becomes_a_pipe_after_it_was_looked_at_holds_nobody_up(file, monkeypatch):
    """A pipe that nobody writes into would be waited for without end."""
    stat, made = os.stat, []

    def then_a_pipe(path, **how):
        found = stat(path, **how)
        if os.fspath(path) == str(file) and not made:
            made.append(file)
            file.unlink()
            os.mkfifo(file)
        return found

    monkeypatch.setattr(os, "stat", then_a_pipe)
    told: queue.Queue = queue.Queue()
    threading.Thread(target=lambda: told.put(look(file)), daemon=True).start()

    assert isinstance(told.get(timeout=5), Missing)
