"""Exploring tries what nobody showed once what was shown has led nowhere."""

from __future__ import annotations

from experiments.plans import Consulted, Lexicon, Observation, PlaceMap, Wish
from experiments.textgames.explore import Explorer, GameState

_COMMANDS = ("lift box 1", "walk to nook 1", "walk to nook 2")


def _best(steps: int) -> str:
    """Return what is chosen after some steps that showed nothing that was not known."""
    lexicon = Lexicon()
    lexicon.did(["walk to nook 1", "lift box 1", "grab hat 1"], ["box", "hat"])
    sight = GameState(Observation("", "bring a hat", _COMMANDS), PlaceMap(set()))
    for turn in range(steps):
        sight.look("grab hat", f"walk to nook {1 + turn % 2}")
        sight.do(f"walk to nook {1 + turn % 2}")
        sight.see(Observation("", "bring a hat", _COMMANDS))
    wish = Wish({"hat"}, {"hat"}, {"hat"}, set(), "grab hat")
    told = Consulted("", {"walk to #": 0.9, "lift #": 0.1}, {}, wish)
    explorer = Explorer(sight, told, lexicon)
    return max(_COMMANDS, key=explorer.worth)


def test_what_was_shown_on_the_way_comes_first() -> None:
    assert _best(0) == "walk to nook 1"


def test_a_command_that_was_only_shown_as_an_end_is_tried_when_all_else_led_nowhere() -> None:
    assert _best(14) == "lift box 1"
