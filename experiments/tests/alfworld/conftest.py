"""Generated games that several tests play."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("textworld.envs.pddl")
pytest.importorskip("alfworld")

from experiments.alfworld.generator import TASK_TYPES, generate_games

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for translations and demonstrations, empty at the start."""
    return tmp_path_factory.mktemp("alfworld-cache")


@pytest.fixture(scope="session")
def games(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two games of every task type, in the order of `TASK_TYPES`."""
    return generate_games(2 * len(TASK_TYPES), 11, tmp_path_factory.mktemp("games"))
