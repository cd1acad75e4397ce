"""Goals are read clause by clause, and commands find the clause that they serve."""

from __future__ import annotations

import math
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.plans.clauses import (
    _BACK,
    Goal,
    _Choice,
    _shares,
    align,
    clauses,
    holds,
    instructs,
    names_in,
)
from experiments.plans.words import words

ERRAND = Goal(
    ["see the note in the hall", "red hat", "fold the red hat", "dye the red hat", "be glad"],
    [
        "wait",
        "see note",
        "grab red hat from nook",
        "colour red hat with vat",
        "grab iron from shelf",
        "fold red hat with iron",
        "be glad",
    ],
)
PLAIN = Goal(
    ["see the note in the hall", "scarf", "blue hat", "dye the scarf", "be glad"],
    [
        "see note",
        "grab scarf from nook",
        "grab blue hat from shelf",
        "colour scarf with vat",
        "be glad",
    ],
)


def _served(goal: Goal, places: list[int | None]) -> dict[str, str]:
    return {
        command: goal.clauses[place]
        for command, place in zip(goal.commands, places, strict=True)
        if place is not None
    }


def test_commands_serve_the_clause_that_they_are_said_with_elsewhere() -> None:
    goals = [ERRAND, PLAIN]
    aimed = {c for goal in goals for c in goal.commands}
    first, second = (_served(*pair) for pair in zip(goals, align(goals, aimed), strict=True))
    assert first == {
        "see note": "see the note in the hall",
        "grab red hat from nook": "red hat",
        "colour red hat with vat": "dye the red hat",
        "fold red hat with iron": "fold the red hat",
        "be glad": "be glad",
    }
    assert second["colour scarf with vat"] == "dye the scarf"
    assert second["grab blue hat from shelf"] == "blue hat"


def test_commands_that_are_not_aimed_serve_nothing() -> None:
    assert align([ERRAND], {"see note"}) == [[None, 0, None, None, None, None, None]]


@given(st.lists(st.sampled_from(ERRAND.commands), min_size=1, max_size=8))
def test_a_goal_of_one_clause_is_served_by_all_that_names_its_things(commands: list[str]) -> None:
    goal = Goal(["dye the red hat"], commands)
    expected = [0 if "red hat" in command else None for command in commands]
    assert align([goal], set(commands)) == [expected]


def test_a_text_instructs_if_it_says_what_is_done_later() -> None:
    note = "The note says:\n  fold the hat\n  be merry"
    assert instructs(note, "see note", ["grab hat from nook", "fold hat with iron"])
    assert not instructs(note, "see note", ["grab hat from nook", "dye hat with vat"])
    assert not instructs("You fold the hat.", "fold hat with iron", ["fold hat with iron"])
    assert not instructs("", "wait", ["fold hat with iron"])


def test_names_are_taken_as_long_as_they_can_be() -> None:
    assert names_in("fold the red hat, then the hat", ["hat", "red hat"]) == ["red hat", "hat"]


@pytest.mark.parametrize(
    ("clause", "told", "already"),
    [
        ("fry the hat", "There is a fried hat here.", True),
        ("fold the hat", "There is a folded hat here.", True),
        ("fold the hat", "fold the hat", False),
        ("fold the hat", "fold hat", False),
        ("dye the hat", "There is a folded hat here.", False),
        ("hat", "There is a hatted hat here.", False),
        ("chop the hat", "There is a chopped hat here.", True),
        ("spray the hat", "There is a sprayed hat here.", True),
        ("put the hat away", "There is a purple hat here.", False),
        ("cut the hat", "There is a cute hat here.", False),
        ("clean the hat", "There is a clear hat here.", False),
        ("heat the hat", "There is a heavy hat here.", False),
        ("use wood for the hat", "There is a wooden hat here.", False),
    ],
)
def test_what_is_said_of_a_thing_before_its_name_may_hold_already(
    clause: str, told: str, already: bool
) -> None:
    assert holds(clause, ["hat"], [told]) is already


@given(st.text(max_size=60))
def test_clauses_keep_every_word(text: str) -> None:
    assert [w for clause in clauses(text) for w in words(clause)] == words(text)


def _dinner(*foods: tuple[str, str, str]) -> Goal:
    """All is taken, then all is dyed, then all is folded: another order than what is said."""
    said = ["be merry", "see the note", "this is it", "read on", "what is needed"]
    said += [food for food, _, _ in foods]
    for food, fold, dye in foods:
        said += [f"{fold} the {food}", f"{dye} the {food}"]
    done = [
        "see note",
        *(f"grab {food} from nook" for food, _, _ in foods),
        *(f"soak {food} in vat" for food, _, _ in foods),
        *(f"{fold} {food} with iron" for food, fold, _ in foods),
        "rest",
        "be glad",
    ]
    return Goal(said, done)


def test_a_word_that_is_never_said_finds_its_clauses_by_the_order_of_the_others() -> None:
    goals = [
        _dinner(("scarf", "crease", "redden"), ("red hat", "roll", "tint")),
        _dinner(
            ("glove", "roll", "redden"), ("scarf", "crease", "redden"), ("tie", "roll", "tint")
        ),
        _dinner(("tie", "crease", "tint"), ("glove", "roll", "redden")),
    ]
    aimed = {c for goal in goals for c in goal.commands}
    for goal, places in zip(goals, align(goals, aimed), strict=True):
        served = _served(goal, places)
        for command, clause in served.items():
            verb = words(command)[0]
            if verb == "soak":
                assert words(clause)[0] in {"redden", "tint"}, (command, clause)
            elif verb == "grab":
                assert clause in {"scarf", "red hat", "glove", "tie"}, (command, clause)
            else:
                assert words(clause)[0] == verb, (command, clause)


_choice = st.builds(
    _Choice,
    st.integers(0, 5),
    st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")),
    st.floats(0.01, 1.0),
)


@given(
    st.lists(st.lists(_choice, max_size=3), max_size=5),
    st.fixed_dictionaries({(w, f): st.floats(0.01, 1.0) for w in "abc" for f in "xyz"}),
)
def test_shares_are_those_of_all_ways_to_serve_the_clauses(
    line: list[list[_Choice]], chance: dict[tuple[str, str], float]
) -> None:
    named = [choices for choices in line if choices]
    expected = [[0.0] * len(choices) for choices in named]
    for way in product(*(range(len(choices)) for choices in named)):
        taken = [choices[i] for choices, i in zip(named, way, strict=True)]
        odds = math.prod(chance[c.pair] * c.prior for c in taken)
        odds *= math.prod(_BACK for a, b in pairwise(taken) if b.place < a.place)
        for row, i in zip(expected, way, strict=True):
            row[i] += odds
    found = [shares.tolist() for shares in _shares(line, chance)]
    assert [len(shares) for shares in found] == [len(choices) for choices in line]
    for shares, row in zip([s for s in found if s], expected, strict=True):
        assert shares == pytest.approx([x / sum(row) for x in row])
