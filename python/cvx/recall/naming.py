"""What the metadata of events says of names, titles and sessions."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W\d_]+)?")


def title_key(title: str) -> str:
    """Return what two spellings of a title share: its words, in lower case, without brackets.

    Examples
    --------
    >>> title_key("The Thaw (film)"), title_key("Ann's  horse")
    ('the thaw', 'ann horse')
    """
    words = _WORD.findall(_without_brackets(title) or title)
    return " ".join(word.replace("\u2019", "'").partition("'")[0].casefold() for word in words)


def _without_brackets(title: str) -> str:
    """Return a title without what stands in brackets at its end."""
    bare = title.rstrip()
    opening = bare.find("(", bare.rfind(")", 0, -1) + 1) if bare.endswith(")") else -1
    return title if opening < 0 else bare[:opening].rstrip()


_READ = ("session", "speaker", "name", "title")
_PATHS = ", ".join(f"'$.{key}'" for key in _READ)
READ_SQL = (
    "CASE WHEN metadata = '{}' OR NOT json_valid(metadata) THEN NULL"
    f" ELSE json_extract(metadata, {_PATHS}) END"
)
"""What `Naming.note` takes, as JSON."""


def renames(changes: Sequence[Sequence[Any]]) -> bool:
    """Return whether changes of metadata, (event, before, after), change what is read of it.

    Examples
    --------
    >>> renames([(1, '{"turn":1}', '{"turn":2}')]), renames([(1, "{}", '{"title":"Red River"}')])
    (False, True)
    """
    return any(_said(before) != _said(after) for _, before, after in changes)


def _said(packed: str) -> str:
    # As text: 1 and true are equal in Python, and not the same session.
    metadata = json.loads(packed)
    return json.dumps([metadata.get(key) for key in _READ])


class Naming:
    """Words that name entities, and rows by title.

    Attributes
    ----------
    titles : dict of str to list of int
        Rows by the ``title`` of their metadata; see `title_key`.
    """

    def __init__(self) -> None:
        self.titles: dict[str, list[int]] = {}
        # Of every space for itself: each namespace numbers its own entities.
        self._names: dict[int, dict[str, set[int]]] = {}

    def note(self, row: int, space: int, entity: int, said: Sequence[Any]) -> object:
        """Take in (session, speaker, name, title) of a row; return its session or None."""
        session, speaker, name, title = said
        known = self._names.setdefault(space, {})
        for given in (speaker, name):
            for word in given.casefold().split() if isinstance(given, str) else ():
                known.setdefault(word, set()).add(entity)
        if isinstance(title, str) and title:
            self.titles.setdefault(title_key(title), []).append(row)
        return session

    def names(self, spaces: Sequence[int]) -> dict[str, frozenset[int]]:
        """Return the words, in lower case, that name an entity in these spaces.

        They are those of ``speaker`` and ``name`` in the metadata of its events.
        """
        own = [self._names[space] for space in spaces if space in self._names]
        return {
            word: frozenset().union(*(some[word] for some in own if word in some))
            for word in {word for some in own for word in some}
        }
