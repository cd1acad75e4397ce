"""The user's own configuration: which embedders a store may name, and whose key is whose.

A store, or an export, may come from somebody else, and what it says decides nothing about the
network. The file is ``cvx/config.toml`` below ``$XDG_CONFIG_HOME`` (or ``~/.config``); the
environment variable ``CVX_CONFIG`` names another one::

    embedders = ["ollama:nomic-embed-text", "openai:bge-m3@https://models.example/v1"]

    [keys]
    "https://models.example" = "MODELS_KEY"    # the environment variable that holds its key
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cvx.errors import InvalidInputError

PLACE = "CVX_CONFIG"
"""The environment variable that names the file."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What the user allows.

    Parameters
    ----------
    embedders : frozenset of str
        Lines, as ``--embedder`` takes them, that a store may name.
    keys : mapping of str to str
        By origin, such as ``https://models.example``, the environment variable with its key.
    """

    embedders: frozenset[str] = frozenset()
    keys: Mapping[str, str] = field(default_factory=dict)


def place() -> Path:
    """Return where the user's configuration is, or would be."""
    named = os.environ.get(PLACE)
    if named:
        return Path(named).expanduser()
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "cvx" / "config.toml"


def configuration() -> Configuration:
    """Read the user's configuration; an empty one where there is no file.

    Raises
    ------
    InvalidInputError
        The file cannot be read, or says something else than it may.
    """
    path = place()
    try:
        told: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Configuration()
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{path} cannot be read ({error}): mend or remove it") from error
    embedders, keys = told.pop("embedders", []), told.pop("keys", {})
    lines = isinstance(embedders, list) and all(isinstance(one, str) for one in embedders)
    bound = isinstance(keys, dict) and all(isinstance(one, str) for one in keys.values())
    if told or not lines or not bound:
        raise InvalidInputError(
            f"{path} holds {', '.join(told) or 'a value of another type'}: give embedders, a list "
            "of strings, and [keys], strings by origin, and nothing else"
        )
    return Configuration(frozenset(embedders), keys)
