"""Edges that take many episodes to show, and what became of one decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from cvx.active.acting import Acting
from cvx.active.attribution import Attribution
from cvx.active.granger import granger_edges
from cvx.errors import InvalidParameterError, UnknownEdgeError, UnknownError
from cvx.store.spaces import least_visible, owner, readers, reads
from cvx.types import Decision, Edge

_REGION = "region_transition"


class Linking(Acting):
    """What a loop can say, and link, when it looks back."""

    def attribution(self, decision: Decision | int) -> Attribution:
        """Return which memories drove a decision, and whether it paid; memories are nodes.

        Parameters
        ----------
        decision : Decision or int
            Or its number; of a running episode of this loop, or of the record.

        Raises
        ------
        UnknownError
            No such decision: it was never acted on, its episode was discarded, or the loop does
            not log decisions.
        """
        number = decision if isinstance(decision, int) else decision.decision_id
        for taken in self._taken.values():
            for one in taken:
                if one.decision.decision_id == number:
                    return Attribution.of(one.decision, {})
        row = self.record.decision(number)
        if row is None:
            raise UnknownError(
                f"there is no decision {number} in the record: act on it and close its episode, "
                "with log_decisions on"
            )
        return Attribution.logged(row)

    def link_regions(self, *, min_moves: int = 3) -> list[Edge]:
        """Link the regions between which episodes moved, in the place of the links made before.

        The edge is from hub to hub, its weight the share of the moves out of the one region that
        led into the other, as whoever may read both hubs knows it. Hubs are those of the loop's
        namespace and public ones.

        Parameters
        ----------
        min_moves : int, default 3
            How often a move must have been made to be linked; at least 1.

        Returns
        -------
        list of Edge
            Of the kind "region_transition"; empty without a region model.

        Raises
        ------
        InvalidParameterError
            ``min_moves`` below 1.
        """
        if min_moves < 1:
            raise InvalidParameterError(f"min_moves is {min_moves}: give at least 1")
        with self.record.transaction() as write:
            # Nodes are named as they are while nobody else writes.
            self.catch_up()
            edges = self._region_edges(min_moves)
            wanted = {(edge.from_node, edge.to_node) for edge in edges}
            outdated = [
                (edge.from_node, edge.to_node, _REGION)
                for edge in self.index.edges()
                if edge.kind == _REGION
                and (edge.from_node, edge.to_node) not in wanted
                and self._audience(edge.from_node, edge.to_node) is not None
            ]
            write.remove_links(outdated)
            write.add_links(edges)
        # Only what is written for good reaches the index; one that follows the record has it.
        for end in outdated:
            with suppress(UnknownEdgeError):
                self.index.remove_edge(*end)
        self._put(edges)
        return edges

    def _region_edges(self, min_moves: int) -> list[Edge]:
        if self.mdp is None:
            return []
        public, shared = (readers(self.namespace, one) for one in ("public", "shared"))
        audiences = {
            "private": reads(self.namespace, self.also),
            "shared": (shared, public),
            "public": (public,),
        }
        edges = []
        for audience, names in audiences.items():
            out: dict[int, Counter[int]] = {}
            for (region, _), counts in self.mdp.within(names).moves().items():
                out.setdefault(region, Counter()).update(counts)
            edges += [
                Edge(region, there, _REGION, n / total, evidence=f"{n:g} of {total:g} moves")
                for region, counts in sorted(out.items())
                for total in [counts.total()]
                for there, n in sorted(counts.items())
                if there >= 0 and there != region and n >= min_moves
                if region in self.index and there in self.index
                if self._audience(region, there) == audience
            ]
        return edges

    def _audience(self, *hubs: int) -> str | None:
        """Return how visible an edge is: as its least visible end; None between others' hubs."""
        ends = [owner(self.index.namespace(hub)) for hub in hubs]
        if any(whose != self.namespace and seen != "public" for whose, seen in ends):
            return None
        return least_visible(seen for _, seen in ends)

    def link_granger(
        self,
        entities: Sequence[int],
        width: int,
        *,
        max_lag: int = 4,
        alpha: float = 0.05,
        namespace: str | None = None,
    ) -> list[Edge]:
        """Link entities where one's activity helps to foretell another's; see ``granger_edges``.

        Returns
        -------
        list of Edge
            Of the kind "granger_causal", those that passed the test; what did not pass gets none.
        """
        with self.record.transaction() as write:
            self.catch_up()
            edges = granger_edges(
                self.index, entities, width, max_lag=max_lag, alpha=alpha, namespace=namespace
            )
            write.add_links(edges)
        self._put(edges)
        return edges

    def _put(self, edges: Sequence[Edge]) -> None:
        for edge in edges:
            self.index.add_edge(edge.from_node, edge.to_node, edge.kind, edge.weight)
