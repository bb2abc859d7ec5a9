"""Plans: one's own with the line of a mistake, and tasks that are not repeated while others are left."""

from __future__ import annotations

import pytest

from attn_kata.errors import UsageError
from attn_kata.interview import content, plans

GOOD = """title = "Mine"
about = "short"
rounds = [
  { round = "write", kata = "sdpa", minutes = 20 },   # { not a round }
  { round = "grow", kata = "padding-mask", minutes = 25 },
  { round = "talk" },
]
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            '"grow"',
            '"gorw"',
            "line 5: 'round' must be one of write, grow, hunt, review, napkin, derive, talk, not 'gorw'",
        ),
        ('"grow"', '"gorw"', "not 'gorw'; perhaps 'grow' is meant."),
        (", minutes = 25", "", "line 5: 'minutes' is missing"),
        ("minutes = 25", 'minutes = "25"', "line 5: 'minutes' must be a number of 1 or more"),
        ("minutes = 25", "minutes = 0", "line 5: 'minutes' must be a number of 1 or more"),
        ("minutes = 25", "minutes = 25, sort = 1", "line 5: 'sort' is an unknown key"),
        ('"padding-mask"', '"sdpa"', "line 3: 'rounds' would ask 'sdpa' to be written twice"),
        ('"padding-mask"', '"pading-mask"', "line 5: there is no kata 'pading_mask'. Did you mean 'padding_mask'?"),
        ('"padding-mask"', '"flush_attention"', "line 5: there is no kata 'flush_attention'."),
        ('round = "write"', 'round = "grow"', "line 4: 'round' is 'grow', but no file has been written before it"),
        ('title = "Mine"\n', "", "line 1: 'title' is missing"),
        ('round = "talk"', 'round = "talk", minutes = 5', "line 6: 'minutes' is an unknown key"),
        ('  { round = "write"', '  { round = "talk" },\n  { round = "write"', "'rounds' may have one talk"),
        ('kata = "padding-mask", ', "", "'tasks' is missing"),
        ("rounds = [", "rounds = [[", "cannot be read"),
        ('"grow", kata = "padding-mask"', '"derive", kata = "mha"', "line 5: 'mha' has no derivation to ask for"),
    ],
)
def test_a_mistake_in_a_plan_of_ones_own_is_said_with_its_line(tmp_path, old, new, said):
    file = tmp_path / "mine.toml"
    assert old in GOOD
    file.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(UsageError) as wrong:
        plans.named(str(file))

    assert said in wrong.value.what
    assert "mine.toml" in wrong.value.what
    assert wrong.value.next_step


@pytest.mark.parametrize(("name", "said"), [("gone.toml", "is not there"), ("", "is a folder, not a plan")])
def test_a_plan_file_that_is_none(tmp_path, name, said):
    with pytest.raises(UsageError) as wrong:
        plans.of_file(tmp_path / name)

    assert said in wrong.value.what


def test_a_plan_of_ones_own_is_read_also_as_tables(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(GOOD)
    plan = plans.named(str(file))
    tables = "".join(
        f"[[rounds]]\n{row}\n"
        for row in (
            'round = "write"\nkata = "sdpa"\nminutes = 20',
            'round = "grow"\nkata = "padding_mask"\nminutes = 25',
        )
    )
    file.write_text(f'title = "Mine"\nabout = "short"\n{tables}[[rounds]]\nround = "talk"\n')

    assert plans.named(str(file)) == plan
    file.write_text(file.read_text().replace("minutes = 25", "minuts = 25"))
    with pytest.raises(UsageError, match="line 7: 'minutes' is missing; is 'minuts' meant"):
        plans.named(str(file))


def test_no_task_is_repeated_while_others_are_left():
    plan = plans.of_name("phone-screen")
    before: list[list[str]] = []
    for seed in range(len(plan.tasks)):
        drawn = plans.drawn(plan, before=before, seed=seed)
        before.insert(0, [one.kata for one in drawn.rounds if one.kata])

    assert len({katas[0] for katas in before}) == len(plan.tasks)
    assert plans.drawn(plan, before=before, seed=1).rounds[0].kata == before[-1][0]  # the one of longest ago


def test_the_named_plans_and_at_least_four_chains_are_there():
    every = {plan.name: plan for plan in plans.every()}
    chains = set(every["deep-dive"].tasks) | {
        tuple(one.kata for one in plan.rounds if one.kata) for name, plan in every.items() if name.startswith("grow-")
    }

    assert {"phone-screen", "deep-dive", "debugging", "inference", "research"} <= set(every)
    assert len(chains) >= 4
    for task in every["research"].tasks:
        assert any(one.kind == "derive" for one in content.of_kata(task[1]).follow_ups)
    assert ("sdpa", "padding_mask", "mha") in chains
