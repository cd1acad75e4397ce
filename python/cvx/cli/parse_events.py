"""Parses command-line arguments and files into what ``Memory.add_many`` takes."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from cvx.errors import InvalidInputError
from cvx.integrations.migration import listed, time_of
from cvx.validation import DEEPEST

_NAMES = {"time": "timestamp", "entity_id": "entity", "effect_text": "text"}
"""Other names that exports and other programs give to the same; an id is given by the store."""
_PLACE = re.compile(r"event ([0-9]{1,9}) of those given: ")


def from_options(pairs: Iterable[str]) -> dict[str, Any]:
    """Return metadata from ``key=value``; a value that is JSON is taken as such.

    Raises
    ------
    typer.BadParameter
        There is no ``=``, or JSON that is nested too deep.

    Examples
    --------
    >>> from_options(["room=kitchen", "floor=2"])
    {'room': 'kitchen', 'floor': 2}
    """
    out = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise typer.BadParameter(f"--metadata {pair!r}: give key=value")
        try:
            out[key] = json.loads(value)
        except RecursionError:
            raise typer.BadParameter(
                f"--metadata {pair[:40]!r}...: nest it at most {DEEPEST} deep"
            ) from None
        except ValueError:
            out[key] = value
    return out


def read_rows(
    file: Path | None, text: str | None, given: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what is to be remembered, and the place of each in the file.

    Parameters
    ----------
    file : Path, optional
        JSON Lines, "-" for stdin; without it ``text`` is the one event, "-" for stdin.
    text : str, optional
        What is to be remembered.
    given : mapping
        What lines leave out.

    Raises
    ------
    InvalidInputError
        A line that is no object; the message names it.
    FileError
        The file cannot be read.
    """
    if file is None:
        words = sys.stdin.read().strip() if text == "-" else text
        return [{**given, "text": words}], ["the text"]
    rows, places = [], []
    for place, found in listed(file, text=sys.stdin.read() if str(file) == "-" else None):
        row = {_NAMES.get(name, name): value for name, value in found.items() if name != "id"}
        entity = row.get("entity")
        if isinstance(entity, int) and not isinstance(entity, bool) and entity >= 0:
            # As other programs number them, and as cvx did: 0 was nobody.
            row["entity"] = str(entity) if entity else None
        row["timestamp"] = time_of(place, row.get("timestamp"))
        # An entity that is null is nobody, whatever the option says.
        kept = given if "entity" not in row else {**given, "entity": None}
        rows.append({**kept, **{name: one for name, one in row.items() if one is not None}})
        places.append(place)
    if not rows:
        raise InvalidInputError(f"{file} has no line: give one JSON object a line")
    return rows, places


@contextmanager
def in_file(places: list[str]) -> Iterator[None]:
    """Let errors about one of several events name its place in the file."""
    try:
        yield
    except InvalidInputError as error:
        found = _PLACE.match(str(error))
        if found is None:
            raise
        said = str(error)[found.end() :]
        raise type(error)(f"{places[int(found[1])]}: {said}") from error
