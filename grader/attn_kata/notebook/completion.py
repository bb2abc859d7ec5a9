"""The Tab key after a magic: katas after `%%kata`, mistakes after `%kata_explain`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from attn_kata import catalog

Completer = Callable[[Any, Any], list[str]]


def katas(shell: Any, event: Any) -> list[str]:
    """The katas whose names begin with what was typed."""
    return _beginning(catalog.slugs(), event)


def mistakes(shell: Any, event: Any) -> list[str]:
    """The mistakes and properties whose names begin with what was typed."""
    from attn_kata.cli.explain import known

    return _beginning(known(), event)


def install(shell: Any, completers: dict[str, Completer]) -> None:
    """Have the shell complete what follows each of these magics."""
    for name, complete in completers.items():
        for typed in (f"%{name}", f"%%{name}"):
            shell.set_hook("complete_command", complete, str_key=typed)


def _beginning(names: Iterable[str], event: Any) -> list[str]:
    typed = event.text_until_cursor.split(" ")[-1]
    return [name for name in names if name.startswith(typed)]
