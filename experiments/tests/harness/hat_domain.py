"""Hats as a domain: whole experiments within seconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cvx.errors import InvalidInputError
from experiments.harness.domain import Material
from experiments.harness.play_arm import Played
from experiments.harness.setup import Setup
from experiments.tests.textgames.hats import HatGame, demonstrations
from experiments.textgames.reader import Policy

DYED, PLAIN, STRANGE = "dyed", "plain", "strange"
_GOALS = {
    DYED: "hang a red hat on the peg",
    PLAIN: "hang a hat on the peg",
    # A word that no demonstration has: what it asks for has to be found out by failing.
    STRANGE: "hang a crimson hat on the peg",
}


@dataclass(frozen=True, slots=True)
class Hats:
    """Games are names such as ``dyed/7``; nothing is read from disk."""

    name: str = "hats"
    real: bool = False

    def check(self, setup: Setup) -> None:
        """Play anything."""

    def prepare(self, setup: Setup, seed: int) -> Material:
        """Take kinds in turn; games to measure on have numbers from 1000."""
        kinds = (PLAIN, STRANGE, DYED)
        n = setup.rounds * setup.games_per_round
        games = [Path(kinds[i % 3]) / str(100 * seed + i) for i in range(n)]
        unseen = [Path(kinds[i % 3]) / str(1000 + i) for i in range(setup.measured)]
        return Material(demonstrations(), ["plain/1", "dyed/2"], games, unseen)

    @contextmanager
    def open(self, game: Path, setup: Setup) -> Iterator[HatGame]:
        """Open a game."""
        kind, number = game.parts
        yield HatGame(_GOALS[kind], seed=int(number), dyed=kind != PLAIN, max_steps=setup.max_steps)

    def task_type_of(self, game: Path) -> str:
        """Return its folder."""
        return game.parts[0]

    def name_of(self, game: Path) -> str:
        """Return it whole."""
        return str(game)

    def policy(self, setup: Setup, seed: int) -> Policy:  # noqa: ARG002
        """Refuse."""
        raise InvalidInputError("no language model plays with hats")

    def describe(self) -> Mapping[str, Any]:
        """Return nothing."""
        return {}

    def words(self, setup: Setup) -> tuple[str, str]:  # noqa: ARG002
        """Say so."""
        return "games of hats", "2 demonstrations"


def small(**changes: Any) -> Setup:
    """Return a setup of a few games."""
    usual: dict[str, Any] = {
        "protocol": "transfer", "seeds": 1, "rounds": 2, "games_per_round": 3, "measured": 3,
        "max_steps": 30, "workers": 1, "arms": ("full", "none"),
    }  # fmt: skip
    return Setup(domain=Hats(), **{**usual, **changes})


def played(arm: str = "full", seed: int = 0, place: int = 0, **changes: Any) -> Played:
    """Return a game as it may have gone."""
    usual: dict[str, Any] = {
        "round": place // 2, "measured": False, "game": f"game {place}", "task_type": "t",
        "wins_held": 6, "failures_held": 0, "failures_advising": 0, "won": True, "steps": 10,
        "attempts": 1, "decisions": 4, "seconds": 0.002,
    }  # fmt: skip
    found = {**usual, **changes}
    return Played(arm, seed, place, **{"score": float(found["won"]), **found})
