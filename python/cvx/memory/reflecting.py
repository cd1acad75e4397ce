"""Memories made of memories, and memories that fade."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cvx.arguments import a_flag, a_share, checked, one_of, optional, whole
from cvx.causal.reflect import Reflector
from cvx.causal.stream import KINDS, Memory, MemoryStream
from cvx.causal.vitality import Vitality
from cvx.memory.adding import Adding
from cvx.memory.caring import Caring
from cvx.memory.explaining import Explaining
from cvx.store.spaces import check_namespace
from cvx.types import DEFAULT_NAMESPACE, Event


class Faded(NamedTuple):
    """What has faded, or would.

    Attributes
    ----------
    events : tuple of int
        Weakest first.
    vitality : tuple of float
        What is left of each, in their order.
    """

    events: tuple[int, ...]
    vitality: tuple[float, ...]


class Reflecting(Adding, Explaining, Caring):
    """The half that looks back on what it holds."""

    @checked(
        reflector=optional(one_of(Reflector, called="a Reflector")), timestamp=optional(whole())
    )
    def reflect(
        self,
        reflector: Reflector | None = None,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        timestamp: int | None = None,
    ) -> list[int]:
        """Add what is to be learned of many events, once enough of weight has come together.

        Parameters
        ----------
        reflector : Reflector, optional
            When it is time and who writes; by default counts, from a summed importance of 100 up.
        namespace : str, default ""
            Whose events are looked at; the reflections are that namespace's.
        timestamp : int, optional
            Of the reflections; default now.

        Returns
        -------
        list of int
            The new events, of kind "reflection"; the ids of the events that each rests on are its
            ``metadata["sources"]``.

        Examples
        --------
        >>> from cvx.causal import Reflector
        >>> from cvx.embed import LexicalEmbedder
        >>> from cvx.memory import Memory
        >>> memory = Memory(LexicalEmbedder())
        >>> for day in range(4):
        ...     _ = memory.add(f"the well is dry, day {day}", timestamp=day, salience=0.8)
        >>> made = memory.reflect(Reflector(threshold=30))
        >>> memory.get(made[0]).metadata
        {'sources': [1, 2, 3, 4]}
        """
        check_namespace(namespace)
        stream = MemoryStream(namespace)
        entities: dict[str, str] = {}
        for event in self._active(namespace):
            stream.append(_as_memory(event))
            entities[str(event.event_id)] = str(event.entity_id)
        chosen = reflector or Reflector()
        if chosen.group is None and len(set(entities.values())) > 1:
            chosen = _grouped(chosen, entities)
        now = self.record.now() if timestamp is None else timestamp
        made = [
            Event(
                entity_id=0,
                timestamp=now,
                text=memory.text,
                vector=memory.embedding,
                kind="reflection",
                namespace=namespace,
                metadata={"sources": [int(source) for source in memory.sources]},
                salience=(memory.importance - 1.0) / 9.0,
            )
            for memory in chosen.reflect(stream, now)
        ]
        return self.add_many(made) if made else []

    @checked(
        below=a_share,
        rule=optional(one_of(Vitality, called="a Vitality")),
        now=optional(whole()),
        dry_run=a_flag,
    )
    def fade(
        self,
        below: float = 0.05,
        *,
        rule: Vitality | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        now: int | None = None,
        dry_run: bool = True,
    ) -> Faded:
        """Put away what nothing has called up for long; ``restore`` brings it back.

        Each event's vitality follows from its salience (0.5 without one), how often and when it
        was last used, and how many events it led to. It does not depend on how often ``fade`` is
        called.

        Parameters
        ----------
        below : float, default 0.05
            What has less left is put away; in [0, 1].
        rule : Vitality, optional
            How fast it fades; by default half in 30 days.
        namespace : str, default ""
            Whose events.
        now : int, optional
            In the unit of the timestamps; by default the clock of the memory.
        dry_run : bool, default True
            Only say which ones.

        Raises
        ------
        InvalidParameterError
            A bound outside [0, 1].
        """
        events = self._active(check_namespace(namespace))
        if not events:
            return Faded((), ())
        ids = [event.event_id for event in events if event.event_id is not None]
        at = self.record.now() if now is None else now
        used = self.record.used(ids)
        counts = [used.get(number, (0, None)) for number in ids]
        pairs = zip(events, counts, strict=True)
        unused_for = [
            at - max(e.timestamp, last if last is not None else e.timestamp)
            for e, (_, last) in pairs
        ]
        led_to = dict.fromkeys(ids, 0)
        for link in self.graph(namespace=namespace).ground.links(ids, backward=False):
            led_to[int(link.cause)] += 1
        left = (rule or Vitality())(
            np.array([0.5 if e.salience is None else e.salience for e in events]),
            np.array(unused_for, dtype=np.float64),
            np.array([uses for uses, _ in counts], dtype=np.int64),
            np.array([led_to[number] for number in ids], dtype=np.int64),
        )
        order = np.argsort(left, kind="stable").tolist()
        weakest = [place for place in order if left[place] < below]
        gone = tuple(ids[place] for place in weakest)
        if gone and not dry_run:
            self.forget(gone)
        return Faded(gone, tuple(float(left[place]) for place in weakest))

    def _active(self, namespace: str) -> list[Event]:
        found = self.record.query(
            "SELECT event_id FROM events WHERE namespace = ? AND state = 'active'", (namespace,)
        )
        return self.record.events(row[0] for row in found)


def _as_memory(event: Event) -> Memory:
    return Memory(
        str(event.event_id),
        event.namespace,
        event.timestamp,
        event.text,
        event.kind if event.kind in KINDS else "event",
        5.0 if event.salience is None else 1.0 + 9.0 * event.salience,
        sources=tuple(map(str, event.metadata.get("sources", ())))
        if event.kind == "reflection"
        else (),
    )


def _grouped(reflector: Reflector, group_of: dict[str, str]) -> Reflector:
    return replace(reflector, group=lambda memory: group_of[memory.id])
