"""The kinds of cooking game that are played, from one room and one dish to many of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Level:
    """Settings of ``tw-make tw-cooking``.

    Parameters
    ----------
    name : str
        By which the level is reported.
    recipe : int
        Ingredients of the recipe, all of them to be found.
    go : {1, 6, 9, 12}
        Rooms.
    cook, cut, open : bool, default False
        Whether ingredients must be cooked, be cut, and whether doors and containers are closed.
    """

    name: str
    recipe: int
    go: int
    cook: bool = False
    cut: bool = False
    open: bool = False

    def settings(self, seed: int, split: str) -> dict[str, Any]:
        """Return them as the generator reads them."""
        return {
            "recipe": self.recipe, "take": self.recipe, "go": self.go, "cook": self.cook,
            "cut": self.cut, "open": self.open, "drop": False,
            "recipe_seed": seed, "split": split,
        }  # fmt: skip


LEVELS = (
    Level("cook", recipe=1, go=1, cook=True),
    Level("cut", recipe=2, go=1, cut=True, open=True),
    Level("kitchen", recipe=3, go=1, cook=True, cut=True, open=True),
    Level("house", recipe=2, go=6, cook=True, cut=True, open=True),
    Level("feast", recipe=3, go=6, cook=True, cut=True, open=True),
    Level("garden", recipe=2, go=9, cook=True, cut=True, open=True),
)
