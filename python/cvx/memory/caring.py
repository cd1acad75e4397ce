"""Looking after a memory: putting away, erasing, distrusting, keeping it small, looking back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cvx.arguments import a_flag, a_text, checked, optional, some_events, whole
from cvx.embed.cache import CachedEmbedder
from cvx.embed.cachedb import is_cache
from cvx.errors import InvalidParameterError
from cvx.memory.base import Base
from cvx.recall.cue import dense_text, lexical_text
from cvx.scoring.formulas import beta_mean
from cvx.store.erase import Erased, check_erasable, erase, finish, told_of
from cvx.store.ownfiles import regular
from cvx.types import Event


class Eviction(NamedTuple):
    """What a budget puts away, or would.

    Attributes
    ----------
    events : tuple of int
        Least useful first.
    events_left, bytes_left : int
        What stays active.
    """

    events: tuple[int, ...]
    events_left: int
    bytes_left: int


class Caring(Base):
    """What keeps a memory in order."""

    @checked(events=some_events)
    def forget(self, events: int | Iterable[int]) -> None:
        """Put events away: they are in no recall any more, and ``restore`` brings them back.

        Raises
        ------
        UnknownEventError
            One of them does not exist; nothing changes.
        """
        self._set_state(events, "archived")

    @checked(events=some_events)
    def restore(self, events: int | Iterable[int]) -> None:
        """Bring back what was forgotten or quarantined.

        Raises
        ------
        UnknownEventError
            One of them does not exist; nothing changes.
        """
        self._set_state(events, "active")

    def _set_state(self, events: int | Iterable[int], state: str) -> None:
        listed = _listed(events)
        with self.record.transaction() as write:
            write.set_columns("state", dict.fromkeys(listed, state))

    @checked(events=some_events)
    def erase(self, events: int | Iterable[int]) -> Erased:
        """Erase events for good, from every file: see ``cvx.store.erase.erase``.

        The caches of the embedder, and those that lie in the folder, are cleaned of their texts
        and of the cues that quote them. It takes a rebuild of the index and of the database: erase
        many at once.

        Raises
        ------
        UnknownEventError
            One of them does not exist; nothing is erased.
        """
        listed = _listed(events)
        check_erasable(self.record, listed)
        if listed:
            # What was recalled and is not written down yet is searched with the rest.
            self._flush()
            # Before the record: a death in between leaves texts that can be erased again.
            self._clean_caches(listed)
        done = erase(self._store, listed)
        gone = set(done.events)
        self._handed_out = type(self._handed_out)(
            (key, left)
            for key, told in self._handed_out.items()
            if (left := tuple(event for event in told if event not in gone))
        )
        return done

    def _clean_caches(self, events: list[int]) -> None:
        own = getattr(self.embedder, "forget", None)
        files = [] if self.folder is None else sorted(self.folder.iterdir())
        beside = [path for path in files if regular(path) and is_cache(path)]
        if own is None and not beside:
            return
        texts, cues = told_of(self.record, events)
        texts += (said for cue in cues for said in (dense_text(cue), lexical_text(cue)))
        if own is not None:
            own(texts)
        for path in beside:
            CachedEmbedder(self.embedder, path).forget(texts)

    def finish_erase(self) -> bool:
        """Clean the files where an erase was not ``complete``; tell whether it is now."""
        return finish(self._store)

    @checked(source=a_text)
    def audit(self, source: str) -> list[Event]:
        """Return everything that came from a source, whatever became of it."""
        rows = self.record.query("SELECT event_id FROM events WHERE source = ?", (source,))
        return self.record.events(row[0] for row in rows)

    @checked(source=a_text)
    def quarantine(self, source: str) -> list[int]:
        """Keep everything from a source out of every recall until ``release``.

        Returns
        -------
        list of int
            The events that were active.
        """
        return self._move(source, "active", "quarantined")

    @checked(source=a_text)
    def release(self, source: str) -> list[int]:
        """End the quarantine of a source; returns its events."""
        return self._move(source, "quarantined", "active")

    def _move(self, source: str, before: str, after: str) -> list[int]:
        _check_source(source)
        with self.record.transaction() as write:
            rows = self.record.query(
                "SELECT event_id FROM events WHERE source = ? AND state = ?", (source, before)
            )
            events = [row[0] for row in rows]
            write.set_columns("state", dict.fromkeys(events, after))
        return events

    @checked(source=a_text)
    def roll_back(self, source: str) -> list[int]:
        """Undo a source: its events go into quarantine, their links are taken away for good.

        Links, unlike events, teach walks and searches that start elsewhere. Rewards that other
        memories lost in failed episodes of the source are given back. ``as_of`` still knows all of
        it, and ``erase`` removes the events themselves.

        Returns
        -------
        list of int
            All events of the source.
        """
        _check_source(source)
        with self.record.transaction() as write:
            rows = self.record.query("SELECT event_id FROM events WHERE source = ?", (source,))
            events = [row[0] for row in rows]
            write.set_columns("state", dict.fromkeys(events, "quarantined"))
            write.undo_decays(events)
            nodes = [n for some in self.record.nodes_of_events(events).values() for n in some]
            for node in nodes:
                edges = [
                    *self.record.links_of([node], incoming=True),
                    *self.record.links_of([node], incoming=False),
                ]
                write.remove_links((e.from_node, e.to_node, e.kind) for e in edges)
        return events

    @checked(events=optional(whole(0)), bytes=optional(whole(0)), dry_run=a_flag)
    def keep_within(
        self,
        *,
        events: int | None = None,
        bytes: int | None = None,  # noqa: A002
        dry_run: bool = True,
    ) -> Eviction:
        """Put away the least useful events until the rest fits a budget.

        Usefulness is the success to expect of an event (its reward, 0.5 without one, and how often
        it was retrieved) times its salience (0.5 without one); of equals the one goes that was
        used longest ago, or never used and happened longest ago.

        Parameters
        ----------
        events : int, optional
            How many may stay active.
        bytes : int, optional
            How large their texts and vectors together may be.
        dry_run : bool, default True
            Only say which ones; nothing is put away.

        Raises
        ------
        InvalidParameterError
            No budget at all, or one below 0.
        """
        if events is None and bytes is None:
            raise InvalidParameterError("no budget: give events, bytes or both")
        rows = self.record.query(
            "SELECT event_id, reward, salience, recorded, ifnull(retrieved, 0),"
            " length(CAST(text AS BLOB)) + ifnull(length(embedding), 0),"
            " max(timestamp, ifnull(last_used, timestamp)) FROM events"
            " LEFT JOIN usage ON context = '[\"event\",' || event_id || ']'"
            " WHERE state = 'active'"
        )
        ordered = sorted(
            rows,
            key=lambda row: (
                self._usefulness(row[0], row[1], row[2], row[4]),
                max(row[6], self._noted.used.get(row[0], row[6])),
                row[3],
            ),
        )
        left, size = len(ordered), sum(row[5] for row in ordered)
        gone: list[int] = []
        for row in ordered:
            if (events is None or left <= events) and (bytes is None or size <= bytes):
                break
            gone.append(row[0])
            left, size = left - 1, size - row[5]
        if gone and not dry_run:
            self.forget(gone)
        return Eviction(tuple(gone), left, size)

    def _usefulness(
        self, event: int, reward: float | None, salience: float | None, retrieved: int
    ) -> float:
        asked = retrieved + self._noted.retrieved.get(event, 0)
        worth = 0.5 if reward is None else reward
        weight = 0.5 if salience is None else salience
        # One retrieval says little, the hundredth hardly more than the tenth.
        return worth * weight * (0.5 + beta_mean(asked, asked, 2.0, 0.0))


def _listed(events: int | Iterable[int]) -> list[int]:
    return list(events) if isinstance(events, Iterable) else [events]


def _check_source(source: str) -> None:
    if not source:
        raise InvalidParameterError("source is empty: name the one that is meant")
