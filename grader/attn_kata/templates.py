"""Templates: how all are read, and those that make Python: stubs, and what an interview adds to them. Imports Jinja2 late."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from attn_kata import resources
from attn_kata.errors import KataFileError

if TYPE_CHECKING:
    import jinja2


def render(name: str, /, katas: Path | None = None, **values: object) -> str:
    """The template `name`, of `templates/` or of the folder `katas`, with these values. Raises KataFileError."""
    return _rendered(name, lambda: _template(name, katas).render(values))


def render_block(name: str, block: str, /, katas: Path | None = None, **values: object) -> str:
    """One block of a template, without what stands around it. Raises KataFileError, which names file and line."""

    def rendered() -> str:
        template = _template(name, katas)
        if block not in template.blocks:
            raise KataFileError(f"{template.filename}: there is no block '{block}'.")
        return "".join(template.blocks[block](template.new_context(values)))

    return _rendered(name, rendered)


def _template(name: str, katas: Path | None) -> jinja2.Template:
    return _of_python(resources.templates_folder(), katas or resources.katas_folder()).get_template(name)


@cache
def _of_python(*folders: Path) -> jinja2.Environment:
    return environment(*folders, escape=False, keep_trailing_newline=True)


def environment(*folders: Path, escape: bool, keep_trailing_newline: bool = False) -> jinja2.Environment:
    """Jinja2 as every template here is written for: a name that is not there is an error, blocks leave no blank lines.

    It reads templates from `folders`, or else from `templates/`. With `escape`, values are escaped for HTML.
    """
    import jinja2  # only here: a command that renders nothing does not wait for it

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders or (resources.templates_folder(),)),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=keep_trailing_newline,
        autoescape=escape,
    )


def _rendered(name: str, rendered: Callable[[], str]) -> str:
    import jinja2

    try:
        return rendered()
    except KataFileError:
        raise
    except jinja2.TemplateNotFound as missing:
        raise KataFileError(f"There is no template {missing.name}.") from missing
    except jinja2.TemplateSyntaxError as problem:
        raise KataFileError(f"{problem.filename}, line {problem.lineno}: {problem.message}") from problem
    except Exception as problem:  # whatever an expression in a template may raise
        # Jinja puts the template's own lines into the traceback.
        frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if frame.filename.endswith(name)]
        place = f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else name
        raise KataFileError(f"{place}: {type(problem).__name__}: {problem}") from problem
