"""What is played in which order, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cvx.errors import InvalidInputError
from experiments.errors import GameError
from experiments.harness.protocols import PROTOCOLS, protocol_of, size_of
from experiments.tests.harness.hat_domain import small

GAMES = [Path(f"learn/{n}") for n in range(9)]
UNSEEN = [Path(f"unseen/{n}") for n in range(5)]


@pytest.mark.requirement("V21")
def test_transfer_learns_from_other_games_than_it_measures_on() -> None:
    setup = small(rounds=3, games_per_round=2, measured=4, measured_after=(0, 1, 3))
    turns = protocol_of("transfer").order(setup, GAMES, UNSEEN)
    measured = [t for t in turns if t.measured]
    learned = [t for t in turns if not t.measured]
    assert {t.game for t in measured} == set(UNSEEN[:4])
    assert [t.game for t in learned] == GAMES[:6]
    assert [t.round for t in measured] == [0] * 4 + [1] * 4 + [3] * 4
    assert turns[0].measured, "before any own experience"
    assert turns[-1].measured, "after the last round"
    for place, turn in enumerate(turns):
        assert turn.round == sum(not t.measured for t in turns[:place]) // 2


@pytest.mark.requirement("V21")
def test_repeat_meets_the_same_games_in_each_of_ten_rounds() -> None:
    setup = small(protocol="repeat", rounds=10, games_per_round=3, measured=0)
    turns = protocol_of("repeat").order(setup, GAMES, [])
    for number in range(10):
        assert [t.game for t in turns if t.round == number] == GAMES[:3]
    assert not any(t.measured for t in turns)


def test_stream_meets_every_game_once() -> None:
    setup = small(protocol="stream", rounds=3, games_per_round=3, measured=0)
    turns = protocol_of("stream").order(setup, GAMES, [])
    assert [t.game for t in turns] == GAMES
    assert [t.round for t in turns] == [0, 0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_size_is_the_number_of_turns(name: str) -> None:
    setup = small(protocol=name, measured=4 if name == "transfer" else 0)
    turns = protocol_of(name).order(setup, GAMES, UNSEEN)
    assert size_of(setup) == len(turns)
    assert protocol_of(name).title in protocol_of(name).says(setup)


def test_more_games_than_there_are_is_refused() -> None:
    with pytest.raises(GameError, match="12 games to learn from were asked for, there are 9"):
        protocol_of("transfer").order(small(rounds=4), GAMES, UNSEEN)
    with pytest.raises(GameError, match="6 games to measure on"):
        protocol_of("transfer").order(small(measured=6), GAMES, UNSEEN)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"protocol": "both"}, "choose from transfer, repeat, stream"),
        ({"seeds": 0}, "seeds is 0"),
        ({"measured": 0}, "measured is 0"),
        ({"measured_after": (0, 3)}, "measured_after has 3: give numbers from 0 to 2"),
        ({"protocol": "repeat"}, "choose transfer"),
        ({"first_seed": -1}, "first_seed is -1"),
        ({"arms": ()}, "arms is empty"),
        ({"arms": ("best",)}, "there is no arm 'best': choose from full"),
        ({"llm": "http://localhost:1/v1"}, "name"),
        ({"llm": "http://localhost:1/v1", "model": "m", "arms": ("frequency",)}, "no place"),
    ],
)
def test_setups_that_cannot_be_played_are_refused(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInputError, match=named):
        small(**wrong).check()
