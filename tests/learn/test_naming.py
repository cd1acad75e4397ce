"""How far texts name actions, and that an advisor learns by it."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from cvx.learn.advisor import Advisor, Observation, Parts
from cvx.learn.advisor.naming import alike, beside, naming, usual_words

LISTED = "On the shelf: a red mug, a blue mug, a red lamp. The customer wants a red lamp."


@pytest.mark.parametrize(
    ("goal", "text", "action", "told"),
    [
        ("", LISTED, "hand over the red lamp", (0.0, 1.0, 1.0)),
        ("", LISTED, "hand over the red mug", (0.0, 1.0, 0.0)),
        ("sell a green mug", LISTED, "hand over the green mug", (1.0, 0.5, 0.0)),
        ("", "LAMP, lamp; lam p", "lamp", (0.0, 1.0, 1.0)),
        ("lamps", "a lampshade", "lamp", (0.0, 0.0, 0.0)),
        ("the", "the", "hand over the", (0.0, 0.0, 0.0)),
        ("", "", "", (0.0, 0.0, 0.0)),
        ("", "\u00c9tude", "\u00e9tude", (0.0, 1.0, 0.0)),
        ("", "room 12", "12", (0.0, 1.0, 0.0)),
        ("", "please read my mail", "read_mail", (0.0, 1.0, 0.0)),
        ("", "please read my file", "readMail", (0.0, 0.5, 0.0)),
        ("", "readmail or sendmail", "readMail", (0.0, 1.0, 0.0)),
    ],
)
def test_an_action_is_named_by_its_own_words(
    goal: str, text: str, action: str, told: tuple[float, ...]
) -> None:
    assert naming(goal, text, action, frozenset({"hand", "over", "the"})) == told


def test_words_of_most_actions_tell_none_apart() -> None:
    assert usual_words(("go left", "go left", "go right")) == {"go"}
    assert usual_words(("go left",)) == frozenset()
    assert usual_words(("1", "2", "1 2")) == {"1", "2"}
    assert usual_words(()) == frozenset()


@pytest.mark.parametrize(
    ("goal", "text", "action", "told"),
    [
        ("", "Ana owes Bob 5 euros.", "charge Ana", [(1, "owes"), (1, "bob")]),
        ("", "Ana owes Bob 5 euros.", "charge Cy", []),
        ("give to Bo", "Bo waits", "charge Bo", [(0, "to"), (0, "give"), (1, "waits")]),
        ("", "a red, red mug", "charge the red mug", [(0, "a")]),
        ("", "", "", []),
    ],
)
def test_words_beside_a_name_are_those_before_and_after(
    goal: str, text: str, action: str, told: list[tuple[int, str]]
) -> None:
    assert beside(goal, text, action, frozenset({"charge", "the"})) == told


def test_likeness_by_names_is_a_covariance_and_nothing_where_nothing_is_named() -> None:
    rng = np.random.default_rng(0)
    some = rng.integers(0, 4, size=(60, 3)) / 3.0
    table = alike(some, some)
    named = some.any(1)
    assert np.allclose(np.diag(table), named)
    assert (table[~named] == 0.0).all()
    assert np.linalg.eigvalsh(table)[0] > -1e-9
    assert alike(np.array([[0.0, 1.0, 0.0]]), np.array([[0.0, 1.0, 1.0]]))[0, 0] < 0.001


def wins(
    parts: Parts, right: Callable[[list[str], str], list[str]], *, seed: int = 1
) -> list[bool]:
    """Play a hundred episodes of one step, each with six names that never come again."""
    advisor, rng, out = Advisor(seed=seed, parts=parts), random.Random(seed), []
    for number in range(100):
        names = ["".join(rng.choices("bdfglmnprst", k=6)) for _ in range(6)]
        meant = rng.choice(names)
        text = Observation(f"A letter for {meant}.")
        advisor.begin(str(number), task="post")
        done = advisor.choose(
            str(number), advisor.options(str(number), text, [f"ring at {one}" for one in names])
        ).action
        advisor.step(str(number), text, done)
        out.append(done in right([f"ring at {one}" for one in names], f"ring at {meant}"))
        advisor.end(str(number), float(out[-1]))
    return out


@pytest.mark.requirement("B11")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_named_is_learned_though_no_action_comes_again(seed: int) -> None:
    def meant(_: list[str], named: str) -> list[str]:
        return [named]

    assert sum(wins(Parts(), meant, seed=seed)[50:]) >= 48
    assert sum(wins(Parts(names=False), meant, seed=seed)[50:]) <= 25


@pytest.mark.requirement("B11")
def test_that_what_is_named_is_wrong_is_learned_as_well() -> None:
    def others(every: list[str], named: str) -> list[str]:
        return [one for one in every if one != named]

    assert sum(wins(Parts(), others)[50:]) >= 48


@pytest.mark.requirement("B11")
@pytest.mark.parametrize("seed", [1, 2])
def test_which_of_two_that_are_named_is_meant_is_learned(seed: int) -> None:
    people = ["Ana", "Bo", "Cy", "Di", "Eve", "Flo", "Gus", "Hal", "Ida", "Jo"]
    advisor, rng, won = Advisor(seed=seed), random.Random(seed), []
    for number in range(100):
        one, other = rng.sample(people, 2)
        text = Observation(f"{one} owes {other} {rng.randrange(5, 90)} euros.")
        advisor.begin(str(number), task="books")
        ways = rng.sample([f"charge {one}", f"charge {other}"], 2)
        done = advisor.choose(str(number), advisor.options(str(number), text, ways)).action
        advisor.step(str(number), text, done)
        won.append(done == f"charge {one}")
        advisor.end(str(number), float(won[-1]))
    assert sum(won[50:]) >= 47


@pytest.mark.requirement("B11")
def test_that_what_is_named_is_right_can_hang_on_the_state() -> None:
    # Take what is named where the door is open, and leave it where it is shut.
    advisor, rng, won = Advisor(seed=1), random.Random(1), []
    for number in range(150):
        names = ["".join(rng.choices("bdfglmnprst", k=6)) for _ in range(4)]
        wide = rng.random() < 0.5
        text = Observation(f"The door is {'open' if wide else 'shut'}. Here is {names[0]}.")
        advisor.begin(str(number), task="doors")
        ways = [f"take {one}" for one in names]
        done = advisor.choose(str(number), advisor.options(str(number), text, ways)).action
        advisor.step(str(number), text, done)
        won.append((done == ways[0]) == wide)
        advisor.end(str(number), float(won[-1]))
    assert sum(won[100:]) >= 36


def test_before_anything_paid_what_is_named_is_tried_sooner_and_the_rest_in_its_turn() -> None:
    def nothing(_: list[str], __: str) -> list[str]:
        return []

    advisor, text = Advisor(seed=1), Observation("A letter for Bo.")
    tried = []
    for number in range(60):
        advisor.begin(str(number), task="post")
        ways = ["ring at Ana", "ring at Bo", "ring at Cy", "ring at Di"]
        options = advisor.options(str(number), Observation(f"{text.text} {number}"), ways)
        tried.append(advisor.choose(str(number), options).action)
        advisor.step(str(number), Observation(f"{text.text} {number}"), tried[-1])
        advisor.end(str(number), 0.0)
    assert not any(wins(Parts(), nothing))
    assert 20 <= tried.count("ring at Bo") <= 45
    assert len({*tried}) == 4
