"""What can be read of what was learned: decays, counts of use, decisions, models."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cvx.store import rows
from cvx.store.journalled import Journalled

_JSON = ("cue", "hits", "action_scores", "followed", "record")


class Learned(Journalled):
    """The part of a record that outcomes write."""

    def decays(self) -> list[tuple[int, int, float, float]]:
        """Return every decay as (episode, node, reward before, reward after), oldest first."""
        return [row[:4] for row in self._checked("decays", "ORDER BY recorded, episode, node")]

    def usage(self) -> list[tuple[str, float, float, float]]:
        """Return every count as (context, retrieved, followed, helped)."""
        return [row[:4] for row in self._checked("usage", "ORDER BY context")]

    def used(self, events: Sequence[int]) -> dict[int, tuple[int, int | None]]:
        """Return how often events were retrieved, and when they were used last.

        Returns
        -------
        dict of int to (int, int or None)
            By event; those never retrieved or used are not in it. Times are in the unit of the
            events' timestamps.
        """
        contexts = {event_context(event): event for event in events}
        found = self._checked("usage", f"WHERE context {rows.AMONG}", (json.dumps(list(contexts)),))
        return {contexts[row[0]]: (row[1], row[4]) for row in found}

    def newest_decisions(self, page: int = 500) -> Iterator[dict[str, Any]]:
        """Yield decisions as ``decisions`` returns them, the last one first."""
        before = 2**63 - 1
        while True:
            found = self._decisions(
                "WHERE decision_id < ? ORDER BY decision_id DESC LIMIT ?", (before, page)
            )
            yield from found
            if len(found) < page:
                return
            before = found[-1]["decision_id"]

    def decisions(self, episode_id: int | None = None) -> list[dict[str, Any]]:
        """Return decisions as plain dictionaries, of one episode or of all.

        Returns
        -------
        list of dict
            ``decision_id``, ``episode``, ``cue``, ``hits`` (lists of node, entity, distance,
            score, factors as [name, value, weight]), ``action_scores``, ``rendered``,
            ``action``, ``followed``, ``outcome``, ``recorded``, ``record`` (what else was noted).
        """
        return self._decisions(
            "WHERE ?1 IS NULL OR episode = ?1 ORDER BY decision_id", (episode_id,)
        )

    def decision(self, decision_id: int) -> dict[str, Any] | None:
        """Return one decision as ``decisions`` does, None if it was never written."""
        found = self._decisions("WHERE decision_id = ?", (decision_id,))
        return found[0] if found else None

    def _decisions(self, rest: str, values: Sequence[object]) -> list[dict[str, Any]]:
        found = self._checked("decisions", rest, values)
        names = rows.COLUMNS["decisions"]
        out = [dict(zip(names, row[:-1], strict=True)) for row in found]
        for row in out:
            for name in _JSON:
                row[name] = json.loads(row[name])
        return out

    def state(self, name: str) -> Mapping[str, Any] | None:
        """Return the state of a model, or None if none was stored under that name."""
        found = self._checked("model_state", "WHERE name = ?", (name,))
        return dict(json.loads(found[0][1])) if found else None


def event_context(event: int) -> str:
    """Return the context in which the use of a single event is counted."""
    return f'["event",{event}]'


def use_context(context: Any, readers: str, source: str) -> Any:
    """Return a context of use together with whose use is counted, as it is stored.

    Parameters
    ----------
    context : Any
        What JSON can hold.
    readers : str
        Who may read the episodes in which it was counted, see ``cvx.store.spaces.readers``.
    source : str
        Where these come from.

    Examples
    --------
    >>> use_context(["clean", 4], "", "")
    ['clean', 4]
    >>> whose_use(use_context(["clean", 4], "ana", "web"))
    (['clean', 4], 'ana', 'web')
    """
    return [_WHOSE, readers, source, context] if readers or source else context


def whose_use(stored: Any) -> tuple[Any, str, str]:
    """Return a context of use, and who may read the episodes in which it was counted, and whence.

    The opposite of ``use_context``.
    """
    match stored:
        case [str(mark), str(readers), str(source), context] if mark == _WHOSE:
            return context, readers, source
    return stored, "", ""


_WHOSE = "\x1f"
