"""What can be asked of a causal memory core beside its two rituals."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Self

from cvx.causal.core_event import CoreEvent
from cvx.causal.core_file import CoreFile
from cvx.causal.core_index import CoreIndex
from cvx.causal.graph import CausalGraph
from cvx.causal.judges import Judge, Judgement, Pair, as_judge, judgements
from cvx.errors import InvalidParameterError

NO_WORDS = "the one led to the other"


class CoreAnswers:
    """Chains, consequences, open judgements, and the core as a graph."""

    judge: Judge
    _file: CoreFile
    _index: CoreIndex
    _lock: threading.RLock
    _clock: Callable[[], datetime]

    def __len__(self) -> int:
        with self._lock:
            return self._file.count()

    def chain(self, event_id: int) -> list[CoreEvent]:
        """Return an event's causes from the root on, the event itself last; [] if there is none.

        A cause that is missing, or was passed already, ends the walk.
        """
        with self._lock:
            chain: list[CoreEvent] = []
            seen: set[int] = set()
            event = self._file.event(event_id)
            while event is not None and event.event_id not in seen:
                seen.add(event.event_id)
                chain.append(event)
                event = None if event.cause_id is None else self._file.event(event.cause_id)
            return chain[::-1]

    def consequences(self, event_id: int, max_depth: int = 2) -> list[CoreEvent]:
        """Return what came of an event, nearest first.

        Raises
        ------
        InvalidParameterError
            max_depth below 1.
        """
        if max_depth < 1:
            raise InvalidParameterError(f"max_depth is {max_depth}: give at least 1")
        with self._lock:
            found: dict[int, CoreEvent] = {}
            layer = [event_id]
            for _ in range(max_depth):
                following = self._file.effects_of(layer) if layer else []
                new = [e for e in following if e.event_id not in found and e.event_id != event_id]
                found |= {event.event_id: event for event in new}
                layer = [event.event_id for event in new]
            return list(found.values())

    def retry_unjudged(self, judge: object = None) -> int:
        """Ask again about every pair that nobody could judge, and return how many are confirmed.

        An event that has a cause by now is not asked about; events themselves are never changed.

        Parameters
        ----------
        judge : object, optional
            Who is asked, as ``llm_client``; by default the same as for events.
        """
        asked = self.judge if judge is None else as_judge(judge)
        confirmed = 0
        with self._lock:
            for cause_id, effect_id in self._file.unjudged():
                cause, effect = self._file.event(cause_id), self._file.event(effect_id)
                if cause is None or effect is None or effect.cause_id is not None:
                    continue
                (made,) = judgements(asked, [pair_of(cause, effect)])
                if made.verdict == "unjudged":
                    continue
                if made.confirmed and not made.why:
                    made = Judgement("yes", made.probability, NO_WORDS)
                with self._file.transaction():
                    self._file.insert_judgements(self._now(), effect_id, [(cause_id, made)])
                confirmed += made.confirmed
        return confirmed

    def unjudged(self) -> list[tuple[int, int]]:
        """Return the pairs of cause and effect that nobody could judge, oldest first."""
        with self._lock:
            return self._file.unjudged()

    def events(self) -> list[CoreEvent]:
        """Return every event, in the order of writing."""
        with self._lock:
            return self._file.events()

    def graph(self) -> CausalGraph:
        """Return a copy as a causal graph: for walks, stories, tables and pictures.

        Ticks are microseconds since 1970-01-01 UTC.
        """
        return _graph_of(self.events())

    def close(self) -> None:
        """Close the file. Closing it again does nothing."""
        with self._lock:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _level(self) -> CoreIndex:
        """Return the index, with what other cores on the same file have written meanwhile."""
        if self._file.count() != len(self._index):
            missing = self._index.missing(self._file.ids())
            if missing is None:
                self._index = CoreIndex(self._file.events())
            elif missing:
                self._index.add(self._file.events(missing))
        return self._index

    def _now(self) -> datetime:
        now = self._clock()
        return now if now.tzinfo is None else now.astimezone(UTC).replace(tzinfo=None)


def pair_of(cause: CoreEvent, effect: CoreEvent) -> Pair:
    """Return two events as a judge sees them."""
    lag = round((effect.timestamp - cause.timestamp).total_seconds() * 1e6)
    return Pair(cause.effect_text, effect.effect_text, cause.embedding, effect.embedding, lag)


def _graph_of(events: Sequence[CoreEvent]) -> CausalGraph:
    graph = CausalGraph(effect_first="allow")
    for event in events:
        tick = round(event.timestamp.replace(tzinfo=UTC).timestamp() * 1e6)
        graph.add_event(event.event_id, event.text, tick, embedding=event.embedding)
    for event in events:
        if event.cause_id is not None and event.cause_id != event.event_id:
            why = event.relationship_text or ""
            graph.link(event.cause_id, event.event_id, why=why, lenient=True)
    return graph
