"""The protocol of a domain: its games and its demonstrations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from experiments.plans import Demonstrations
from experiments.textgames.game import Game
from experiments.textgames.reader import Policy

if TYPE_CHECKING:
    from experiments.harness.setup import Setup


@dataclass(slots=True)
class Material:
    """What one seed plays with.

    Attributes
    ----------
    demonstrations : sequence of (goal, steps)
        What every arm but ``none`` is shown.
    shown : list of str
        Names of the games that were demonstrated: none of them is among the others.
    games : sequence of Path
        Those to play and learn from, in the order of the seed.
    unseen : sequence of Path
        Those to measure on; empty unless the protocol measures.
    """

    demonstrations: Demonstrations
    shown: list[str]
    games: Sequence[Path]
    unseen: Sequence[Path] = field(default_factory=list)


class Domain(Protocol):
    """A kind of games. Workers get it pickled: keep it small."""

    @property
    def name(self) -> str:
        """A word for folders and files."""
        ...

    @property
    def real(self) -> bool:
        """Whether the games are those of a release; else they are made for the experiment."""
        ...

    def check(self, setup: Setup) -> None:
        """Raise a CvxError for what cannot be played."""
        ...

    def prepare(self, setup: Setup, seed: int) -> Material:
        """Make or find the games and the winning demonstrations of a seed."""
        ...

    def open(self, game: Path, setup: Setup) -> AbstractContextManager[Game]:
        """Open a game to be played once."""
        ...

    def task_type_of(self, game: Path) -> str:
        """Return the kind of task of a game; players are not told."""
        ...

    def name_of(self, game: Path) -> str:
        """Return a name that equal games have in common, whatever folder they are in."""
        ...

    def policy(self, setup: Setup, seed: int) -> Policy:
        """Return the language model of a setup, to play these games.

        Raises
        ------
        InvalidInputError
            None can.
        """
        ...

    def describe(self) -> Mapping[str, Any]:
        """Return what it is made of as plain values, for the record of a run."""
        ...

    def words(self, setup: Setup) -> tuple[str, str]:
        """Say which games are played, and what is demonstrated, as it stands beside figures."""
        ...
