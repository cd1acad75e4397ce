"""The installed alfworld package: where it is, and how it is imported without side effects."""

from __future__ import annotations

import importlib
import importlib.util
import os
from functools import cache
from pathlib import Path
from typing import Any

from experiments.errors import GameError


@cache
def package_folder() -> Path:
    """Return the folder of the installed alfworld package.

    Raises
    ------
    GameError
        If it is not installed.
    """
    spec = importlib.util.find_spec("alfworld")
    if spec is None or not spec.submodule_search_locations:
        raise GameError(
            "the alfworld package is not installed: pip install alfworld 'textworld[pddl]'"
        )
    return Path(spec.submodule_search_locations[0])


@cache
def alfworld_module(name: str) -> Any:
    """Import a module of alfworld, for example ``gen.constants``.

    On import alfworld creates ``~/.cache/alfworld`` unless ``ALFWORLD_DATA`` names a folder, and
    then sets the variable. Both are kept from happening: cvx needs neither.
    """
    folder = package_folder()
    before = os.environ.get("ALFWORLD_DATA")
    os.environ["ALFWORLD_DATA"] = str(folder / "data")
    try:
        return importlib.import_module(f"alfworld.{name}")
    finally:
        if before is None:
            del os.environ["ALFWORLD_DATA"]
        else:
            os.environ["ALFWORLD_DATA"] = before
