"""The Tab key after a magic: katas after `%%kata`, mistakes after `%kata_explain`."""

from __future__ import annotations

from typing import Any

from attn_kata import catalog, stub

_LEVELS = [f"--level {level}" for level in stub.LEVELS]


def katas(shell: Any, event: Any) -> list[str]:
    """The names that fit after `%kata`, `%%kata`, `%kata_start` and the like."""
    return [*catalog.slugs(), *(_LEVELS if event.line.strip().count(" ") else [])]


def mistakes(shell: Any, event: Any) -> list[str]:
    """The names that fit after `%kata_explain`."""
    from attn_kata.cli.explain import known

    return known()


def install(shell: Any, magics: dict[str, Any]) -> None:
    """Have the shell complete what follows each of these magics."""
    for name, complete in magics.items():
        for typed in (f"%{name}", f"%%{name}", name):
            shell.set_hook("complete_command", complete, str_key=typed)
