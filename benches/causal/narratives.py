"""Checks narratives on held-out logs: guesses must be told as guesses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benches.causal.generated_logs import Log
from benches.causal.report import Figure, Report
from cvx.causal import CausalGraph
from cvx.causal.fusion import Floats
from cvx.types import Edge

NARRATIVES, STATED = 30, 0.3
"""So many are told, of logs in which somebody stated or confirmed this share of the true links."""


class Judged(NamedTuple):
    """A log with what a model that never saw its stories says of its pairs.

    Attributes
    ----------
    log : Log
    pairs : sequence of (int, int)
        (cause, effect), places in the log.
    chances : ndarray of shape (len(pairs),), float64
    """

    log: Log
    pairs: Sequence[tuple[int, int]]
    chances: Floats


def run(report: Report, family: str, judged: Sequence[Judged], *, show: bool = False) -> None:
    """Tell stories and count what is told as what.

    Parameters
    ----------
    report : Report
        Where the figures go.
    family : str
        Of the embedder.
    judged : sequence of Judged
        Logs of stories; the narratives are drawn from all of them in turn.
    show : bool, default False
        Print the narratives: those of the project's own stories alone.
    """
    rng = np.random.default_rng(0)
    told = links = guesses = false = as_fact = hedged = 0
    for one in judged:
        graph = CausalGraph(effect_first="allow")
        for at, (text, time) in enumerate(zip(one.log.texts, one.log.times, strict=True)):
            graph.add_event(at, text, time * 1_000_000 + _DAY)
        known = {pair for pair in sorted(one.log.links) if rng.random() < STATED}
        states = {pair: ("stated", "confirmed")[int(rng.integers(2))] for pair in known}
        graph.data.put([Edge(*pair, state=state) for pair, state in states.items()])
        drawn = {
            pair: chance
            for pair, chance in zip(one.pairs, one.chances.tolist(), strict=True)
            if chance >= 0.5 and pair not in known
        }
        graph.data.put([Edge(*pair, weight=p, state="judged") for pair, p in drawn.items()])
        ends = sorted({b for _, b in drawn} | {b for _, b in known})
        for effect in rng.permutation(ends)[:4].tolist():
            if told == NARRATIVES:
                break
            story = graph.story(effect, after=0)
            text = story.narrative()
            if show:
                print("-", text)
            judges = [link for link in story.causes if link.state == "judged"]
            told, links = told + 1, links + len(story.causes)
            guesses += len(judges)
            false += sum((link.cause, link.effect) not in one.log.links for link in judges)
            as_fact += max(0, len(judges) - text.count("probably"))
            hedged += max(0, text.count("probably") - len(judges))
    report.section(
        f"narratives of logs not learned from, {family} embedder",
        f"{STATED:.0%} of the true links stated or confirmed, the rest drawn from .5 up",
    )
    report.row(
        "narratives",
        Figure("told", float(told)),
        Figure("links", float(links)),
        Figure("guesses", float(guesses)),
        Figure("false ones, as probable", float(false)),
        Figure("guesses told as facts", float(as_fact), 0.0, lower=True),
        Figure("facts hedged", float(hedged), 0.0, lower=True),
    )


_DAY = 1_764_000_000_000_000
