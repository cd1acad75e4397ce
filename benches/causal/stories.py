"""Authored sentences for the crisis plots."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benches.causal.generated_crises import Plot, Role

_FILE = Path(__file__).with_name("stories.toml")


@dataclass(frozen=True)
class Told:
    """A plot in words.

    Attributes
    ----------
    events, memories : tuple of str
        In the order of the plot.
    question : str
        What the council asks.
    """

    events: tuple[str, ...]
    memories: tuple[str, ...]
    question: str


class Stories:
    """The authored sentences, filled in anew for each plot.

    Parameters
    ----------
    names : sequence of str, optional
        The stories to draw from; all of them by default.
    """

    def __init__(self, names: Sequence[str] | None = None) -> None:
        told = tomllib.loads(_FILE.read_text("utf-8"))
        self._common: dict[str, Any] = told
        self.stories = [story for story in told["story"] if names is None or story["name"] in names]

    def tell(self, plot: Plot, rng: np.random.Generator) -> Told:
        """Write a plot down.

        Parameters
        ----------
        plot : Plot
            What happens.
        rng : numpy.random.Generator
            Chooses the story, the sentences, the people and the places.
        """
        story = self.stories[rng.integers(len(self.stories))]
        chain = story["causes"][-plot.crisis :]
        spare = {
            Role.DECOY: _shuffled(self._common["decoys"], rng),
            Role.STRANGER: _shuffled(self._common["strangers"], rng),
        }
        events, witnesses = [], []
        for at, role in enumerate(plot.event_roles):
            if role is Role.CAUSE:
                events.append(chain[at]["event"])
                witnesses.append(self._filled(_one(chain[at]["witness"], rng), rng))
            elif role in spare:
                pair = spare[role].pop()
                where = _one(self._common["where"], rng)
                events.append(pair["event"].replace("{where}", where))
                told = pair["witness"].replace("{where}", where)
                witnesses.append(self._filled(told, rng))
            else:
                events.append(story["crisis" if role is Role.CRISIS else "echo"])
                witnesses.append("")
        semantic = _shuffled(story["semantic"], rng)
        memories = []
        for role, event in zip(plot.memory_roles, plot.about, strict=True):
            if event >= 0:
                memories.append(witnesses[event])
            elif role is Role.SEMANTIC:
                memories.append(self._filled(semantic.pop(), rng))
            elif role is Role.DISTRACTOR:
                memories.append(self._filled(_one(story["distractors"], rng), rng))
            else:
                memories.append(self._filled(_one(self._common["everyday"], rng), rng))
        return Told(tuple(events), tuple(memories), story["question"])

    def _filled(self, sentence: str, rng: np.random.Generator) -> str:
        who, where = _one(self._common["who"], rng), _one(self._common["where"], rng)
        return sentence.replace("{who}", who).replace("{where}", where)


def _one(choices: Sequence[Any], rng: np.random.Generator) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _shuffled(choices: Sequence[Any], rng: np.random.Generator) -> list[Any]:
    return [choices[at] for at in rng.permutation(len(choices))]
