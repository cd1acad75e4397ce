"""A naive twin of the index: lists, loops and float64, for the tests to hold the real one to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import strategies as st

from cvx.index import RawIndex
from cvx.types import Filter

Array = npt.NDArray[np.float64]


@dataclass
class Row:
    """What was inserted."""

    entity: int
    timestamp: int
    vector: Array | None
    reward: float | None = None
    namespace: str = ""
    tags: frozenset[str] = frozenset()
    action: str | None = None
    recallable: bool = True


@dataclass
class Twin:
    """Every question is a loop over all rows."""

    metric: str = "cosine"
    rows: list[Row] = field(default_factory=list)
    deleted: set[int] = field(default_factory=set)
    edges: dict[tuple[int, int, str], float] = field(default_factory=dict)
    center: Array | None = None

    def live(self) -> list[int]:
        return [n for n in range(len(self.rows)) if n not in self.deleted]

    def accepts(self, n: int, where: Filter | None) -> bool:
        f, row = where or Filter(), self.rows[n]
        since, until = cast(int | None, f.since), cast(int | None, f.until)
        in_time = (since is None or since <= row.timestamp) and (
            until is None or row.timestamp < until
        )
        low, high = f.min_reward, f.max_reward
        rewarded = (low is None and high is None) or (
            row.reward is not None
            and (low is None or row.reward >= float(np.float32(low)))
            and (high is None or row.reward <= float(np.float32(high)))
        )
        return (
            n not in self.deleted
            and in_time
            and rewarded
            and (f.entities is None or row.entity in np.atleast_1d(f.entities))
            and (f.ids is None or n in np.atleast_1d(f.ids))
            and row.namespace in ([""] if f.namespaces is None else f.namespaces)
            and (f.tags is None or (len(f.tags) > 0 and row.tags.issuperset(f.tags)))
            and (f.recallable is None or row.recallable == f.recallable)
        )

    def _moved(self, vector: Array) -> Array:
        moved = vector if self.center is None else vector - self.center
        return moved / np.linalg.norm(moved) if self.metric == "cosine" else moved

    def distance(self, query: npt.ArrayLike, n: int) -> float:
        vector = self.rows[n].vector
        assert vector is not None
        a, b = self._moved(np.asarray(query, np.float64)), self._moved(vector)
        if self.metric == "l2":
            return float(((a - b) ** 2).sum())
        return 1.0 - float(a @ b)

    def similarity(self, query: npt.ArrayLike, n: int) -> float:
        distance = self.distance(query, n)
        return 1.0 / (1.0 + distance) if self.metric == "l2" else 1.0 - distance

    def found(self, where: Filter | None) -> list[int]:
        """What a search may return."""
        return [
            n for n in self.live() if self.rows[n].vector is not None and self.accepts(n, where)
        ]

    def distances(
        self, query: npt.ArrayLike, where: Filter | None = None
    ) -> list[tuple[float, int]]:
        """Nearest first."""
        return sorted((self.distance(query, n), n) for n in self.found(where))

    def timeline(self, namespace: str, entity: int) -> list[int]:
        mine = (
            n
            for n in self.live()
            if (self.rows[n].namespace, self.rows[n].entity) == (namespace, entity)
        )
        return sorted(mine, key=lambda n: (self.rows[n].timestamp, n))

    def around(self, n: int) -> tuple[list[int], list[int]]:
        """All that came before a node, and all that came after."""
        line = self.timeline(self.rows[n].namespace, self.rows[n].entity)
        return line[: line.index(n)], line[line.index(n) + 1 :]

    def hybrid(
        self, query: npt.ArrayLike, beta: float, where: Filter | None = None
    ) -> list[tuple[float, int]]:
        """Best score first."""
        scored = []
        for n in self.found(where):
            before, after = self.around(n)
            beside = [m for m in (*before[-1:], *after[:1]) if self.rows[m].vector is not None]
            options = [self.similarity(query, n)]
            # Beta 0 is plain search, also where a similarity is below 0.
            options += [beta * self.similarity(query, m) for m in beside if beta]
            scored.append((max(options), n))
        return sorted(scored, key=lambda pair: (-pair[0], pair[1]))

    def out_edges(
        self, n: int, kinds: Iterable[str], spaces: Iterable[str]
    ) -> list[tuple[int, str, float]]:
        edges = [(to, kind, w) for (a, to, kind), w in self.edges.items() if a == n]
        edges += [(m, "temporal", 1.0) for m in self.around(n)[1][:1]]
        return [e for e in edges if e[1] in kinds and self.rows[e[0]].namespace in spaces]

    def paths(
        self, start: int, kinds: Iterable[str], max_hops: int, spaces: Iterable[str] = ("",)
    ) -> list[tuple[float, tuple[int, ...], tuple[str, ...]]]:
        """Every simple path: (strength, nodes, kinds)."""
        kinds, spaces = set(kinds), set(spaces)
        found: list[tuple[float, tuple[int, ...], tuple[str, ...]]] = []
        open_paths: list[tuple[float, tuple[int, ...], tuple[str, ...]]] = [(1.0, (start,), ())]
        for _ in range(max_hops):
            longer: list[tuple[float, tuple[int, ...], tuple[str, ...]]] = []
            for strength, nodes, walked in open_paths:
                for to, kind, weight in self.out_edges(nodes[-1], kinds, spaces):
                    if to not in nodes:
                        longer.append((strength * weight, (*nodes, to), (*walked, kind)))
            found += longer
            open_paths = longer
        return found

    def graph(
        self,
        query: npt.ArrayLike,
        ef: int,
        boost: Mapping[str, float],
        max_hops: int,
        where: Filter | None = None,
    ) -> dict[int, float]:
        """The score of every node that a graph search may return."""
        spaces = [""] if where is None or where.namespaces is None else where.namespaces
        seeds = [n for _, n in self.distances(query, where)[:ef]]
        accepted = set(self.found(where))
        gained: dict[int, float] = {}
        for seed in seeds:
            for _, nodes, kinds in self.paths(seed, boost, max_hops, spaces):
                product = self.similarity(query, seed)
                for a, b, kind in zip(nodes, nodes[1:], kinds, strict=False):
                    product *= boost[kind] * (1.0 if kind == "temporal" else self.edges[a, b, kind])
                gained[nodes[-1]] = max(gained.get(nodes[-1], 0.0), product)
        reached = (accepted & gained.keys()) | set(seeds)
        return {n: self.similarity(query, n) + gained.get(n, 0.0) for n in reached}


DIM = 4
KINDS = ("caused", "caused_success", "irrelevant")


def vectors() -> st.SearchStrategy[list[int]]:
    """Small whole numbers: exact in float32, with ties, never zero."""
    return st.lists(st.integers(-3, 3), min_size=DIM, max_size=DIM).filter(any)


def filters() -> st.SearchStrategy[Filter]:
    ordered = st.tuples(st.integers(0, 6), st.integers(1, 6)).map(lambda p: (p[0], p[0] + p[1]))
    return st.builds(
        lambda times, sides, rewards, **fields: Filter(
            since=times[0] if sides[0] else None,
            until=times[1] if sides[1] else None,
            min_reward=min(rewards) if sides[2] else None,
            max_reward=max(rewards) if sides[3] else None,
            **fields,
        ),
        ordered,
        st.tuples(*[st.booleans()] * 4),
        st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.5, 1.0])),
        entities=st.none() | st.lists(st.integers(0, 4), max_size=3),
        namespaces=st.none() | st.lists(st.sampled_from(["", "a", "never"]), max_size=2),
        tags=st.none() | st.lists(st.sampled_from(["x", "y", "never"]), max_size=2),
        ids=st.none() | st.lists(st.integers(0, 40), max_size=12),
        recallable=st.sampled_from([True, True, False, None]),
    )


@st.composite
def twins(draw: st.DrawFn, max_rows: int = 25, metric: str | None = None) -> Twin:
    """Rows of three namespaces and few entities and times, some deleted, some linked."""
    row = st.builds(
        Row,
        entity=st.integers(0, 3),
        timestamp=st.integers(0, 8),
        vector=st.none() | vectors().map(lambda v: np.asarray(v, np.float64)),
        reward=st.sampled_from([None, 0.0, 0.25, 0.5, 1.0]),
        namespace=st.sampled_from(["", "", "a", "b"]),
        tags=st.frozensets(st.sampled_from(["x", "y"])),
        action=st.sampled_from([None, "go", "take"]),
        recallable=st.sampled_from([True, True, True, False]),
    )
    twin = Twin(metric or draw(st.sampled_from(["cosine", "l2", "ip"])))
    twin.rows = draw(st.lists(row, max_size=max_rows))
    if twin.rows:
        node = st.integers(0, len(twin.rows) - 1)
        weight = st.sampled_from([0.25, 0.5, 1.0])
        twin.edges = {
            key: w
            for key, w in draw(
                st.dictionaries(st.tuples(node, node, st.sampled_from(KINDS)), weight, max_size=25)
            ).items()
            if key[0] != key[1]
        }
        twin.deleted = draw(st.sets(node, max_size=4))
    return twin


def built(twin: Twin, *, bulk: bool = True, exact_below: int = 10_000, seed: int = 0) -> RawIndex:
    """Make the real index of the twin's rows, edges and deletions; the twin loses dead edges."""
    index = RawIndex(DIM, twin.metric, m=4, ef_construction=40, seed=seed, exact_below=exact_below)
    rows = twin.rows
    if bulk:
        index.bulk_insert(
            [row.entity for row in rows],
            [row.timestamp for row in rows],
            [row.vector for row in rows],
            rewards=[row.reward for row in rows],
            namespaces=[row.namespace for row in rows],
            tags=[row.tags for row in rows],
            actions=[row.action for row in rows],
            recallable=[row.recallable for row in rows],
        )
    else:
        for row in rows:
            index.insert(
                row.entity,
                row.timestamp,
                row.vector,
                reward=row.reward,
                namespace=row.namespace,
                tags=row.tags,
                action=row.action,
                recallable=row.recallable,
            )
    for (a, b, kind), weight in twin.edges.items():
        index.add_edge(a, b, kind, weight)
    index.delete(sorted(twin.deleted))
    twin.edges = {
        key: weight for key, weight in twin.edges.items() if not twin.deleted.intersection(key[:2])
    }
    return index


def assert_nearest(
    twin: Twin,
    ids: npt.NDArray[np.int64],
    distances: npt.NDArray[np.float32],
    query: npt.ArrayLike,
    k: int,
    where: Filter | None,
) -> None:
    """Exactly the k nearest accepted nodes; which of several at one distance does not matter."""
    expected = twin.distances(query, where)[:k]
    assert len(ids) == len(distances) == len(expected)
    assert len(set(ids.tolist())) == len(ids)
    np.testing.assert_allclose(distances, [d for d, _ in expected], atol=2e-5, rtol=1e-5)
    for node, distance in zip(ids.tolist(), distances.tolist(), strict=True):
        assert node in twin.found(where)
        assert abs(distance - twin.distance(query, node)) < 2e-5 * (1 + abs(distance))


def panic(index: RawIndex, *, changing: bool) -> None:
    """Fail inside the lock of the index, with the module that `make` builds for tests."""
    if not hasattr(index._native, "_panic"):
        pytest.skip("built without test-hooks, which `make` builds the module with")
    index._native._panic(changing)
