"""Everything that is stored as polars frames, and how much of it there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cvx.arguments import a_filter, a_flag, a_text, checked, optional, wrong
from cvx.memory import frames
from cvx.memory.recalling import Recalling, asker_of
from cvx.recall.scope import scope_of
from cvx.types import DEFAULT_NAMESPACE, Filter
from cvx.validation import STATES

if TYPE_CHECKING:
    import polars as pl


def _state(name: str, value: object) -> object:
    if not isinstance(value, str) or value not in STATES:
        raise wrong(name, value, f"one of {', '.join(STATES)}, or None")
    return value


class Tables(Recalling):
    """Frames of events, links, episodes and decisions.

    Any of them goes on to Arrow without a copy: polars frames implement ``__arrow_c_stream__``.
    """

    @checked(namespace=optional(a_text), state=optional(_state), vectors=a_flag)
    def events(
        self,
        *,
        namespace: str | None = None,
        state: str | None = "active",
        vectors: bool = False,
    ) -> pl.DataFrame:
        """Return events as a frame, in the order of writing.

        Parameters
        ----------
        namespace : str, optional
            Only those of it; ``None`` for all.
        state : str, optional
            "active" (the default), "archived", "quarantined"; ``None`` for all.
        vectors : bool, default False
            With a column ``vector``, an Array of float32, null where there is none.

        Returns
        -------
        polars.DataFrame
            ``event_id``, ``timestamp``, ``text``, ``entity``, ``namespace``, ``kind``, ``action``,
            ``reward``, ``salience``, ``source``, ``trust``, ``visibility``, ``state``,
            ``episode``, ``tags``, ``metadata`` (JSON), ``recorded``, ``key``.

        Raises
        ------
        DamagedRecordError
            A row is not what was written.
        """
        dim = self.dim if vectors else None
        return frames.events_frame(self.record, namespace, state, dim)

    def links(self) -> pl.DataFrame:
        """Return links between events as a frame.

        Returns
        -------
        polars.DataFrame
            ``from_event``, ``to_event``, ``kind``, ``weight``, ``why``, ``evidence``,
            ``recorded``.

        Raises
        ------
        DamagedRecordError
            A row is not what was written.
        """
        return frames.links_frame(self.record)

    def episodes(self) -> pl.DataFrame:
        """Return closed episodes as a frame.

        Returns
        -------
        polars.DataFrame
            ``episode_id``, ``entity``, ``namespace``, ``kind``, ``goal``, ``task_type``,
            ``reward``, ``metadata`` (JSON), ``recorded``, ``steps`` (their number).

        Raises
        ------
        DamagedRecordError
            A row is not what was written.
        """
        return frames.episodes_frame(self.record)

    def decisions(self) -> pl.DataFrame:
        """Return what was asked of memory, and what became of it, as a frame.

        Returns
        -------
        polars.DataFrame
            ``decision_id``, ``episode``, ``cue``, ``hits``, ``action_scores`` (JSON),
            ``rendered``, ``action``, ``followed`` (nodes), ``outcome``, ``recorded``, ``record``
            (JSON).

        Raises
        ------
        DamagedRecordError
            A row is not what was written.
        """
        return frames.decisions_frame(self.record)

    @checked(where=a_filter)
    def count(
        self,
        where: Filter | None = None,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        also: Sequence[str] = (),
        outcome: str = "any",
    ) -> int:
        """Count the events that a recall with these parameters could return.

        Parameters
        ----------
        where, namespace, also, outcome
            As for ``recall``; by default successes and failures count.

        Raises
        ------
        InvalidFilterError, InvertedRangeError, InvalidParameterError
            As for ``recall``.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> from cvx.memory import Memory
        >>> memory = Memory(LexicalEmbedder())
        >>> for day in range(5):
        ...     _ = memory.add("rain", timestamp=day)
        >>> memory.count(), memory.count(Filter(since=3))
        (5, 2)
        """
        asker = asker_of(namespace, also, where, outcome)
        with self.record.reading():
            self._store.refresh()
            corpus = self._ground().corpus
            corpus.refresh()
            return int(scope_of(corpus, asker).visible.sum())
