"""Forks a candidate again and again, kills each at a random instant, and looks at what was kept. Prints what is wrong.

A candidate goes on with the session as it finds it, one step after the other, and says so on a pipe after each step
that returned: what it said before it was killed has to be there afterwards.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from attn_kata.interview import control, moments, plans
from attn_kata.interview.control import Desk
from attn_kata.interview.rounds import TALK, Round
from attn_kata.interview.store import Store, digest_of
from attn_kata.rounds.spoiled import Bug, Spoiled

KINDS = ("write", "grow", "hunt", "review", "napkin")
PLAN = plans.Plan(
    name="every kind",
    title="",
    about="",
    rounds=(
        *(Round(kind=kind, kata="causal_mask" if kind == "grow" else "sdpa", minutes=90) for kind in KINDS),
        TALK,
    ),
)
BASE = "def scaled_dot_product_attention(q, k, v):\n    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v\n"
SCALED, UNSCALED = "q @ k.mT / q.shape[-1] ** 0.5", "q @ k.mT"
SPOILED = Spoiled(  # nobody grades it here
    kata="sdpa",
    seed=1,
    style="plain",
    base=BASE,
    source=BASE.replace(SCALED, UNSCALED),
    bugs=(Bug(mistake="scale.missing", lines=(2,), wrong=(UNSCALED,), right=(SCALED,)),),
)


def candidate(desk: Desk, folder: Path, says: int, chance: random.Random) -> None:
    """Steps without end; each is told once it was acknowledged."""
    while True:
        session = desk.store.active()
        if session is None:
            session = control.start(
                desk, PLAN, mode="mock", folder=folder / str(chance.random()), spoiled={2: SPOILED, 3: SPOILED}
            )
        elif session.state == "briefing":
            session = (
                control.ask(desk, session.id, chance.randint(1, 6))
                if chance.random() < 0.6
                else control.advance(desk, session.id)
            )
        elif session.state == "coding":
            source = chance.randbytes(chance.randint(1, 5000))
            what = chance.random()
            if what < 0.3:
                session = control.save(desk, session.id, source)
            elif what < 0.6:
                session.file.write_bytes(source)
                session, _ = control.observe(desk, session.id)
            elif what < 0.8:
                session = control.ran(desk, session.id, source, outcome="failed")
            elif what < 0.9:
                session = control.resume(desk, session.id)
            else:
                session = control.submit(desk, session.id, source)
        elif session.state == "follow_up" and (open_ones := [*{*session.places} - {*session.answers}]):
            session = control.answer(desk, session.id, open_ones[0], "1 here" if session.stage == 3 else "1")
        else:
            session = control.advance(desk, session.id)
        last = session.events[-1]
        told = {"session": session.id, "event": last.number, "kind": last.kind, "source": last.source}
        os.write(says, json.dumps(told).encode() + b"\n")


def main(folder: Path, times: int) -> None:
    """Prints a JSON object: how often it was killed, what was acknowledged, and what was lost."""
    chance = random.Random(5)
    desk = Desk(store=Store(lambda sentence: wrong.append(f"said: {sentence}")), clock=moments.SystemClock())
    wrong: list[str] = []
    deadlines: dict[int, object] = {}
    acknowledged = 0
    for round_number in range(times):
        reads, says = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reads)
            try:
                candidate(desk, folder, says, random.Random(round_number))
            except BaseException as problem:
                os.write(says, json.dumps({"raised": repr(problem)}).encode() + b"\n")
            os._exit(1)
        os.close(says)
        with os.fdopen(reads, "rb") as pipe:
            lines = [pipe.readline() for _ in range(chance.randint(0, 4))]
            time.sleep(chance.uniform(0.0, 0.012))  # into the middle of whatever comes then
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            lines += pipe.read().splitlines(keepends=True)
        told = [json.loads(line) for line in lines if line.endswith(b"\n")]
        for one in told:
            if "raised" in one:
                wrong.append(one["raised"])
                continue
            acknowledged += 1
            session = desk.store.load(one["session"])
            found = [event for event in session.events if event.number == one["event"]]
            if not found or (found[0].kind, found[0].source) != (one["kind"], one["source"]):
                wrong.append(f"lost: {one}")
            elif one["source"] and digest_of(desk.store.source(session.id, one["source"])) != one["source"]:
                wrong.append(f"another source: {one}")
        last = round_number == times - 1
        for session in desk.store.sessions() if last else filter(None, [desk.store.active()]):
            began = [event for event in session.events if event.kind == "began"]
            if began and deadlines.setdefault(session.id, began[0].data["deadline"]) != began[0].data["deadline"]:
                wrong.append(f"the deadline of {session.id} moved")
            if len(began) > 1:
                wrong.append(f"session {session.id} began twice")
    sessions = desk.store.sessions()
    kinds = sorted({event.kind for session in sessions for event in session.events})
    print(
        json.dumps(
            {"killed": times, "acknowledged": acknowledged, "sessions": len(sessions), "kinds": kinds, "wrong": wrong}
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
