"""The clock of a session: nothing wins time, and everything is announced once."""

from __future__ import annotations

import os

import pytest

from attn_kata.errors import UsageError
from attn_kata.interview import control, moments, timeline
from attn_kata.interview.moments import Moment

from .conftest import RIGHT


def moment(wall: float, boot: float, boot_id: str = "one") -> Moment:
    return Moment(wall=wall, boot=boot, boot_id=boot_id)


@pytest.mark.parametrize(
    ("since", "now", "seconds"),
    [
        pytest.param(moment(100, 10), moment(160, 70), 60, id="an ordinary minute"),
        pytest.param(moment(100, 10), moment(-3500, 70), 60, id="the wall clock set back"),
        pytest.param(moment(100, 10), moment(9100, 70), 60, id="the wall clock set forward"),
        pytest.param(moment(100, 10), moment(100, 8), 0, id="read in one order, written in the other"),
        pytest.param(moment(100, 5000), moment(400, 60, "two"), 300, id="started again"),
        pytest.param(
            moment(100, 5000), moment(-900, 60, "two"), 60, id="started again and set back: it was up a minute"
        ),
        pytest.param(moment(100, 10, ""), moment(400, 70, ""), 300, id="no name for the start: whatever is longer"),
        pytest.param(moment(100, 5000, ""), moment(110, 60, ""), 60, id="no name for the start, and started again"),
    ],
)
def test_what_has_passed_is_never_less_than_what_is_known(since, now, seconds):
    assert moments.passed(since, now) == seconds


def test_the_system_clock_reads_both_times():
    clock = moments.SystemClock()
    first, second = moments.read(clock), moments.read(clock)

    assert 0 <= moments.passed(first, second) < 5


def test_the_deadline_is_stored_when_coding_starts_and_stays(desk, clock, begin):
    session = begin(minutes=40)
    deadline = session.events[-1].data["deadline"]
    clock.goes(minutes=10)
    control.save(desk, session.id, RIGHT)
    control.resume(desk, session.id)
    again = desk.store.load(session.id)

    assert deadline == {"wall": 1_800_000_000.0 + 2400, "boot": 5000.0 + 2400, "boot_id": "first"}
    assert again.events[2].data["deadline"] == deadline
    assert again.left(moments.read(clock)) == 30 * 60


def test_the_briefing_is_off_the_clock(desk, clock, begin):
    session = begin(minutes=40)

    assert session.left(moments.read(clock)) == 40 * 60


def test_a_clock_set_back_gives_no_time(desk, clock, begin):
    session = begin(minutes=40)
    clock.goes(minutes=30)
    clock.set_by(minutes=-300)

    assert control.tick(desk, session.id).left == 10 * 60

    clock.goes(minutes=11)

    assert control.tick(desk, session.id).session.state == "time_up"


def test_a_clock_set_back_across_a_reboot_gives_no_more_than_the_time_it_was_off(desk, clock, begin):
    session = begin(minutes=40)
    clock.goes(minutes=10)
    control.save(desk, session.id, RIGHT)
    clock.starts_again(off_minutes=5, up_minutes=15, wall_shift=-600)

    assert control.tick(desk, session.id).left == 15 * 60


def test_a_machine_asleep_past_the_deadline_is_over(desk, clock, begin):
    session = begin(minutes=40)
    session.file.write_bytes(RIGHT)
    os.utime(session.file, (clock.wall(), clock.wall()))
    clock.goes(minutes=600)
    ticked = control.tick(desk, session.id)

    assert ticked.session.state == "time_up"
    assert desk.store.source(session.id, ticked.session.finals[0]) == RIGHT
    assert ticked.news == ("The time is up. Your file is taken as it is on the disk.",)
    assert control.tick(desk, session.id).news == ()


def test_announcements_come_at_half_ten_five_and_one_each_once(desk, clock, begin):
    session = begin(minutes=40)
    heard = []
    for _ in range(40 * 6):
        clock.goes(seconds=10)
        heard += [(clock.boot() - 5000, sentence) for sentence in control.tick(desk, session.id).news]

    assert heard == [
        (1200, "Half of the time is over. 20 minutes left."),
        (1800, "10 minutes left."),
        (2100, "5 minutes left."),
        (2340, "1 minute left."),
        (2400, "The time is up. Your file is taken as it is on the disk."),
    ]


def test_what_was_slept_through_is_announced_in_one_sentence(desk, clock, begin):
    session = begin(minutes=40)
    clock.goes(minutes=37)

    assert control.tick(desk, session.id).news == ("3 minutes left.",)
    assert control.tick(desk, session.id).news == ()


def test_a_short_session_announces_only_what_lies_within_it(desk, clock, begin):
    session = begin(minutes=4)
    heard = []
    for _ in range(24):
        clock.goes(seconds=10)
        heard += control.tick(desk, session.id).news

    assert heard[:2] == ["Half of the time is over. 2 minutes left.", "1 minute left."]
    assert len(heard) == 3


@pytest.mark.parametrize("action", ["save", "submit", "ran", "ask"])
def test_what_comes_after_the_end_is_refused_and_the_disk_is_taken(desk, clock, begin, action):
    session = begin(minutes=40)
    session.file.write_bytes(RIGHT)
    os.utime(session.file, (clock.wall(), clock.wall()))
    clock.goes(minutes=40, seconds=1)
    late = {
        "save": lambda: control.save(desk, session.id, b"late"),
        "submit": lambda: control.submit(desk, session.id, b"late"),
        "ran": lambda: control.ran(desk, session.id, b"late", outcome="passed"),
        "ask": lambda: control.ask(desk, session.id, 1),
    }
    with pytest.raises(UsageError, match="the time is up"):
        late[action]()
    taken = desk.store.load(session.id)

    assert taken.state == "time_up"
    assert desk.store.source(session.id, taken.finals[0]) == RIGHT


def test_a_mock_session_does_not_pause(desk, begin):
    session = begin()

    with pytest.raises(UsageError, match="cannot pause"):
        control.pause(desk, session.id)


def test_a_coached_session_pauses_and_goes_on(desk, clock, begin):
    session = begin(minutes=40, mode="coached")
    clock.goes(minutes=10)
    control.pause(desk, session.id)
    clock.goes(minutes=500)

    assert control.tick(desk, session.id).left == 30 * 60

    control.resume(desk, session.id)
    clock.goes(minutes=5)

    assert control.tick(desk, session.id).left == 25 * 60


def test_the_clock_runs_between_stages_and_stops_after_the_last(desk, clock, begin):
    session = begin("sdpa", "causal_mask", minutes=40)
    clock.goes(minutes=10)
    control.submit(desk, session.id, RIGHT)
    clock.goes(minutes=5)
    control.advance(desk, session.id)
    clock.goes(minutes=5)
    control.submit(desk, session.id, b"x = 1\n")
    clock.goes(minutes=500)
    session = control.tick(desk, session.id).session

    assert session.state == "submitted"
    assert session.used == 20 * 60


def test_time_up_between_stages_keeps_what_was_submitted(desk, clock, begin):
    session = begin("sdpa", "causal_mask", minutes=40)
    control.submit(desk, session.id, RIGHT)
    clock.goes(minutes=41)
    ticked = control.tick(desk, session.id)

    assert ticked.session.state == "time_up"
    assert list(ticked.session.finals) == [0]
    assert control.advance(desk, session.id).state == "follow_up"


@pytest.mark.parametrize(("minutes", "way"), [(-180, "back"), (180, "forward")])
def test_a_clock_that_was_set_is_said_once_and_the_time_stays(desk, clock, begin, minutes, way):
    session = begin(minutes=40)
    clock.goes(minutes=5)
    clock.set_by(minutes=minutes)
    clock.goes(seconds=1)
    ticked = control.tick(desk, session.id)

    assert ticked.news == (f"The machine's clock was set {way} by 3 hours. Your time left is the same.",)
    assert ticked.left == 40 * 60 - 301
    assert control.tick(desk, session.id).news == ()
    shown = timeline.told(ticked.session)[-1]
    assert shown[1:] == (301, f"the machine's clock was set {way} by 3 hours; the time left stayed")


def test_a_clock_that_is_kept_right_is_not_said(desk, clock, begin):
    session = begin(minutes=40)
    clock.set_by(minutes=0.2)

    assert control.tick(desk, session.id).news == ()


def test_a_clock_that_was_set_while_the_machine_was_off_cannot_be_known(desk, clock, begin):
    session = begin(minutes=40)
    clock.starts_again(off_minutes=5, wall_shift=-600)

    assert control.tick(desk, session.id).session.events[-1].kind == "began"


def test_the_end_and_a_clock_that_was_set_are_both_said(desk, clock, begin):
    session = begin(minutes=40)
    clock.set_by(minutes=-180)
    clock.goes(minutes=41)
    news = control.tick(desk, session.id).news

    assert news[0] == "The machine's clock was set back by 3 hours. Your time left is the same."
    assert news[1].startswith("The time is up.")


@pytest.mark.parametrize(("saved_after", "taken"), [(30, "on the disk"), (50, "changed after the end")])
def test_a_file_saved_before_the_clock_was_set_back_is_judged_by_the_clock_of_then(
    desk, clock, begin, saved_after, taken
):
    session = begin(minutes=40)
    control.save(desk, session.id, RIGHT)
    clock.goes(minutes=saved_after)
    session.file.write_bytes(b"# newer\n" + RIGHT)  # in an editor: no command has seen it yet
    os.utime(session.file, (clock.wall(), clock.wall()))
    clock.goes(minutes=1)
    clock.set_by(minutes=-180)
    clock.goes(minutes=20)

    assert control.tick(desk, session.id).session.events[-1].data["how"] == taken


def test_what_was_written_after_the_end_with_the_clock_set_back_is_not_taken(desk, clock, begin):
    session = begin(minutes=40)
    control.save(desk, session.id, RIGHT)
    clock.goes(minutes=30)
    clock.set_by(minutes=-180)
    clock.goes(minutes=60)
    session.file.write_bytes(b"# late\n" + RIGHT)
    os.utime(session.file, (clock.wall(), clock.wall()))
    clock.goes(minutes=1)

    assert control.tick(desk, session.id).session.events[-1].data["how"] == "changed after the end"
