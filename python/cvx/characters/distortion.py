"""Distorted memory: changes what a character stores, recalls or associates, and labels it so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from cvx.recall import Renderer
from cvx.render.block import Entry
from cvx.types import Event, Vector

SOURCE = "distortion"
"""The source of what was distorted as it was formed."""


@runtime_checkable
class DistortionFilter(Protocol):
    """Changes what a memory says."""

    def apply(self, text: str) -> str:
        """Return the text as the character takes it."""


@runtime_checkable
class Inverter(Protocol):
    """Turns a vector back into a text, as a vec2text model does; cvx brings none."""

    def invert(self, vector: Vector) -> str:
        """Return a text that would be embedded there."""


@dataclass(frozen=True, slots=True)
class Distortion:
    """How one character's memory deceives it.

    Parameters
    ----------
    formation : DistortionFilter, optional
        What is heard is remembered as this makes it; the original is kept beside it, under
        ``metadata["original"]``, and the source of the memory is "distortion".
    retrieval : DistortionFilter, optional
        What is called up is shown as this makes it, and labelled; nothing is stored.
    association : callable, optional
        From two texts to whether the one calls up the other: what is heard is linked at once to
        those of the memories nearest to it that it says so of.

    Examples
    --------
    >>> class Gloom:
    ...     def apply(self, text):
    ...         return text.replace("lovely", "tolerable")
    >>> Distortion(retrieval=Gloom()).recalled("a lovely evening")
    'a tolerable evening'
    """

    formation: DistortionFilter | None = None
    retrieval: DistortionFilter | None = None
    association: Callable[[str, str], bool] | None = None

    def formed(self, text: str) -> str:
        """Return the distorted form of a text when it is stored."""
        return text if self.formation is None else self.formation.apply(text)

    def recalled(self, text: str) -> str:
        """Return the distorted form of a text when it is recalled."""
        return text if self.retrieval is None else self.retrieval.apply(text)


@dataclass(frozen=True, slots=True)
class Telling(Renderer):
    """Renders a character's memories: distorted, labelled as such, each line once.

    Parameters
    ----------
    distortion : Distortion
        Of whose memory it is.
    """

    distortion: Distortion = Distortion()

    def entry(self, event: Event, text: str) -> Entry:
        """Return a memory of which this text is shown."""
        told = self.distortion.recalled(text)
        shown = Event(
            text=event.text,
            timestamp=event.timestamp,
            kind=event.kind,
            # A line of dialogue says itself who spoke.
            metadata={name: v for name, v in event.metadata.items() if name != "speaker"},
            episode_id=event.episode_id,
            tags=event.tags,
            source=event.source if told == text else SOURCE,
            trust=event.trust,
        )
        # Named, since a dataclass with slots is another class than the one ``super`` looks for.
        return Renderer.entry(self, shown, told)
