"""Links that nobody has drawn: what came shortly before, and reads alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cvx.causal.events import CausalEvent, Link
from cvx.causal.vectors import unit
from cvx.errors import InvalidParameterError


@dataclass(frozen=True, slots=True)
class LinkRule:
    """How nearness in time and in meaning become the weight of a link.

    Parameters
    ----------
    time_share, meaning_share : float, default 0.5
        What each counts; at least 0, together at most 1.
    pace : float, default 0.05
        Nearness in time falls by exp(-pace) a tick; at least 0.
    bound : float, default 0.3
        From here up a link is drawn.
    """

    time_share: float = 0.5
    meaning_share: float = 0.5
    pace: float = 0.05
    bound: float = 0.3

    def __post_init__(self) -> None:
        shares = self.time_share, self.meaning_share
        if min(shares) < 0.0 or not sum(shares) <= 1.0:
            raise InvalidParameterError(f"shares are {shares}: give two from 0 up, together <= 1")
        if not self.pace >= 0.0:
            raise InvalidParameterError(f"pace is {self.pace}: give at least 0")


def proximity_links(
    effect: CausalEvent,
    before: Sequence[CausalEvent],
    rule: LinkRule,
    semantic_threshold: float | None = None,
) -> list[Link]:
    """Return links from earlier events to an effect, by nearness in time and meaning.

    Parameters
    ----------
    effect : CausalEvent
        What is to be explained.
    before : sequence of CausalEvent
        What may have led to it; what did not happen earlier is left out.
    rule : LinkRule
    semantic_threshold : float, optional
        Leave out what is less similar.

    Examples
    --------
    >>> now = CausalEvent("flood", "a flood", 12)
    >>> made = proximity_links(now, [CausalEvent("rain", "rain", 10)], LinkRule())
    >>> made[0].weight == round(0.5 * math.exp(-0.1), 3)
    True
    """
    earlier = [event for event in before if event.tick < effect.tick and event.id != effect.id]
    made = []
    for cause, alike in zip(earlier, _likeness(effect, earlier), strict=True):
        if semantic_threshold is not None and alike < semantic_threshold:
            continue
        near = math.exp(-rule.pace * (effect.tick - cause.tick))
        weight = rule.time_share * near + rule.meaning_share * max(0.0, alike)
        if weight >= rule.bound:
            note = f"{effect.tick - cause.tick} earlier, similarity {alike:.2f}"
            made.append(Link(cause.id, effect.id, min(1.0, round(weight, 3)), evidence=note))
    return made


def _likeness(effect: CausalEvent, earlier: Sequence[CausalEvent]) -> list[float]:
    """Cosine of each with the effect; 0 where one of the two has no vector."""
    out = [0.0] * len(earlier)
    if effect.embedding is None:
        return out
    at = [place for place, event in enumerate(earlier) if event.embedding is not None]
    if at:
        rows = np.stack([unit(_given(earlier[place])) for place in at])
        for place, value in zip(at, (rows @ unit(effect.embedding)).tolist(), strict=True):
            out[place] = value
    return out


def _given(event: CausalEvent) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    assert event.embedding is not None
    return event.embedding
