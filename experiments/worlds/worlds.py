"""Small text worlds with a known optimum, for measuring whether a memory lets an agent learn.

A world has the manners of a Gymnasium environment: ``reset(seed=..., options=...) -> (text, info)``
and ``step(command) -> (text, reward, terminated, truncated, info)``. ``info["goal"]`` is what is
asked for, ``info["admissible"]`` the commands that can be given now. ``world.state`` is the exact
state, for privileged baselines only: no learner may read it. ``world.optimum`` is the best expected
reward of an episode.
"""

# ruff: noqa: D102, ARG002
# What the methods of a world do is told once, by World.

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import Any, ClassVar

Info = dict[str, Any]


class World(ABC):
    """What the worlds share: seeding, counting, truncation."""

    optimum = 1.0
    horizon = 1

    def __init__(self) -> None:
        self.random = random.Random(0)
        self.episode = -1

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[str, Info]:
        """Begin an episode; return its first text and what is asked for."""
        if seed is not None:
            self.random.seed(seed)
        self.episode += 1
        self.steps = 0
        self.begin(options or {})
        return self.text(), self.info()

    def step(self, command: str) -> tuple[str, float, bool, bool, Info]:
        """Do a command; return text, reward, terminated, truncated, info."""
        if command not in self.admissible():
            raise ValueError(f"{command!r} cannot be done here: give one of {self.admissible()}")
        self.steps += 1
        reward, over = self.do(command)
        return self.text(), reward, over, not over and self.steps >= self.horizon, self.info()

    def info(self) -> Info:
        """Return what is asked for and what can be done."""
        return {"goal": self.goal(), "admissible": self.admissible()}

    def goal(self) -> str:
        """Return what is asked for."""
        return ""

    @abstractmethod
    def begin(self, options: Info) -> None:
        """Set the world up for an episode."""

    @abstractmethod
    def text(self) -> str:
        """Return what is seen."""

    @abstractmethod
    def admissible(self) -> list[str]:
        """Return the commands that can be given now."""

    @abstractmethod
    def do(self, command: str) -> tuple[float, bool]:
        """Do a command; return its reward and whether the episode is over."""

    @property
    @abstractmethod
    def state(self) -> object:
        """The exact state."""


class Shelf(World):
    """One choice in a context that is told in six ways: which bin takes which food."""

    BINS: ClassVar = {
        "apples": "red",
        "bread": "blue",
        "cheese": "green",
        "dates": "white",
        "eggs": "black",
    }
    TOLD = (
        "You hold {}. Where do they belong?",
        "In your hands: {}. Put them away.",
        "A crate of {} has arrived and needs a place.",
        "Store the {} now, please.",
        "There are {} on the table; tidy up.",
        "The cook hands you {}.",
    )

    def begin(self, options: Info) -> None:
        self.food = self.random.choice(list(self.BINS))
        self.told = self.random.choice(self.TOLD)

    def text(self) -> str:
        return self.told.format(self.food)

    def admissible(self) -> list[str]:
        return [f"put in bin {colour}" for colour in self.BINS.values()]

    def do(self, command: str) -> tuple[float, bool]:
        return float(command == f"put in bin {self.BINS[self.food]}"), True

    @property
    def state(self) -> object:
        return self.food


class Chain(World):
    """Six rooms in a row; in each another command leads on and one throws back. Paid at the end."""

    ROOMS = ("cellar", "pantry", "kitchen", "hall", "study", "attic")
    ON = ("lift hatch", "pull lever", "turn key", "ring bell", "push book", "climb ladder")
    horizon = 24

    def begin(self, options: Info) -> None:
        self.at = 0

    def text(self) -> str:
        room = "roof" if self.at == len(self.ROOMS) else self.ROOMS[self.at]
        return f"You stand in the {room}. There is dust everywhere."

    def admissible(self) -> list[str]:
        return list(self.ON)

    def do(self, command: str) -> tuple[float, bool]:
        if command == self.ON[self.at]:
            self.at += 1
        elif command == self.ON[(self.at + 2) % len(self.ON)]:
            self.at = 0
        done = self.at == len(self.ROOMS)
        return float(done), done

    @property
    def state(self) -> object:
        return self.at


class Errands(World):
    """Three errands through the same two rooms: what is right for one fails the others."""

    RIGHT: ClassVar = {
        "water the plant": ("take can", "pour"),
        "feed the cat": ("take tin", "open"),
        "post the letter": ("take stamp", "drop"),
    }
    horizon = 6

    def begin(self, options: Info) -> None:
        self.errand = options.get("errand") or self.random.choice(list(self.RIGHT))
        self.held = ""

    def goal(self) -> str:
        return self.errand

    def right(self) -> tuple[str, str]:
        return self.RIGHT[self.errand]

    def text(self) -> str:
        return (
            f"You are in the garden room, holding the {self.held}."
            if self.held
            else "You are in the kitchen."
        )

    def admissible(self) -> list[str]:
        return ["pour", "open", "drop"] if self.held else ["take can", "take tin", "take stamp"]

    def do(self, command: str) -> tuple[float, bool]:
        if not self.held:
            self.held = command.removeprefix("take ")
            return 0.0, False
        thing, act = self.right()
        return float(command == act and thing == f"take {self.held}"), True

    @property
    def state(self) -> object:
        return self.errand, self.held


class ChangingErrands(Errands):
    """Errands; from episode 150 on the cat wants something else, the other two stay."""

    CHANGE = 150

    def right(self) -> tuple[str, str]:
        if self.errand == "feed the cat" and self.episode >= self.CHANGE:
            return "take can", "drop"
        return super().right()


class Caravan(World):
    """A choice by the time of day that works with .8; the next best with .6, the others with .3."""

    TIMES = ("dawn", "noon", "dusk", "night")
    ROADS = ("north", "south", "east", "west")
    TOLD = (
        "It is {}. The caravan asks for the way.",
        "The caravan is waiting, and it is {}.",
        "At {} a caravan stops.",
    )
    optimum = 0.8

    def begin(self, options: Info) -> None:
        self.time = self.random.randrange(len(self.TIMES))
        self.told = self.random.choice(self.TOLD)

    def text(self) -> str:
        return self.told.format(self.TIMES[self.time])

    def admissible(self) -> list[str]:
        return [f"send them by the {road} road" for road in self.ROADS]

    def do(self, command: str) -> tuple[float, bool]:
        turn = (self.admissible().index(command) - self.time) % len(self.ROADS)
        return float(self.random.random() < (0.8, 0.6, 0.3, 0.3)[turn]), True

    @property
    def state(self) -> object:
        return self.time


WORLDS = {
    "shelf": (Shelf, 200),
    "chain": (Chain, 150),
    "errands": (Errands, 150),
    "changing errands": (ChangingErrands, 300),
    "caravan": (Caravan, 400),
}
"""By name: the world, and how many episodes a run has."""
