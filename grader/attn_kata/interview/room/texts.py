"""What the room says beyond what the commands say: the task for a pane of any width, signatures, help."""

from __future__ import annotations

import re

from attn_kata import catalog, stub
from attn_kata.interview import content
from attn_kata.interview.session import Session


def task(session: Session) -> str:
    """The task, the signatures, the worked example, and what was asked so far."""
    known = content.of_kata(session.kata)
    parts = [
        catalog.find(session.kata).title.upper(),
        reflowed(known.task),
        "TO WRITE",
        signatures(session.kata),
        "A WORKED EXAMPLE",
        f"{known.example.code.strip()}\n\nout is {known.example.expected}",
        reflowed(known.example.says),
    ]
    asked = [question for stage, question in sorted(session.asked) if stage == session.stage]
    if asked:
        parts.append("AGREED IN ANSWER TO YOUR QUESTIONS")
        parts += [f"{known.questions[n - 1].ask}\n→ {known.questions[n - 1].answer}" for n in asked]
    return "\n\n".join(parts)


def signatures(slug: str) -> str:
    """What the hidden tests call."""
    code = stub.signatures(catalog.find(slug))
    return "\n".join(re.findall(r"^ *(?:def|class) .*?(?=:$)", code, re.MULTILINE | re.DOTALL))


def reflowed(text: str) -> str:
    """Paragraphs as one line each, so that a pane may wrap them; what is indented or a list stays as it is."""
    made = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.splitlines()
        plain = all(line and not line[0].isspace() and not re.match(r"[-*•\d]", line) for line in lines)
        made.append(" ".join(lines) if plain else block)
    return "\n\n".join(made)


RUNS = {
    "mock": "Ctrl+R runs the worked example and shows shapes and your own prints. Nothing of the hidden tests is shown.",
    "coached": "Ctrl+R runs the worked example, then grades: which properties hold, and which mistake was made.",
}
BEGIN = """\
Write in the editor, or in your own on the same file: both may be open, and what you save there appears here.

{run}
Ctrl+G hands your code in. When the time is up, your text is taken as it stands.

Your file: {file}"""

HELP = """\
THE INTERVIEW
  Briefing  Enter asks the question under the cursor.
            Ctrl+G starts the clock.
  Coding    Write, run, hand in. Then some questions about it,
            and the review.

EVERYWHERE
  Ctrl+G   go on: begin, hand in, next question, close
  Ctrl+Q   leave: the session goes on, and so does a running
           clock; back to it with: attn-kata interview
  F1, Ctrl+O  this page; Esc closes it

CODING
  Ctrl+R   run the worked example (F5 too)
  Ctrl+S   save now (it is saved by itself every second)
  Ctrl+B   ask a question, still
  Ctrl+T   task, editor, output in turn;
           F2, F3, F4 go to one of them
  Ctrl+P   pause and go on (only a coached session)

EDITOR
  Tab, Shift+Tab         indent, dedent
  Ctrl+Z, Ctrl+Y         undo, redo
  Shift+arrows           select
  Ctrl+C, Ctrl+X, Ctrl+V   copy, cut, paste
  Ctrl+K, Ctrl+U         delete to the end, to the start
  Ctrl+←, Ctrl+→         a word
  Ctrl+Home, Ctrl+End    the start and the end of the text
  Esc                    leave the editor, to the next pane

YOUR OWN EDITOR
  Open the same file there. What you save is loaded here.
  Where both changed, you are asked which to keep; nothing is
  thrown away.

WITHOUT THE ROOM
  Every step is a command too: attn-kata interview --help"""
