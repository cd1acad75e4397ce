"""Cooking games that several tests play."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("textworld")

from experiments.cooking.generator import games_of


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for games, empty at the start."""
    return tmp_path_factory.mktemp("cooking-cache")


@pytest.fixture(scope="session")
def game(cache: Path) -> Path:
    """A game of one dish in one room."""
    return games_of(cache, 1, 7, "train")[0]
