"""Forks a candidate again and again, kills each at a random instant, and looks at what was kept. Prints what is wrong.

A candidate goes on with the session as it finds it, one step after the other, and says what it did on a pipe after each
step that returned. What it said before it was killed has to be there afterwards: the bytes, the texts and the ticks as
the candidate gave them, and not only what the session said of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from attn_kata.interview import control, moments, plans
from attn_kata.interview.control import Desk
from attn_kata.interview.rounds import TALK, Round
from attn_kata.interview.session import Session
from attn_kata.interview.store import Store
from attn_kata.rounds.spoiled import Bug, Spoiled

KINDS = ("write", "grow", "hunt", "review", "napkin", "derive")
REVIEW = KINDS.index("review")
KATAS = {"grow": "causal_mask", "derive": "linear_attention"}
PLAN = plans.Plan(
    name="every kind",
    title="",
    about="",
    rounds=(
        *(Round(kind=kind, kata=KATAS.get(kind, "sdpa"), minutes=90) for kind in KINDS),
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
        gave: dict[str, Any] = {}
        session = desk.store.active()
        if session is None:
            session = control.start(
                desk, PLAN, mode="mock", folder=folder / str(chance.random()), spoiled={2: SPOILED, 3: SPOILED}
            )
        elif session.state == "briefing":
            if all(stage != session.stage for stage, _ in session.unknown):
                # Once in each briefing: when chance decided, some runs asked nothing that was acknowledged.
                gave = {"unknown": f"what is {chance.random()}? é\ud800"}
                session = control.ask(desk, session.id, text=gave["unknown"])
            elif chance.random() < 0.4:
                session = control.ask(desk, session.id, chance.randint(1, 6))
            else:
                session = control.advance(desk, session.id)
        elif session.state == "coding":
            source = chance.randbytes(chance.randint(8, 5000))
            gave = {"bytes": hashlib.sha256(source).hexdigest()}
            what = chance.random()
            if what < 0.3:
                session = control.save(desk, session.id, source)
            elif what < 0.6:
                session.file.write_bytes(source)
                session, _ = control.observe(desk, session.id)
            elif what < 0.8:
                session = control.ran(desk, session.id, source, outcome="failed")
            elif what < 0.9:
                gave = {}
                session = control.resume(desk, session.id)
            else:
                session = control.submit(desk, session.id, source)
        elif session.state == "follow_up" and (open_ones := [*{*session.places} - {*session.answers}]):
            place = open_ones[0]
            text = f"1 here {chance.random()}" if session.stage == REVIEW else "1"
            if session.follow_ups[place - 1]["kind"] == "free":
                text = f"because {chance.random()}\nand é"
            gave = {"answer": [place, text]}
            session = control.answer(desk, session.id, place, text)
        elif session.state == "follow_up" and (unticked := _unticked(session)):
            points = sorted(chance.sample((1, 2), chance.randint(0, 2)))
            gave = {"ticks": [unticked[0], points]}
            session = control.tick_points(desk, session.id, unticked[0], tuple(points))
        else:
            session = control.advance(desk, session.id)
        last = session.events[-1]
        told = {"session": session.id, "event": last.number, "kind": last.kind, "stage": last.stage, **gave}
        os.write(says, json.dumps(told).encode() + b"\n")


def _unticked(session: Session) -> list[int]:
    return [
        place
        for place in session.places
        if session.follow_ups[place - 1]["kind"] == "free" and place not in session.ticks
    ]


def lost(store: Store, told: dict[str, Any]) -> str:
    """What is not there any more of what was told, or ""."""
    session = store.load(told["session"])
    found = [event for event in session.events if event.number == told["event"]]
    if [(event.kind, event.stage) for event in found] != [(told["kind"], told["stage"])]:
        return "the event"
    if "bytes" in told:
        kept = store.source(session.id, found[0].source) if found[0].source else b""
        if hashlib.sha256(kept).hexdigest() != told["bytes"]:
            return "the bytes"
    if "unknown" in told and (told["stage"], told["unknown"]) not in session.unknown:
        return "the question"
    if "answer" in told:
        place, text = told["answer"]
        if session.answers.get(place, {}).get("text") != text:
            return "the answer"
    if "ticks" in told:
        place, points = told["ticks"]
        if session.ticks.get(place) != tuple(points):
            return "the ticks"
    return ""


def main(folder: Path, times: int) -> None:
    """Prints a JSON object: how often it was killed, what was acknowledged, and what was lost."""
    chance = random.Random(5)
    desk = Desk(store=Store(lambda sentence: wrong.append(f"said: {sentence}")), clock=moments.SystemClock())
    wrong: list[str] = []
    deadlines: dict[int, object] = {}
    acknowledged = 0
    compared: Counter[str] = Counter()
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
            compared.update(key for key in ("bytes", "unknown", "answer", "ticks") if key in one)
            what = lost(desk.store, one)
            if what:
                wrong.append(f"lost, {what}: {one}")
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
            {
                "killed": times,
                "acknowledged": acknowledged,
                "compared": compared,
                "sessions": len(sessions),
                "kinds": kinds,
                "wrong": wrong,
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
