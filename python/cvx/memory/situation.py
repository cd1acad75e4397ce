"""Recalls what a character needs before its turn: who is there, where, its goals, what mattered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cvx.arguments import a_share, checked, one_of, whole
from cvx.errors import InvalidInputError
from cvx.memory.memory import Memory
from cvx.memory.recall_verbs import RECALL
from cvx.recall import Context, Floor, Pipeline, Weighting, by_rank
from cvx.recall.sources import Recent
from cvx.types import Cue, Hit


@dataclass(frozen=True, slots=True)
class Situation:
    """Where an agent finds itself.

    Parameters
    ----------
    characters : tuple of str
        Who is there.
    location : str
        Where.
    goals : tuple of str
        What it is after.
    turn : int, optional
        Number of the turn.
    """

    characters: tuple[str, ...] = ()
    location: str = ""
    goals: tuple[str, ...] = ()
    turn: int | None = None

    def parts(self) -> dict[str, str]:
        """Return what is asked about each, by name."""
        parts = {f"character {name}": f"Who is {name}?" for name in self.characters}
        if self.location:
            parts["location"] = self.location
        return {**parts, **{f"goal {number}": goal for number, goal in enumerate(self.goals, 1)}}


@checked(
    situation=one_of(Situation, called="a Situation"),
    budget_tokens=whole(0),
    k=RECALL["k"],
    each=whole(1),
    least_salience=a_share,
)
def situation_context(
    memory: Memory,
    situation: Situation,
    budget_tokens: int = 512,
    *,
    k: int = 10,
    each: int = 3,
    least_salience: float = 0.7,
) -> Context:
    """Recall who is there, where it is, what the goals are, and what mattered lately.

    Parameters
    ----------
    memory : Memory
        Where to look, bound to whoever asks (``Memory.within``).
    situation : Situation
        What the agent sees of its world.
    budget_tokens : int, default 512
        Room in the prompt.
    k : int, default 10
        How many memories at the most.
    each : int, default 3
        How many for every character, the location and every goal.
    least_salience : float, default 0.7
        What counts as having mattered, in [0, 1]; the newest ``each`` of them come along.

    Returns
    -------
    Context
        As of ``context``; its trace names each part as a source.

    Raises
    ------
    InvalidInputError
        Nothing to go by, ``each`` below 1, or a salience outside [0, 1].
    """
    parts = situation.parts()
    if not parts:
        raise InvalidInputError("the situation is empty: give characters, location or goals")
    ask = partial(_part, memory, each)
    sources: dict[str, Any] = {name: partial(ask, text) for name, text in parts.items()}
    sources["lately"] = Recent(each, least_salience)
    plan = Pipeline(
        sources=sources,
        fusion=by_rank(),
        weighting=Weighting(dict.fromkeys(sources, 1.0)),
        floor=Floor(similarity=None),
        serving=replace(memory.learning.pipeline.serving),
        timeout_s=memory.learning.pipeline.timeout_s,
    )
    cue = Cue(text="; ".join(parts.values()), place=situation.turn)
    return memory.context(cue, budget_tokens, k=k, pipeline=plan)


def _part(memory: Memory, each: int, text: str, cue: Cue) -> list[Hit]:
    return memory.learning.ranked(Cue(text=text, timestamp=cue.timestamp), each)
