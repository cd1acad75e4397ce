"""Quotations of an erased text: its words, and runs of them, that nothing else says."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator
from typing import Any

from cvx.store.fulltext import UNSPACED

_TOKEN = re.compile(rf"[^\W{UNSPACED}]+|[{UNSPACED}]")
_RUN = 4
"""So many words that follow each other are a quotation; a single one only if it can stand alone."""
_SHORTEST = 3
_PART = range(4, 33)
"""A word of so many characters, and no number, is found within a longer one, too."""


class Quotations:
    """The words of some texts and every four that follow each other, without those said elsewhere.

    A word of fewer than three letters, unless it holds a digit, is none by itself; a text of two or
    three words counts as a whole. Scripts without spaces are read by pairs of characters. Case and
    punctuation do not count.

    Parameters
    ----------
    texts : iterable of str
        What is to be erased.

    Examples
    --------
    >>> found = Quotations(["the code of the safe is 4711"])
    >>> found.drop_said_in(["is the code of the door new?", "a safe"])
    >>> [found.quoted_by(said) for said in ("Is it 4711?", "the code", "of the safe is")]
    [True, False, True]
    """

    def __init__(self, texts: Iterable[str]) -> None:
        found: set[str] = set()
        for text in texts:
            tokens = _tokens(text)
            found.update(run for run in _runs(tokens, set(tokens)) if _stands_alone(run))
            if 1 < len(tokens) < _RUN and len(" ".join(tokens)) > _SHORTEST + 1:
                found.add(" ".join(tokens))
        self._keep(found)

    def _keep(self, runs: set[str]) -> None:
        self._runs = runs
        # What may begin a run: most words of most texts need no further look.
        self._heads = {run.partition(" ")[0] for run in runs}
        words = (run for run in runs if " " not in run and not run.isdecimal())
        self._sizes = {len(word) for word in words if len(word) in _PART}

    def __bool__(self) -> bool:
        return bool(self._runs)

    def quoted_by(self, text: str) -> bool:
        """Return whether a text says any of it."""
        return bool(self._runs) and next(self._in(text), None) is not None

    def keep_said_in(self, texts: Iterable[str]) -> None:
        """Forget what none of these texts says."""
        self._keep({run for text in texts for run in self._in(text)})

    def drop_said_in(self, texts: Iterable[str]) -> None:
        """Forget what one of these texts, which are not erased, says as well."""
        left = set(self._runs)
        for text in texts:
            if not left:
                break
            left.difference_update(_runs(_tokens(text), self._heads))
        self._keep(left)

    def _in(self, text: str) -> Iterator[str]:
        tokens = _tokens(text)
        yield from (run for run in _runs(tokens, self._heads) if run in self._runs)
        for token in set(tokens):
            for size in self._sizes:
                parts = (token[at : at + size] for at in range(len(token) - size + 1))
                yield from (part for part in parts if part in self._runs and not part.isdecimal())


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.casefold())


def _runs(tokens: list[str], heads: Container[str]) -> Iterator[str]:
    for at, token in enumerate(tokens):
        if token in heads:
            for size in range(1, min(_RUN, len(tokens) - at) + 1):
                yield " ".join(tokens[at : at + size])


def _stands_alone(run: str) -> bool:
    words = run.split(" ")
    if len(words) == 1:
        return len(run) >= _SHORTEST or (len(run) > 1 and any(map(str.isdigit, run)))
    return len(words) == _RUN or all(len(word) == 1 and _UNSPACED.match(word) for word in words)


_UNSPACED = re.compile(f"[{UNSPACED}]")


def strings_of(value: Any, *, numbers: bool = False) -> Iterator[str]:
    """Yield every string of a value, keys and JSON within JSON included; with numbers, if asked.

    Examples
    --------
    >>> sorted(strings_of({"a": [1, "b"], "c": '{"d": 2.5}'}, numbers=True))
    ['1', '2.5', 'a', 'b', 'c', 'd', '{"d": 2.5}']
    """
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
            if part[:1] in ("{", "["):
                waiting.append(_parsed(part))
        elif isinstance(part, dict):
            for key, inner in part.items():
                waiting += (inner, key)
        elif isinstance(part, list | tuple):
            waiting += part
        elif numbers and isinstance(part, int | float) and not isinstance(part, bool):
            yield str(part)


def _parsed(text: str) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None
