"""What the record says of the nodes of an index: whose they are, and which edges join them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cvx.store import rows
from cvx.store.learned import Learned
from cvx.types import Edge

_OF_A_NODE = (
    "node",
    "entity",
    "timestamp",
    "embedding",
    "reward",
    "namespace",
    "visibility",
    "tags",
    "action",
)


class Nodes(Learned):
    """The part of a record that an index is made of."""

    def events_of_nodes(self, nodes: Sequence[int], *, active: bool = False) -> dict[int, int]:
        """Return the event of each of these nodes, those of aliases included.

        Parameters
        ----------
        nodes : sequence of int
            Index rows.
        active : bool, default False
            Leave out events that were archived or quarantined.
        """
        state = " AND state = 'active'" if active else ""
        found = self.query(
            f"SELECT node, event_id FROM events WHERE node {rows.AMONG}{state}"
            " UNION ALL SELECT aliases.node, event_id FROM aliases"
            f" JOIN events USING (event_id) WHERE aliases.node {rows.AMONG}{state}",
            (rows.listed(nodes),),
        )
        return dict(found)

    def nodes_of_events(self, events: Sequence[int]) -> dict[int, list[int]]:
        """Return the nodes of each of these events, its own before those of its aliases."""
        out: dict[int, list[int]] = {}
        for event, node in self.query(
            f"SELECT event_id, node FROM events WHERE event_id {rows.AMONG}"
            " AND node IS NOT NULL UNION ALL SELECT event_id, node FROM aliases"
            f" WHERE event_id {rows.AMONG}",
            (rows.listed(events),),
        ):
            out.setdefault(event, []).append(node)
        return out

    def own_nodes(self, nodes: Sequence[int]) -> dict[int, int]:
        """Return, for those of these nodes that are aliases, the nodes of their events."""
        found = self.query(
            "SELECT aliases.node, events.node FROM aliases JOIN events USING (event_id)"
            f" WHERE aliases.node {rows.AMONG}",
            (rows.listed(nodes),),
        )
        return dict(found)

    def doubted(self, nodes: Sequence[int]) -> dict[int, float]:
        """Return the trust in those of these nodes whose sources are not fully trusted."""
        found = self.query(
            f"SELECT node, trust FROM events WHERE node {rows.AMONG} AND trust < 1"
            " UNION ALL SELECT aliases.node, trust FROM aliases JOIN events USING (event_id)"
            f" WHERE aliases.node {rows.AMONG} AND trust < 1",
            (rows.listed(nodes),),
        )
        return dict(found)

    def quarantined_sources(self) -> frozenset[str]:
        """Return the sources of which something is in quarantine."""
        found = self.query("SELECT DISTINCT source FROM events WHERE state = 'quarantined'")
        return frozenset(row[0] for row in found if row[0])

    def put_away(self) -> set[int]:
        """Return the nodes of all events that were archived or quarantined, aliases included."""
        found = self.query(
            "SELECT node FROM events WHERE state <> 'active' AND node IS NOT NULL"
            " UNION ALL SELECT aliases.node FROM events JOIN aliases USING (event_id)"
            " WHERE state <> 'active'"
        )
        return {row[0] for row in found}

    def index_rows(self, first: int, last: int) -> list[tuple[Any, ...]]:
        """Return what an index holds of the nodes from first to last, by node.

        Rows that are damaged, and aliases of such events, are left out and noted in ``damaged``.

        Returns
        -------
        list of tuple
            node, entity, timestamp, embedding, reward, namespace, visibility, tags, action,
            whether it advises.
        """
        bounds = (first, last)
        at = {name: place for place, name in enumerate(rows.COLUMNS["events"])}
        wanted = [at[name] for name in _OF_A_NODE]

        def node_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
            advises = bool(row[at["recallable"]]) and row[at["state"]] == "active"
            return (*(row[place] for place in wanted), advises)

        own = self._whole("events", "WHERE node BETWEEN ? AND ? ORDER BY node", bounds)
        found = [node_row(row) for row in own]
        aliases = self._whole("aliases", "WHERE node BETWEEN ? AND ? ORDER BY node", bounds)
        for node, event, _, embedding, *_ in aliases:
            for row in self._whole("events", "WHERE event_id = ?", (event,)):
                _, entity, time, _, *rest = node_row(row)
                found.append((node, entity, time, embedding, *rest))
        return sorted(found, key=lambda row: row[0])

    def count_of_nodes(self) -> int:
        """Return how many nodes there are, those of aliases included."""
        found = self.query(
            "SELECT (SELECT count(node) FROM events) + (SELECT count(*) FROM aliases)"
        )
        return int(found[0][0])

    def last_node(self, first: int, last: int, most: int) -> int | None:
        """Return the last of so many nodes from first to last, None where there is none."""
        found = self.query(
            "SELECT max(node) FROM (SELECT node FROM events WHERE node BETWEEN ?1 AND ?2"
            " UNION ALL SELECT node FROM aliases WHERE node BETWEEN ?1 AND ?2"
            " ORDER BY node LIMIT ?3)",
            (first, last, most),
        )
        return None if found[0][0] is None else int(found[0][0])

    def nodes_from(self, first: int) -> list[int]:
        """Return the nodes from a number on."""
        found = self.query(
            "SELECT node FROM events WHERE node >= ?1 AND typeof(node) = 'integer'"
            " UNION ALL SELECT node FROM aliases WHERE node >= ?1",
            (first,),
        )
        return [row[0] for row in found]

    def not_recallable(self) -> list[int]:
        """Return the nodes of events that may not advise, ascending."""
        found = self.query(
            "SELECT node FROM events WHERE NOT recallable AND node IS NOT NULL ORDER BY node"
        )
        return [row[0] for row in found]

    def links(self) -> list[Edge]:
        """Return every edge, by its ends and kind."""
        return [Edge(*r[:7]) for r in self._checked("links", "ORDER BY from_node, to_node, kind")]

    def whole_links(self) -> list[Edge]:
        """Return every edge whose row is what was written; others are noted in ``damaged``."""
        return [Edge(*r[:7]) for r in self._whole("links", "ORDER BY from_node, to_node, kind")]

    def links_of(self, nodes: Sequence[int], *, incoming: bool) -> list[Edge]:
        """Return the edges that end at these nodes, or start there; damaged ones are left out."""
        column = "to_node" if incoming else "from_node"
        marks = ", ".join("?" * len(nodes))
        rest = f"WHERE {column} IN ({marks}) ORDER BY weight DESC, from_node, to_node, kind"
        return [Edge(*row[:7]) for row in self._whole("links", rest, nodes)]
