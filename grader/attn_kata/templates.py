"""The templates that make Python: the stubs, and what an interview adds to them. Imports Jinja2 only where one is rendered."""

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
    return _environment(resources.templates_folder(), katas or resources.katas_folder()).get_template(name)


@cache
def _environment(*folders: Path) -> jinja2.Environment:
    import jinja2  # only here: a command that renders nothing does not wait for it

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Python, not HTML
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
