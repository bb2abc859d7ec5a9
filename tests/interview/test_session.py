"""The state machine: what may happen when, whichever way it is asked for."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attn_kata.errors import UsageError
from attn_kata.interview import active_mock, control, plans
from attn_kata.interview.session import ALLOWED, after
from attn_kata.interview.store import AlreadyActive

from .conftest import RIGHT


def test_the_way_through_a_session_of_two_stages(desk, clock, begin):
    session = begin("sdpa", "causal_mask")
    states = [session.state]
    control.submit(desk, session.id, RIGHT)
    for _ in range(2):
        session = control.advance(desk, session.id)
        states.append((session.state, session.stage))
        if session.state == "coding":
            session = control.submit(desk, session.id, RIGHT)
    for _ in range(2):
        session = control.advance(desk, session.id)
        states.append(session.state)

    assert states == ["coding", ("coding", 1), ("follow_up", 2), "review", "closed"]
    assert len(session.follow_ups) == 4
    assert desk.store.active() is None


def test_there_is_one_active_session(desk, begin, tmp_path):
    session = begin()

    with pytest.raises(AlreadyActive, match=f"Interview {session.id} .* still runs"):
        control.start(desk, plans.of_katas(("sdpa",)), mode="mock", folder=tmp_path)


def test_an_ended_session_makes_room_for_another(desk, begin):
    first = begin()
    control.end(desk, first.id)
    second = begin()

    assert desk.store.load(first.id).state == "abandoned"
    assert second.id != first.id


def test_what_is_on_the_disk_is_kept_when_a_session_is_left(desk, begin):
    session = begin()
    session.file.write_bytes(RIGHT)
    control.end(desk, session.id)

    assert desk.store.source(session.id, desk.store.load(session.id).kept[0]) == RIGHT


def test_nothing_happens_after_the_end(desk, begin):
    session = begin()
    control.end(desk, session.id)
    for late in (
        lambda: control.save(desk, session.id, RIGHT),
        lambda: control.submit(desk, session.id, RIGHT),
        lambda: control.ask(desk, session.id, 1),
        lambda: control.advance(desk, session.id),
        lambda: control.resume(desk, session.id),
        lambda: control.end(desk, session.id),
        lambda: control.answer(desk, session.id, 1, "1"),
    ):
        with pytest.raises(UsageError, match="it was ended early") as refused:
            late()
        assert refused.value.next_step


def test_asking_twice_is_asking_once(desk, begin):
    session = begin()
    control.ask(desk, session.id, 2)
    control.ask(desk, session.id, 2)

    assert desk.store.load(session.id).asked == {(0, 2)}


@pytest.mark.parametrize("question", [0, -1, 99])
def test_a_question_that_is_not_there(desk, begin, question):
    session = begin()

    with pytest.raises(UsageError, match=f"There is no question '{question}'"):
        control.ask(desk, session.id, question)


def test_answers_may_be_changed_and_points_ticked_only_after_them(desk, begin):
    session = begin()
    control.submit(desk, session.id, RIGHT)
    session = control.advance(desk, session.id)
    free = next(place for place, one in enumerate(session.follow_ups, 1) if one["kind"] == "free")
    numeric = next(place for place, one in enumerate(session.follow_ups, 1) if one["kind"] == "numeric")
    with pytest.raises(UsageError, match="has no answer yet"):
        control.tick_points(desk, session.id, free, (1,))
    with pytest.raises(UsageError, match="graded, not ticked"):
        control.tick_points(desk, session.id, numeric, (1,))
    control.answer(desk, session.id, numeric, "0")
    control.answer(desk, session.id, numeric, str(session.follow_ups[numeric - 1]["answer"]))
    control.answer(desk, session.id, free, "the running maximum")
    with pytest.raises(UsageError, match="There is no point '9'"):
        control.tick_points(desk, session.id, free, (1, 9))
    session = control.tick_points(desk, session.id, free, (2, 1, 2))

    assert session.answers[numeric]["right"] is True
    assert session.ticks[free] == (1, 2)


def test_a_mock_session_is_known_to_the_other_commands_while_it_runs(desk, begin, home, monkeypatch):
    assert active_mock() is None

    session = control.start(desk, plans.of_name("warm-up"), mode="mock", folder=home)

    assert active_mock() == f"interview {session.id} (warm-up)"

    control.end(desk, session.id)

    assert active_mock() is None


def test_a_coached_session_closes_nothing(desk, home):
    control.start(desk, plans.of_name("warm-up"), mode="coached", folder=home)

    assert active_mock() is None


def test_a_database_that_cannot_be_read_closes_nothing(home):
    home.parent.joinpath("home").write_text("a file where a folder should be")

    assert active_mock() is None


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from(["ask", "next", "save", "run", "submit", "answer", "tick", "pause", "resume", "wait"]),
        max_size=25,
    )
)
def test_whatever_is_typed_the_kept_events_replay_to_the_same_state(desk, clock, tmp_path, typed):
    running = desk.store.active()
    if running is not None:
        control.end(desk, running.id)
    plan = plans.with_minutes(plans.of_katas(("sdpa", "causal_mask")), 20)
    session = control.start(desk, plan, mode="coached", folder=tmp_path / "walk", seed=1)
    number = session.id
    helpful: list[str | None] = []
    for step, what in enumerate(typed):
        before = desk.store.load(number)
        try:
            {
                "ask": lambda: control.ask(desk, number, 1),
                "next": lambda: control.advance(desk, number),
                "save": lambda step=step: control.save(desk, number, b"# %d" % step),
                "run": lambda step=step: control.ran(desk, number, b"# %d" % step, outcome="failed"),
                "submit": lambda: control.submit(desk, number, RIGHT),
                "answer": lambda: control.answer(desk, number, 1, "1"),
                "tick": lambda: control.tick(desk, number),
                "pause": lambda: control.pause(desk, number),
                "resume": lambda: control.resume(desk, number),
                "wait": lambda: clock.goes(minutes=3),
            }[what]()
        except UsageError as refused:
            helpful.append(refused.next_step)
        now = desk.store.load(number)
        new = now.events[len(before.events) :]
        replayed = before
        for event in new:
            assert replayed.state in ALLOWED[event.kind]
            replayed = after(replayed, event)

        assert replayed == now
        assert now.used <= now.seconds or now.state != "time_up"
    assert all(helpful)
