"""One game step by step: what was advised, by which episodes, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cvx.memory import Option
from experiments.plans import Choices, Observation
from experiments.textgames.game import Game, Player

_TOLD = 3  # options of each advice


class Step(NamedTuple):
    """A line of what happened: what was asked or done, and what came of it."""

    what: str
    came: str


class _Watched:
    def __init__(self, game: Game, steps: list[Step]) -> None:
        self._game, self._steps = game, steps

    def reset(self) -> Observation:
        seen = self._game.reset()
        self._steps.append(Step(f"The goal: {seen.goal}", seen.text))
        return seen

    def step(self, command: str) -> tuple[Observation, float, bool]:
        seen, reward, over = self._game.step(command)
        ends = " The end." * over
        self._steps.append(Step(f"> {command}", f"{seen.text} Reward {reward:.2g}.{ends}"))
        return seen, reward, over


def watch(player: Player, choices: Choices, game: Game) -> list[Step]:
    """Return what happens in a game that a player plays by advice."""
    steps: list[Step] = []

    def told(task: str, state: str, options: Iterable[Option]) -> None:
        best = sorted(options, key=lambda option: -option.value)[:_TOLD]
        steps.append(Step(f"Advice on {task!r}, for {state!r}", "\n".join(map(_said, best))))

    choices.told = told
    try:
        player.play(_Watched(game, steps))
    finally:
        choices.told = None
    return steps


def _said(option: Option) -> str:
    events = [hit.event for hit in option.hits if hit.event is not None]
    rests = ", ".join(
        f"{e.episode_id} (ended {e.reward:.2g})" for e in events if e.reward is not None
    )
    chance = f"{option.value:.0%} ({option.low:.0%} to {option.high:.0%})"
    known = (
        f"{option.trials} trials here" if option.trials else f"never tried here, by {option.basis}"
    )
    return f"{option.action}: {chance}, {known}" + (f"; latest episodes {rests}" if rests else "")
