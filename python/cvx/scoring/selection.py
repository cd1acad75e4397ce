"""Of what learned weights speak: of everything that could be recalled, or of what was."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from cvx.errors import InvalidParameterError
from cvx.scoring.logistic import Floats

SMALLEST_PROPENSITY = 0.02
"""Rarer draws count as if they had this chance: no sample outweighs fifty certain ones."""


class Selection(NamedTuple):
    """What kind of comparison weights rest on.

    Only what was retrieved and followed has an outcome. A ranking by one fixed score never shows
    what it ranks low, so weights learned from it compare what that score let through: a feature
    that all of it has in common looks useless. Where the order was sampled and the chance of each
    sample is known, weighting by its inverse makes up for that, within the candidates drawn from.
    Whom the agent follows is its own choice, and stays uncorrected.

    Attributes
    ----------
    kind : {"nothing", "retrieved only", "sampled"}
        What the samples allow.
    samples : int
        How many there are in the window.
    effective : float
        How many equally weighted ones they are worth (Kish); far below ``samples`` the
        correction rests on few of them.
    """

    kind: Literal["nothing", "retrieved only", "sampled"]
    samples: int
    effective: float

    def __str__(self) -> str:
        if self.kind == "nothing":
            return "nothing was learned"
        if self.kind == "sampled":
            return (
                f"compared with all candidates that were drawn from: {self.samples} samples, "
                f"weighted by inverse propensity, worth {self.effective:.0f}"
            )
        return (
            f"compared only among what was retrieved and followed ({self.samples} samples): says "
            "nothing of what was not retrieved; sample the order to learn that"
        )


def checked_propensities(propensities: Floats) -> Floats:
    """Refuse chances outside (0, 1]; NaN stands for an order that was not sampled."""
    wrong = propensities[~(np.isnan(propensities) | ((propensities > 0) & (propensities <= 1)))]
    if len(wrong):
        raise InvalidParameterError(
            f"propensity is {wrong[0]}: give the chance of each draw, in (0, 1], or NaN where the "
            "order was not sampled"
        )
    return propensities


def selected(propensities: Floats) -> tuple[Selection, Floats]:
    """Return of what samples speak, and their weights, with a mean of 1.

    Samples whose order was not sampled cannot be weighted beside those whose was: a single one
    makes all of them count alike.

    Parameters
    ----------
    propensities : ndarray of shape (n,)
        NaN where it is not known.

    References
    ----------
    Horvitz & Thompson 1952. Kish 1965, Survey sampling, 11.7.

    Examples
    --------
    >>> selection, weights = selected(np.array([0.1, 0.9]))
    >>> selection.kind, weights.round(2).tolist()
    ('sampled', [1.8, 0.2])
    """
    n = len(propensities)
    if not n:
        return Selection("nothing", 0, 0.0), np.ones(0)
    if np.isnan(propensities).any():
        return Selection("retrieved only", n, float(n)), np.ones(n)
    weights = 1.0 / np.maximum(propensities, SMALLEST_PROPENSITY)
    weights /= weights.mean()
    return Selection("sampled", n, float(n**2 / (weights**2).sum())), weights
