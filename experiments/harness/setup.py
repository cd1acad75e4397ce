"""The setup of an experiment: arms, seeds, games, options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from cvx.errors import InvalidInputError
from experiments.harness.arms import ARMS, arm_of
from experiments.harness.domain import Domain
from experiments.harness.protocols import protocol_of


@dataclass(frozen=True, slots=True)
class Setup:
    """What is to be played.

    Parameters
    ----------
    domain : Domain
        Which games.
    protocol : str, default "transfer"
        A name in `PROTOCOLS`.
    seeds, rounds, games_per_round : int
        Every seed has its own demonstrations and its own games, or its own order of real ones.
    measured : int, default 0
        How many games are measured on; for protocols that measure.
    measured_after : tuple of int, optional
        After how many rounds of own experience; default before the first and after the last.
    first_seed : int, default 0
        The seeds are this one and those after it.
    arms : tuple of str
        Names in `ARMS`.
    workers : int, default 2
        Processes.
    max_steps : int, default 50
        Commands a game, for the players and for the demonstrations.
    llm, model : str, optional
        Address and name of a language model to play in the agent's place.
    answers : Path, optional
        A folder that keeps the model's answers, so that the run can be repeated without it.
    audit : Path, optional
        A folder in which every arm and seed notes what the model was asked, what it answered, and
        what came of it.
    store : Path, optional
        A folder in which every arm and seed keeps its memory and its results, so that an
        experiment that was broken off goes on where it was; None keeps them in RAM.
    kept : Path, optional
        Without a ``store``: a new folder in which the full loop keeps its memory of the first
        seed, to be looked into.
    """

    domain: Domain
    protocol: str = "transfer"
    seeds: int = 5
    rounds: int = 3
    games_per_round: int = 20
    measured: int = 0
    measured_after: tuple[int, ...] = ()
    first_seed: int = 0
    arms: tuple[str, ...] = tuple(ARMS)
    workers: int = 2
    max_steps: int = 50
    llm: str | None = None
    model: str | None = None
    answers: Path | None = None
    audit: Path | None = None
    store: Path | None = None
    kept: Path | None = None

    @property
    def measures(self) -> bool:
        """Whether success is judged on games from which memory does not learn."""
        return protocol_of(self.protocol).measures

    @property
    def points(self) -> tuple[int, ...]:
        """The rounds, counted from 0, at which the learning curve has its points."""
        if not self.measures:
            return tuple(range(self.rounds))
        return tuple(sorted(set(self.measured_after or (0, self.rounds))))

    def check(self) -> None:
        """Raise an InvalidInputError for what cannot be played."""
        protocol_of(self.protocol)
        names = ["seeds", "rounds", "games_per_round", "workers", "max_steps"]
        for name in [*names, *(["measured"] if self.measures else [])]:
            if getattr(self, name) < 1:
                raise InvalidInputError(f"{name} is {getattr(self, name)}: give at least 1")
        if self.first_seed < 0:
            raise InvalidInputError(f"first_seed is {self.first_seed}: give at least 0")
        if not self.arms:
            raise InvalidInputError(f"arms is empty: choose from {', '.join(ARMS)}")
        if not self.measures and (self.measured or self.measured_after):
            raise InvalidInputError(
                f"the protocol {self.protocol!r} measures while memory learns: leave out what is "
                "to be measured apart, or choose transfer"
            )
        beyond = [number for number in self.points if not 0 <= number <= self.rounds]
        if beyond:
            raise InvalidInputError(
                f"measured_after has {beyond[0]}: give numbers from 0 to {self.rounds}, the rounds"
            )
        if (self.llm is None) != (self.model is None):
            raise InvalidInputError(
                "a language model needs --llm, its address, and --model, its name"
            )
        for name in self.arms:
            arm = arm_of(name)
            if self.llm and not arm.readable:
                raise InvalidInputError(f"arm {name!r} has no place for a language model")
        self.domain.check(self)


def describe(setup: Setup) -> Mapping[str, Any]:
    """Return the setup as plain values, for the record of a run."""
    plain = {one.name: getattr(setup, one.name) for one in fields(setup)}
    plain["domain"] = {"name": setup.domain.name, **setup.domain.describe()}
    for name in ("answers", "audit", "store", "kept"):
        plain[name] = None if plain[name] is None else str(plain[name])
    plain["arms"], plain["measured_after"] = list(setup.arms), list(setup.points)
    return plain


def conditions(setup: Setup) -> str:
    """Say in words what was played, as it has to stand beside the figures."""
    games, shown = setup.domain.words(setup)
    agent = f"language model {setup.model}" if setup.llm else "agent without a language model"
    return (
        f"{protocol_of(setup.protocol).says(setup)}: {games}; {setup.seeds} seeds; "
        f"{shown}; {setup.max_steps} steps a game; {agent}"
    )
