"""The arms that play the small worlds: the memory, the learner without a part, baselines."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from cvx.learn.advisor import Parts
from cvx.learn.decay import BlindDecay, ContextAwareDecay
from experiments.worlds.learners import (
    Advised,
    Agent,
    Baseline,
    BlameNear,
    CopyWins,
    KernelPosterior,
    LinUCB,
    Remembering,
    Table,
)
from experiments.worlds.routes import Routed


class Arm(NamedTuple):
    """Who plays, by what it is called in tables, and of which of them it is part."""

    title: str
    make: Callable[[int], Agent]
    table: str = "agents"


def _without(**changed: Any) -> Callable[[int], Agent]:
    return lambda seed: Advised(seed, replace(Parts(), **changed))


def _routed(process: bool = True, **asked: bool) -> Callable[[int], Agent]:
    return lambda seed: Routed(seed, Parts(process=process), **asked)


_NO_GATE = math.inf

ARMS: dict[str, Arm] = {
    "cvx": Arm("memory.episode(...).advise, the default configuration", Remembering),
    "learner": Arm("its learner alone, all parts", _without()),
    "no planning": Arm("no values through stored transitions", _without(planning=False), "parts"),
    "no process": Arm("no prior from like states", _without(process=False), "parts"),
    "and regions": Arm("and a region model asked", _routed(regions=True), "routes"),
    "regions only": Arm(
        "a region model in the place of like states", _routed(False, regions=True), "routes"
    ),
    "and near": Arm("and near memories asked, by the loop's score", _routed(near=True), "routes"),
    "near only": Arm(
        "near memories in the place of like states", _routed(False, near=True), "routes"
    ),
    "and edges": Arm("and near memories, along typed edges", _routed(edges=True), "routes"),
    "equal words": Arm("no learned relevance of words", _without(relevance=False), "parts"),
    "no names": Arm("not asking what a text names", _without(names=False), "parts"),
    "no gate": Arm("no gate for change", _without(gate=_NO_GATE), "parts"),
    "no others": Arm(
        "each goal a task of its own, and nothing from other tasks",
        lambda seed: Advised(seed, Parts(others=False), apart=True),
        "parts",
    ),
    "no draws": Arm("counted outcomes taken as they are", _without(thompson=False), "parts"),
    "context-aware decay": Arm(
        "instead of the gate: what was followed in the same task fades",
        _without(gate=_NO_GATE, decay=ContextAwareDecay()),
        "parts",
    ),
    "blind decay": Arm(
        "instead of the gate: everything fades after a failure",
        _without(gate=_NO_GATE, decay=BlindDecay()),
        "parts",
    ),
    "blame near": Arm(
        "instead of the gate: everything of the task fades",
        _without(gate=_NO_GATE, decay=BlameNear()),
        "parts",
    ),
    "goals apart": Arm(
        "each goal is a task of its own", lambda seed: Advised(seed, Parts(), apart=True), "parts"
    ),
    "shuffled": Arm(
        "rewards of random earlier steps",
        lambda seed: Advised(seed, Parts(), shuffled=True),
        "parts",
    ),
    "random": Arm("any command", Baseline),
    "copy wins": Arm("copy the nearest step of a won episode", CopyWins),
    "LinUCB": Arm("ridge regression on the vector with optimism", LinUCB),
    "kernel": Arm("Thompson sampling over near episodes", KernelPosterior),
    "table": Arm("Thompson sampling and planning on the exact state (privileged)", Table),
}
"""Whoever can play, by name: agents; the learner without a part; with a part of RFC-013 more."""
