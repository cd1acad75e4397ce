"""Generates crisis scenarios with vectors from a plot and an encoder.

Two kinds of encoder: `Geometry` draws vectors whose similarities are set, in any dimension and
with any share of a direction common to all texts (real encoders have one); `Told` writes
sentences for every event and memory (`benches.causal.stories`) and embeds them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from benches.causal.generated_crises import Plot, Recipe, Role, drawn
from benches.causal.stories import Stories

Rows = npt.NDArray[np.float32]
Direction = npt.NDArray[np.float64]


class Encoder(Protocol):
    """What gives a plot its vectors."""

    @property
    def name(self) -> str:
        """What the tables call it."""

    def encode(self, plot: Plot, rng: np.random.Generator) -> tuple[Rows, Rows, Rows]:
        """Return the vectors of the events, of the memories and of the question, norm 1."""


@dataclass(frozen=True)
class Scenario:
    """One crisis, ready to be asked about.

    Attributes
    ----------
    plot : Plot
        Roles, times, edges, importances: the truth, of which a rule sees only some.
    events : ndarray of shape (e, dim), float32
        Rows of norm 1.
    memories : ndarray of shape (n, dim), float32
        Rows of norm 1.
    question : ndarray of shape (dim,), float32
        The crisis as it is asked about.
    """

    plot: Plot
    events: Rows
    memories: Rows
    question: Rows


def scenario(recipe: Recipe, encoder: Encoder, seed: int) -> Scenario:
    """Make one scenario; the same seed gives the same one.

    Parameters
    ----------
    recipe : Recipe
        How many of what.
    encoder : Encoder
        Where the vectors come from.
    seed : int
        The plot and the vectors draw from separate streams of it, so that two encoders see the
        same plots.
    """
    plotting, encoding = np.random.default_rng(seed).spawn(2)
    plot = drawn(recipe, plotting)
    return Scenario(plot, *encoder.encode(plot, encoding))


@dataclass(frozen=True)
class Geometry:
    """Vectors with set similarities.

    Every subject is a random direction; a text about it lies at a set cosine from it. A cause
    leans on its effect by `drift`, so that of a chain of three only the direct cause resembles
    the crisis at all.

    Attributes
    ----------
    dim : int, default 64
        Dimension.
    common : float, default 0.0
        Cosine that two unrelated texts have, 0 to 1.
    witness : tuple of float, default (0.8, 0.95)
        Cosine of a witness to the event.
    semantic : tuple of float, default (0.88, 0.94)
        Cosine of semantic evidence to the subject of the crisis.
    distractor : tuple of float, default (0.55, 0.8)
        Cosine of a look-alike to the subject of the crisis.
    drift : float, default 0.3
        Cosine of a cause's subject to that of its effect.
    """

    dim: int = 64
    common: float = 0.0
    witness: tuple[float, float] = (0.8, 0.95)
    semantic: tuple[float, float] = (0.88, 0.94)
    distractor: tuple[float, float] = (0.55, 0.8)
    drift: float = 0.3

    @property
    def name(self) -> str:
        """What the tables call it."""
        return f"synthetic {self.dim}" + (f" +{self.common:g}" if self.common else "")

    def encode(self, plot: Plot, rng: np.random.Generator) -> tuple[Rows, Rows, Rows]:
        """Draw the vectors of a plot."""
        crisis = plot.crisis
        subjects = [_direction(self.dim, rng) for _ in plot.event_roles]
        for at in range(crisis - 1, -1, -1):
            subjects[at] = _near(subjects[at + 1], self.drift, rng)
        surface = subjects[crisis]
        events = [
            _near(surface if role in (Role.CRISIS, Role.ECHO) else subject, 0.95, rng)
            for role, subject in zip(plot.event_roles, subjects, strict=True)
        ]
        everyday = [_direction(self.dim, rng) for _ in range(8)]
        memories = []
        for role, event in zip(plot.memory_roles, plot.about, strict=True):
            if event >= 0:
                memories.append(_near(events[event], rng.uniform(*self.witness), rng))
            elif role is Role.SEMANTIC:
                memories.append(_near(surface, rng.uniform(*self.semantic), rng))
            elif role is Role.DISTRACTOR:
                memories.append(_near(surface, rng.uniform(*self.distractor), rng))
            else:
                memories.append(_near(everyday[rng.integers(8)], rng.uniform(0.5, 0.9), rng))
        rows = np.stack([*events, *memories, _near(surface, 0.95, rng)])
        if self.common:
            shared = _direction(self.dim, rng)
            rows = np.sqrt(1 - self.common) * rows + np.sqrt(self.common) * shared
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows.astype(np.float32)
        return rows[: len(events)], rows[len(events) : -1], rows[-1]


def _direction(dim: int, rng: np.random.Generator) -> Direction:
    row: Direction = rng.normal(size=dim)
    row /= np.linalg.norm(row)
    return row


def _near(subject: Direction, cosine: float, rng: np.random.Generator) -> Direction:
    """Draw a direction at exactly this cosine from another."""
    aside: Direction = rng.normal(size=len(subject))
    aside -= (aside @ subject) * subject
    aside /= np.linalg.norm(aside)
    return np.asarray(cosine * subject + np.sqrt(1 - cosine**2) * aside)


@dataclass(frozen=True)
class Told:
    """Sentences about every event and memory, embedded.

    Attributes
    ----------
    name : str
        What the tables call it.
    embed : callable
        Texts to rows of norm 1.
    stories : Stories
        Where the sentences come from.
    """

    name: str
    embed: Callable[[Sequence[str]], Rows]
    stories: Stories

    def encode(self, plot: Plot, rng: np.random.Generator) -> tuple[Rows, Rows, Rows]:
        """Write the plot down and embed it."""
        told = self.stories.tell(plot, rng)
        rows = self.embed([*told.events, *told.memories, told.question])
        return rows[: len(told.events)], rows[len(told.events) : -1], rows[-1]
