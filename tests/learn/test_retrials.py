"""What one try told of an action is tried again now and then: it may vary, or have changed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from cvx.embed import LexicalEmbedder
from cvx.learn.advisor import Advisor, Observation

_TEXT = "You stand before a machine."
_SEEN = Observation(_TEXT, LexicalEmbedder(64).embed([_TEXT])[0])

Arms = dict[str, Callable[[random.Random, int], float]]


def play(
    arms: Arms, episodes: int, seed: int = 0, *, outcome: bool = False, reopen_at: int = -1
) -> list[str]:
    """Return what was done in each episode of one choice."""
    advisor, draw, done = Advisor(seed=seed), random.Random(seed), list[str]()
    for number in range(episodes):
        if number == reopen_at:
            kept, advisor = advisor.saved(), Advisor(seed=seed)
            advisor.restore(kept)
        name = str(number)
        advisor.begin(name, task="machine")
        options = advisor.options(name, _SEEN, list(arms))
        action = advisor.choose(name, options).action
        assert isinstance(action, str)
        paid = arms[action](draw, number)
        advisor.step(name, _SEEN, action, 0.0 if outcome else paid)
        advisor.end(name, paid if outcome else None)
        done.append(action)
    return done


SURE: Arms = {"lever": lambda *_: 1.0, "button": lambda *_: 0.5}
WHEEL: Arms = SURE | {"wheel": lambda _, number: 3.0 * (number >= 60)}
RARE: Arms = SURE | {"wheel": lambda draw, _: 10.0 * (draw.random() < 0.25)}


@pytest.mark.requirement("B11")
def test_what_pays_now_and_then_is_found_beside_what_always_pays_the_same() -> None:
    found = [play(RARE, 250, seed)[-50:].count("wheel") >= 25 for seed in range(8)]
    assert sum(found) >= 6


@pytest.mark.requirement("B11")
def test_what_only_becomes_good_later_is_found() -> None:
    for seed in range(4):
        assert play(WHEEL, 160, seed)[-20:].count("wheel") >= 18


def test_where_nothing_changes_trying_again_becomes_rare() -> None:
    done = play(SURE | {"wheel": lambda *_: 0.0}, 300)
    early, late = done[:150], done[150:]
    assert late.count("lever") > early.count("lever") >= 135


def test_what_loses_far_more_than_can_be_gained_is_hardly_tried_again() -> None:
    assert play(SURE | {"jump": lambda *_: -10.0}, 300).count("jump") == 1


def test_beside_a_sure_success_nothing_is_tried_again() -> None:
    done = Counter(play({"pull": lambda *_: 1.0, "push": lambda *_: 0.0}, 150, outcome=True))
    assert done["push"] <= 1


def test_a_learner_that_was_kept_tries_again_in_the_same_episodes() -> None:
    assert play(WHEEL, 90, reopen_at=40) == play(WHEEL, 90)


def test_the_turn_of_an_action_is_told_as_its_chance_and_hearsay_has_none() -> None:
    advisor, menu = Advisor(seed=0), ["lever", "button", "wheel"]

    def tell(name: str, action: str, paid: float, source: str = "") -> None:
        advisor.begin(name, task="machine", source=source)
        advisor.step(name, _SEEN, action, paid, actions=menu)
        advisor.end(name)

    tell("a", "button", 0.5)
    tell("b", "wheel", 0.0, source="stranger")
    for number in range(40):
        tell(str(number), "lever", 1.0)
    advisor.begin("now", task="machine")
    options = advisor.options("now", _SEEN, menu)
    chances = dict(zip([o.action for o in options], advisor.chances("now", options), strict=True))
    assert advisor.choose("now", options).action == "button"
    assert chances["button"] > 0.9
    assert chances["wheel"] < 0.1
    assert options[0].action == advisor.choose("now", options, explore=False).action == "lever"
