"""Compares fusion rules: how many relevant memories each finds over many crises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from benches.causal.generated_crises import Recipe
from benches.causal.known_rules import Given, Rule, given
from benches.causal.scenarios import Encoder, scenario


class Found(NamedTuple):
    """Means over scenarios.

    Attributes
    ----------
    at5, at10 : float
        Recall of the gold memories among the first 5 and 10; at most 5 or 10 can count.
    root : float
        Mean place of the root cause's witness; 1 is the first.
    in_ten : float
        Share of scenarios in which it is among the first ten.
    """

    at5: float
    at10: float
    root: float
    in_ten: float


def cases(recipe: Recipe, encoder: Encoder, seeds: Sequence[int]) -> list[Given]:
    """Make the scenarios once, for all rules."""
    return [given(scenario(recipe, encoder, seed)) for seed in seeds]


def measured(rule: Rule, over: Sequence[Given]) -> Found:
    """Run a rule over scenarios."""
    rows = []
    for case in over:
        ranking, plot = rule(case), case.scenario.plot
        gold = plot.gold
        rows.append(
            (
                len(gold & set(ranking[:5])) / min(len(gold), 5),
                len(gold & set(ranking[:10])) / min(len(gold), 10),
                ranking.index(plot.root) + 1,
                ranking.index(plot.root) < 10,
            )
        )
    return Found(*np.mean(rows, axis=0).tolist())


def table(rules: Mapping[str, Rule], over: Sequence[Given]) -> dict[str, Found]:
    """Run every rule over the same scenarios."""
    return {name: measured(rule, over) for name, rule in rules.items()}
