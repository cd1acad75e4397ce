"""What comes out of a memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from cvx.embed import embed_query
from cvx.errors import InvalidFilterError, InvalidKError, InvalidParameterError
from cvx.memory.base import Base
from cvx.recall import reciprocal_rank_fusion
from cvx.store.spaces import check_namespace, visible_spaces, visible_sql
from cvx.types import DEFAULT_NAMESPACE, Cue, Edge, Event, Factor, Filter, Hit, Vector

_SOURCES = ("dense", "lexical")
_RECALLABLE = {"success": True, "failure": False, "any": None}


class Because(NamedTuple):
    """One step of an explanation.

    Attributes
    ----------
    event : Event
        The cause, or the consequence.
    edge : Edge
        What leads to it from the step before.
    depth : int
        Edges away from the event that was asked about.
    """

    event: Event
    edge: Edge
    depth: int


class _Scope(NamedTuple):
    where: Filter
    sql: str
    values: list[object]


class Recalling(Base):
    """The reading half; it changes nothing that is stored."""

    def recall(
        self,
        cue: str | Cue,
        k: int = 10,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        also: Sequence[str] = (),
        where: Filter | None = None,
        outcome: Literal["success", "failure", "any"] = "success",
        sources: Sequence[str] = _SOURCES,
        floor: float = 0.0,
    ) -> list[Hit]:
        """Find what fits a cue: near to it, or in its words; best first.

        Parameters
        ----------
        cue : str or Cue
            What is asked; a cue's own vector is used if it has one.
        k : int, default 10
            How many events, at least 1. An event with aliases counts once.
        namespace : str, default ""
            Whose memory asks: everything of it can come back, and what others made public.
        also : sequence of str
            Further namespaces, of which what is shared can come back.
        where : Filter, optional
            Times, entities, rewards, tags; ``ids`` are events. Its namespaces and ``recallable``
            are set by the other parameters.
        outcome : {"success", "failure", "any"}, default "success"
            What may advise; failed episodes, which may not; or both.
        sources : sequence of {"dense", "lexical"}
            Where to look.
        floor : float, default 0.0
            Events no more similar than this are found by their words only, if at all.

        Returns
        -------
        list of Hit
            With ``event``; the score is the reciprocal rank fusion of the sources, times the trust
            in the event's source. Empty where nothing fits.

        Raises
        ------
        InvalidKError, InvalidFilterError, InvertedRangeError, InvalidParameterError
            A parameter outside its bounds.
        """
        if k < 1:
            raise InvalidKError(f"k is {k}: ask for at least 1")
        if outcome not in _RECALLABLE:
            raise InvalidParameterError(f"outcome is {outcome!r}: give success, failure or any")
        unknown = set(sources) - set(_SOURCES)
        if unknown or not sources:
            raise InvalidParameterError(f"sources are {sources!r}: give some of {_SOURCES}")
        asked = Cue(text=cue) if isinstance(cue, str) else cue
        self._store.refresh()
        scope = self._scope(namespace, list(also), where or Filter(), _RECALLABLE[outcome])
        vector = asked.vector
        if vector is None:
            vector = embed_query(self.embedder, asked.words())
        vector = self._checked(vector)
        pool = max(3 * k, 30)
        near: dict[int, tuple[int, float]] = {}
        rankings: dict[str, list[int]] = {}
        if "dense" in sources:
            near = self._dense(vector, pool, scope.where, floor)
            rankings["dense"] = list(near)
        if "lexical" in sources:
            rankings["lexical"] = self.record.lexical(asked.words(), pool, scope.sql, scope.values)
        return self._hits(vector, rankings, near, k)

    def _dense(
        self, vector: Vector, pool: int, where: Filter, floor: float
    ) -> dict[int, tuple[int, float]]:
        """Nearest events with their nearest node and its distance."""
        index = self._store.index
        # Only the default search leaves out what was put away; others read past it.
        away = 0 if where.recallable else self._put_away()
        wanted = pool + away
        while True:
            ids, distances = index.search(vector, wanted, where=where)
            nodes = ids.tolist()
            events = self.record.events_of_nodes(nodes, active=True)
            found: dict[int, tuple[int, float]] = {}
            for node, distance in zip(nodes, distances.tolist(), strict=True):
                event = events.get(node)
                if event is not None and self._similarity(distance) > floor:
                    found.setdefault(event, (node, distance))
            below = bool(nodes) and self._similarity(float(distances[-1])) <= floor
            if len(found) >= pool or len(nodes) < wanted or below:
                return dict(list(found.items())[:pool])
            wanted *= 2

    def _put_away(self) -> int:
        found = self.record.query("SELECT count(*) FROM events WHERE state <> 'active'")
        return int(found[0][0])

    def _similarity(self, distance: float) -> float:
        return 1.0 / (1.0 + distance) if self.metric == "l2" else 1.0 - distance

    def _scope(
        self, namespace: str, also: list[str], where: Filter, recallable: bool | None
    ) -> _Scope:
        check_namespace(namespace)
        for name in also:
            check_namespace(name)
        if where.namespaces is not None:
            raise InvalidFilterError(
                f"the filter names namespaces {list(where.namespaces)}: use namespace= and also="
            )
        spaces = visible_spaces(namespace, also, self.record.public_namespaces())
        sql, values = visible_sql(namespace, also)
        sql += " AND state = 'active' AND node IS NOT NULL"
        if recallable is not None:
            sql += " AND recallable = ?"
            values.append(int(recallable))
        for column, sign, value in (
            ("timestamp", ">=", where.since),
            ("timestamp", "<", where.until),
            ("reward", ">=", where.min_reward),
            ("reward", "<=", where.max_reward),
        ):
            if value is not None:
                sql += f" AND {column} {sign} ?"
                values.append(value)
        ids = None
        for column, chosen in (("entity", where.entities), ("event_id", where.ids)):
            if chosen is not None:
                numbers = [int(number) for number in chosen]
                sql += f" AND {column} IN (SELECT value FROM json_each(?))"
                values.append(str(numbers))
                if column == "event_id":
                    nodes = self.record.nodes_of_events(numbers)
                    ids = [node for some in nodes.values() for node in some]
        for tag in where.tags or ():
            sql += " AND EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)"
            values.append(tag)
        if where.tags is not None and not where.tags:
            sql += " AND false"
        inside = replace(
            where, namespaces=spaces, recallable=recallable, ids=where.ids if ids is None else ids
        )
        return _Scope(inside, sql, values)

    def _hits(
        self,
        vector: Vector,
        rankings: dict[str, list[int]],
        near: dict[int, tuple[int, float]],
        k: int,
    ) -> list[Hit]:
        fused = reciprocal_rank_fusion(rankings)
        trusted = self.record.trust_of([one.item for one in fused])
        ranked = sorted(
            ((one, one.score * trusted.get(one.item, 0.0)) for one in fused),
            key=lambda pair: (-pair[1], pair[0].item),
        )[:k]
        events = {e.event_id: e for e in self.record.events(one.item for one, _ in ranked)}
        far = [events[o.item].node for o, _ in ranked if o.item in events and o.item not in near]
        near = near | self._distances(vector, [node for node in far if node is not None])
        hits = []
        for one, score in ranked:
            event = events.get(one.item)
            if event is None or event.node is None:
                continue
            node, distance = near.get(one.item, (event.node, math.inf))
            hits.append(
                Hit(
                    node=node,
                    distance=distance,
                    score=score,
                    similarity=self._similarity(distance) if distance < math.inf else 0.0,
                    entity_id=event.entity_id,
                    timestamp=event.timestamp,
                    reward=event.reward,
                    action=event.action,
                    factors=tuple(
                        Factor(name, part, event.trust, part * event.trust)
                        for name, part in one.parts
                    ),
                    event=event,
                )
            )
        self._remember_handing_out(hit.event for hit in hits if hit.event is not None)
        return hits

    def _distances(self, vector: Vector, nodes: list[int]) -> dict[int, tuple[int, float]]:
        """Distances of events that words alone have found."""
        if not nodes:
            return {}
        index = self._store.index
        names = sorted({index.namespace(node) for node in nodes if node in index})
        where = Filter(ids=nodes, namespaces=names, recallable=None)
        ids, distances = index.search(vector, len(nodes), where=where)
        events = self.record.events_of_nodes(ids.tolist())
        return {
            events[node]: (node, distance)
            for node, distance in zip(ids.tolist(), distances.tolist(), strict=True)
            if node in events
        }

    def why(
        self, event_id: int, *, namespace: str = DEFAULT_NAMESPACE, max_depth: int = 5
    ) -> list[Because]:
        """Return what led to an event, over its links backwards; nearest first.

        Parameters
        ----------
        event_id : int
            What is to be explained.
        namespace : str, default ""
            Who asks: nothing that it may not see is shown or walked through.
        max_depth : int, default 5
            Links away at the most, at least 1.

        Raises
        ------
        UnknownEventError
            No such event.
        """
        return self._walk(event_id, namespace, max_depth, incoming=True)

    def consequences(
        self, event_id: int, *, namespace: str = DEFAULT_NAMESPACE, max_depth: int = 5
    ) -> list[Because]:
        """Return what an event led to, over its links forwards; see ``why``."""
        return self._walk(event_id, namespace, max_depth, incoming=False)

    def _walk(
        self, event_id: int, namespace: str, max_depth: int, *, incoming: bool
    ) -> list[Because]:
        if max_depth < 1:
            raise InvalidParameterError(f"max_depth is {max_depth}: give at least 1")
        start = self.get(event_id)
        seen, out = {event_id}, list[Because]()
        layer = [node for node in (start.node,) if node is not None]
        for depth in range(1, max_depth + 1):
            edges = self.record.links_of(layer, incoming=incoming) if layer else []
            ends = {edge.from_node if incoming else edge.to_node for edge in edges}
            owners = self.record.events_of_nodes(sorted(ends), active=True) if ends else {}
            events = {event.event_id: event for event in self.record.events(owners.values())}
            layer = []
            for edge in edges:
                node = edge.from_node if incoming else edge.to_node
                found = events.get(owners.get(node, -1))
                if found is None or found.event_id in seen or found.event_id is None:
                    continue
                if namespace != found.namespace and found.visibility != "public":
                    continue
                seen.add(found.event_id)
                out.append(Because(found, edge, depth))
                layer.append(node)
        return out
