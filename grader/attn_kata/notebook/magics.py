"""The magics: `%%kata`, `%kata`, `%kata_start`, `%kata_hint`, `%kata_explain` and `%kata_solution`."""

from __future__ import annotations

import atexit
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError as IPythonUsageError
from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import Code, display

from attn_kata import catalog, contract, hints, stub, workspace
from attn_kata.api import Report, grading, reference, session
from attn_kata.catalog import Kata
from attn_kata.cli import mock_interview
from attn_kata.engine.client import EngineFault
from attn_kata.engine.persistent import PersistentEngine
from attn_kata.errors import UsageError
from attn_kata.history import History
from attn_kata.notebook import completion
from attn_kata.notebook.waiting import Fault, shown
from attn_kata.readings.reading import MASKS
from attn_kata.sources import Source

LOADING = "Loading torch. The next gradings take a tenth of a second."
GRADING = "Grading. To stop, interrupt the kernel."
_COLUMNS = 88  # where JupyterLab breaks a line, it breaks within words
_ATTRIBUTE = "_attn_kata_magics"


@magics_class
class KataMagics(Magics):
    """The magics of one kernel, with the engine that they share. It starts with the first magic that needs it."""

    shell: Any

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._engine: PersistentEngine | None = None
        self._loaded = False
        self._kata: str | None = None  # the last one, which a magic without a name means
        self._history = History(lambda sentence: print(sentence, file=sys.stderr))
        atexit.register(self.close)

    def close(self) -> None:
        """End the engine."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    @magic_arguments()
    @argument("name", metavar="KATA", nargs="?", help="The name of the kata; attn_kata.katas() lists them.")
    @argument("--level", choices=stub.LEVELS, help="In an empty cell: put the stub into it, with this much help.")
    @argument("--seed", type=int, default=0, help="Draw other inputs.")
    @argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="Limit for the whole grading.")
    @argument("--property", action="append", default=[], metavar="NAME", help="Only this property. Repeatable.")
    @argument("--class", dest="name_of_class", metavar="NAME", help="The class or function to grade, by any name.")
    @argument("--read", action="append", default=[], metavar="KEY=VALUE", help="How to read code by other names.")
    @argument("--mask", choices=MASKS, help="What True in its mask means; the same as --read mask=...")
    @argument("--strict", action="store_true", help="Ask for the names of the kata's contract.")
    @no_var_expand
    @line_cell_magic
    def kata(self, line: str, cell: str | None = None) -> None:
        """Grade an attempt at KATA.

        `%%kata mha` grades the code of its cell. `%kata mha` grades what the session defines under the kata's names, and
        `%kata mha --class NAME` what it has under another name. Code by other names is read as it is. The attempt runs in a
        process of its own, so nothing of the session changes.
        """
        asked = _asked(self.kata, line)
        kata = self._find(asked.name)
        self._refuse("grade", "findings of hidden tests")
        if cell is not None and _is_blank(cell):
            self.shell.set_next_input(_cell(kata, asked.level or "standard"), replace=True)
            print("The cell was empty: it has the stub now.")
            return
        options = grading.options(
            kata,
            seed=asked.seed,
            timeout=asked.timeout,
            properties=asked.property,
            read=[*asked.read, *([f"mask={asked.mask}"] if asked.mask else [])],
            strict=asked.strict,
        )
        name, source, entry = self._attempt(kata, line, cell, asked.name_of_class, reads=not asked.strict)
        self._grade(kata, name, source, grading.read_as(entry, options))

    @magic_arguments()
    @argument("name", metavar="KATA", nargs="?", help="The name of the kata; without it, the last one.")
    @argument("--level", choices=stub.LEVELS, default="standard", help="How much the stub says.")
    @no_var_expand
    @line_magic
    def kata_start(self, line: str) -> None:
        """Make a new cell with the stub of KATA: the contract, and what to write."""
        asked = _asked(self.kata_start, line)
        kata = self._find(asked.name)
        self._warm()  # torch loads while the candidate reads
        notebook = self._notebook()
        if notebook is not None:
            self._history.started(kata.slug, notebook, asked.level)
        self.shell.set_next_input(_cell(kata, asked.level))
        print(f"{kata.title}, about {kata.minutes} minutes. Write it in the new cell, and run it. Stuck: %kata_hint")

    @magic_arguments()
    @argument("name", metavar="KATA", nargs="?", help="The name of the kata; without it, the last one.")
    @no_var_expand
    @line_magic
    def kata_hint(self, line: str) -> None:
        """Give the next hint: about the last mistake, if it has one. None is the code."""
        kata = self._find(_asked(self.kata_hint, line).name)
        self._refuse("hint", "hints")
        hint = hints.following(kata, self._history)
        after = "The next hint: %kata_hint" if hint.left else "That was the last hint."
        text = textwrap.fill(hint.text, _COLUMNS, initial_indent="  ", subsequent_indent="  ")
        print(f"{hints.title(kata, hint)}\n\n{text}\n\n{after} {kata.slug if hint.left else ''}".rstrip())

    @no_var_expand
    @line_magic
    def kata_explain(self, line: str) -> None:
        """Explain a mistake or a property: `%kata_explain scale.embed_dim`. Without a name, list the mistakes."""
        try:
            print(reference.explain(line.strip()).replace("attn-kata explain ", "%kata_explain "))
        except UsageError as problem:
            name = line.strip()
            following = (
                f"Start it: %kata_start {name}" if name in catalog.slugs() else "List all mistakes: %kata_explain"
            )
            raise UsageError(problem.what, next_step=following) from None

    @magic_arguments()
    @argument("name", metavar="KATA", nargs="?", help="The name of the kata; without it, the last one.")
    @argument("--give-up", action="store_true", help="Show it before you have passed; this is recorded.")
    @no_var_expand
    @line_magic
    def kata_solution(self, line: str) -> None:
        """Show the reference: after a pass, or with --give-up."""
        asked = _asked(self.kata_solution, line)
        kata = self._find(asked.name)
        self._refuse("solution", "references")
        if not workspace.may_see_reference(kata, self._history, give_up=asked.give_up):
            raise UsageError(
                f"You have not passed {kata.slug} yet, so the reference is not shown.",
                next_step=f"A hint: %kata_hint {kata.slug}. The reference: %kata_solution {kata.slug} --give-up",
            )
        display(Code(data=workspace.read(kata.solution).decode(), language="python"))

    # ------------------------------------------------------------------------------------------------------ grading

    def _attempt(
        self, kata: Kata, line: str, cell: str | None, wanted: str | None, *, reads: bool
    ) -> tuple[str, Source, str | None]:
        """What the report calls the attempt, its source, and what `read_as` needs. The session stays as it is."""
        names = self.shell.user_ns
        if cell is not None:
            number = len(names.get("In", ())) - 1
            return f"In [{number}]", session.of_cell(cell, names, first=f"%%kata {line}"), wanted
        if wanted is None:
            return " and ".join(kata.entries), session.of_names(kata, names), None
        if wanted not in names:
            raise UsageError(f"This session has no '{wanted}'.", next_step="Run the cell that defines it first")
        return session.of_object(names[wanted], kata, reads=reads)

    def _grade(self, kata: Kata, name: str, source: Source, options: dict[str, Any]) -> Report:
        engine = self._warm()

        def work() -> Report:
            report = engine.grade(kata.slug, source.code, attempt=name, **options)
            return Report.of(source.located(report), source.code)

        try:
            report = shown(work, engine, said=GRADING if self._loaded else LOADING, in_place=self._in_place())
        except EngineFault as fault:
            self._loaded = False
            raise Fault(fault) from None
        except KeyboardInterrupt:
            self._loaded = False
            raise
        self._loaded = True
        if not report.not_written:
            self._history.record(report, self._notebook() or Path("notebook"), whole=not options["properties"])
        return report

    def _warm(self) -> PersistentEngine:
        if self._engine is None:
            self._engine = PersistentEngine()
        return self._engine

    def _in_place(self) -> bool:
        return hasattr(self.shell, "kernel")

    def _find(self, name: str | None) -> Kata:
        """The kata of that name, or the last one. Raises UsageError."""
        name = name or self._kata
        if name is None:
            raise UsageError("Which kata is meant?", next_step="Give its name. See them all: attn_kata.katas()")
        found = grading.find(name)
        self._kata = found.slug
        return found

    def _refuse(self, command: str, what: str) -> None:
        mock_interview.refuse_while_running(command, what)

    def _notebook(self) -> Path | None:
        """The file of this notebook, where the front end says it: JupyterLab in a variable, VS Code in a name."""
        told = self.shell.user_ns.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME")
        path = Path(told) if isinstance(told, str) else None
        return path.absolute() if path is not None and path.is_file() else None


def load(shell: Any) -> None:
    """Give the shell the magics."""
    unload(shell)
    magics = KataMagics(shell)
    shell.register_magics(magics)
    shell.__dict__[_ATTRIBUTE] = magics
    katas = dict.fromkeys(("kata", "kata_start", "kata_hint", "kata_solution"), completion.katas)
    completion.install(shell, {**katas, "kata_explain": completion.mistakes})
    shell.input_transformers_cleanup.insert(0, _with_a_body)


def unload(shell: Any) -> None:
    """End the engine of the magics. They work again after `%load_ext attn_kata`."""
    magics = shell.__dict__.pop(_ATTRIBUTE, None)
    if magics is not None:
        magics.close()
        atexit.unregister(magics.close)
        shell.input_transformers_cleanup.remove(_with_a_body)


def _asked(magic: Any, line: str) -> Any:
    """What follows a magic on its line. Raises UsageError."""
    try:
        return parse_argstring(magic, line)
    except (IPythonUsageError, ValueError) as problem:
        name = magic.__name__
        raise UsageError(
            f"The line of %{name} is not clear: {problem}.", next_step=f"What it takes: %{name}?"
        ) from None


def _with_a_body(lines: list[str]) -> list[str]:
    """A cell with nothing but `%%kata sdpa` has an empty line below it, without which IPython refuses it."""
    if lines and lines[0].startswith("%%kata") and not any(line.strip() for line in lines[1:]):
        return [lines[0].rstrip("\n") + "\n", "\n"]
    return lines


def _is_blank(cell: str) -> bool:
    return all(not line.strip() or line.lstrip().startswith("#") for line in cell.split("\n"))


def _cell(kata: Kata, level: stub.Level) -> str:
    """The stub as a cell that grades itself."""
    asked = contract.load(kata.prompt)
    return f'%%kata {kata.slug}\n"""{kata.title}\n\n{asked.text}\n"""\n\n{stub.code(kata, level)}'
