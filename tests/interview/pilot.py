"""The room driven by keys, on a screen of a size that the test says."""

from __future__ import annotations

import asyncio

from textual import events

from attn_kata.interview.room.editor import Editor
from attn_kata.interview.room.screens import Words

WIDE, NARROW, TINY = (130, 40), (80, 24), (20, 5)


def at(room, size, test):
    """Run `test(pilot)` in the room on a screen of that size."""

    async def run() -> None:
        async with room.run_test(size=size, notifications=True) as pilot:
            await until(pilot, lambda: room.screen.is_mounted and len(room.screen_stack) > 1)
            await test(pilot)
        room.close()

    asyncio.run(run())


async def until(pilot, true, seconds=8.0) -> None:
    """Wait until `true()`."""
    for _ in range(int(seconds / 0.02)):
        await pilot.pause(0.02)
        if true():
            return
    raise AssertionError(f"never came: on {pilot.app.screen}")


async def shows(pilot, kind) -> object:
    await until(pilot, lambda: isinstance(pilot.app.screen, kind) and pilot.app.screen.is_mounted)
    await pilot.pause()
    return pilot.app.screen


def text_of(pane) -> str:
    return str(pane.query_one(Words).visual)


def write(room, source: bytes) -> None:
    """As if it had been typed: on top of what is there."""
    editor = room.screen.query_one(Editor)
    editor.replace(source.decode(), (0, 0), editor.document.end)


def burst(room, *keys) -> None:
    """Keys that arrive together, as from a pasted text or a held key: nothing is handled between them."""
    for key in keys:
        room.post_message(events.Key(key, key if len(key) == 1 else None))
