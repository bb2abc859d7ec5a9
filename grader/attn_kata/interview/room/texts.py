"""Texts of the room alone: the task for a pane of any width, signatures, help."""

from __future__ import annotations

import re

from attn_kata import catalog, stub
from attn_kata.interview import content, words
from attn_kata.interview.session import Session


def task(session: Session) -> str:
    """The task, the signatures, the worked example, and the answers so far."""
    known = content.of_kata(session.kata)
    if not session.round.written:
        return f"{session.round.title.upper()}\n\n{reflowed(words.task(session))}"
    parts = [
        session.round.title.upper(),
        *([words.new_part(session)] if words.new_part(session) else []),
        reflowed(words.task(session)),
        "TO WRITE" if words.may_ask(session) else "WHAT IS CALLED",
        signatures(session.kata),
        "A WORKED EXAMPLE",
        f"{known.example.code.strip()}\n\nout is {known.example.expected}",
        reflowed(known.example.says),
    ]
    given = words.hints(session)
    if given:
        parts.append("HINTS OF YOUR INTERVIEWER")
        parts += given
    asked = [question for stage, question in sorted(session.asked) if stage == session.stage]
    if asked:
        parts.append("ANSWERS TO YOUR QUESTIONS")
        parts += [f"{known.questions[n - 1].ask}\n→ {known.questions[n - 1].answer}" for n in asked]
    return "\n\n".join(parts)


def signatures(slug: str) -> str:
    """What the hidden tests call."""
    code = stub.signatures(catalog.find(slug))
    return "\n".join(re.findall(r"^ *(?:def|class) .*?(?=:$)", code, re.MULTILINE | re.DOTALL))


def unwrapped(text: str) -> str:
    """A text of several lines as a notice: the indented lines that go on are joined."""
    return re.sub(r"\s*-> ", "\n→ ", re.sub(r"\n +(?!->)", " ", text.strip()))


def reflowed(text: str) -> str:
    """Each paragraph as one line, so that a pane can wrap it; indented text and lists stay unchanged."""
    made = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.splitlines()
        plain = all(line and not line[0].isspace() and not re.match(r"[-*•\d]", line) for line in lines)
        made.append(" ".join(lines) if plain else block)
    return "\n\n".join(made)


RUNS = {
    "mock": "Ctrl+L checks the worked example and the shapes. It shows nothing of the hidden tests.",
    "coached": "Ctrl+L grades your code: it shows which properties hold, and which mistake breaks the others.",
}
ASK = "The task leaves some details open. A good candidate asks about them before the clock runs."
BEGIN = """\
Write here, or open the same file in your own editor: what you save there appears here.

Ctrl+R runs your file as 'python FILE' does, with your own tests and prints.
{run}
Ctrl+G hands in your code. When the time is up, your text is taken as it is.

Your file: {file}"""

HELP = """\
THE INTERVIEW
  Briefing  Ask in your own words; Enter asks.
            Ctrl+G starts the clock.
  Coding    Write, run, hand in. Then come some questions,
            and the review.

EVERYWHERE
  Ctrl+G   go on: begin, hand in, next question, close
  Ctrl+Q   leave. A running clock does not stop.
           To come back: attn-kata interview
  F1, Ctrl+O  this page; Esc closes it

CODING
  Ctrl+R   run your file with your own tests (F5 too)
  Ctrl+L   check the worked example and shapes (F8 too)
  Ctrl+S   save now (the room also saves every second)
  Ctrl+B   ask a question
  Ctrl+T   task, editor, output in turn;
           F2, F3, F4 go to one of them
  F9       widen the code, the task or the output (Alt+W too)
  F10      wrap long lines (Alt+Z too)
  Ctrl+P   pause and go on (coached sessions only)

EDITOR
  Tab, Shift+Tab         indent, dedent
  Ctrl+Z, Ctrl+Y         undo, redo
  Shift+arrows           select
  Ctrl+C, Ctrl+X, Ctrl+V   copy, cut, paste
  Ctrl+K, Ctrl+U         delete to the end, to the start
  Ctrl+←, Ctrl+→         move by a word
  Ctrl+Home, Ctrl+End    go to the start or end of the text
  Esc                    leave the editor, to the next pane

YOUR OWN EDITOR
  Open the same file there. What you save is loaded here.
  If both texts changed, the room asks which one to keep.
  No text is lost.

WITHOUT THE ROOM
  Every step is a command too: attn-kata interview --help"""
