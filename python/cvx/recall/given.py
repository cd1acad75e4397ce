"""Sources by name, and those of the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cvx.errors import InvalidInputError
from cvx.recall.sources import (
    Aliases,
    Causes,
    Dense,
    Finder,
    Found,
    Graph,
    Lexical,
    Recent,
    Words,
    first_of_each,
)
from cvx.recall.view import View
from cvx.types import Cue, Hit, Source


@dataclass(frozen=True, slots=True)
class Given:
    """A source of the user's own, any ``Callable[[Cue], list[Hit]]``.

    What it returns is looked up in the corpus, so that nothing comes back which the asker may not
    see.

    Parameters
    ----------
    ask : callable
        From a cue to hits, best first. Their events are told by ``event.event_id``, or else by
        ``node``.
    """

    ask: Source

    def find(self, view: View) -> Found:
        """Ask it and look up what it says."""
        return self.resolve(view, self.hits(view.cue))

    def hits(self, cue: Cue) -> list[Hit]:
        """Ask it.

        Raises
        ------
        TypeError
            What it returned are no hits.
        """
        hits = list(self.ask(cue))
        for hit in hits:
            if not isinstance(hit, Hit):
                raise TypeError(f"the source returned {hit!r}: it must return hits")
        return hits

    def resolve(self, view: View, hits: Sequence[Hit]) -> Found:
        """Look up hits in the corpus."""
        corpus = view.corpus
        by_node = corpus.rows_of_nodes(np.array([hit.node for hit in hits], dtype=np.int64))
        named = [
            -1 if hit.event is None or hit.event.event_id is None else hit.event.event_id
            for hit in hits
        ]
        by_event = corpus.rows_of(named)
        rows = np.where(by_event >= 0, by_event, by_node)
        found = first_of_each(rows, np.array([hit.score for hit in hits], dtype=np.float64))
        shown = view.visible[found.rows]
        return Found(found.rows[shown], found.scores[shown])


BUILT_IN: Mapping[str, Finder] = {
    "dense": Dense(),
    "lexical": Lexical(),
    "words": Words(),
    "graph": Graph(),
    "causes": Causes(),
    "aliases": Aliases(),
    "recent": Recent(),
}


def finder_of(name: str, source: Finder | Source | None = None) -> Finder:
    """Return a source as a `Finder`: a built-in one by its name, or a callable of the user's.

    Raises
    ------
    InvalidInputError
        No such source, or something that cannot be asked.
    """
    if source is None:
        if name not in BUILT_IN:
            raise InvalidInputError(
                f"sources name {name!r}: give some of {', '.join(BUILT_IN)}, or a callable"
            )
        return BUILT_IN[name]
    if hasattr(source, "find"):
        return source
    if callable(source):
        return Given(source)
    raise InvalidInputError(
        f"source {name!r} is {source!r}: give a callable from a Cue to a list of hits"
    )
