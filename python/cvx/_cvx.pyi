"""The native module. `cvx.index` is its public face, and documents what these do."""

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "CausalRows",
    "GraphRows",
    "NativeIndex",
    "best",
    "best_by_idf",
    "candidates",
    "compact_json",
    "holds",
    "may_hide_orders",
    "neighbourhood",
    "row_checksums",
    "signal_columns",
    "stretched",
    "votes",
    "weighed",
    "window",
]

_File = str | os.PathLike[str]
_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float32]
_Doubles = npt.NDArray[np.float64]
_Flags = npt.NDArray[np.bool_]

# (node, entity, timestamp, action, reward)
_Step = tuple[int, int, int, str | None, float | None]
# (node, distance, score, similarity, entity, timestamp, reward, action)
_Hit = tuple[int, float, float, float, int, int, float | None, str | None]
# (from, to, kind, weight)
_Edge = tuple[int, int, str, float]
# (from, to, kind, weight, boost)
_Walked = tuple[int, int, str, float, float]
# (nodes, kinds, weights, strength)
_Path = tuple[list[int], list[str], list[float], float]

@final
class CausalRows:
    """Hits with the steps around them, kept until they are read."""

    def __len__(self) -> int: ...
    def rows(self) -> list[tuple[_Hit, list[_Step], list[_Step]]]:
        """All rows."""

@final
class GraphRows:
    """Hits with the edges that lead to them, kept until they are read."""

    def __len__(self) -> int: ...
    def rows(self) -> list[tuple[_Hit, list[_Walked]]]:
        """All rows."""

@final
class NativeIndex:
    """A temporal index. `cvx.index.RawIndex` is its public face."""

    def __new__(
        cls,
        dim: int,
        metric: str,
        m: int,
        ef_construction: int,
        seed: int,
        exact_below: int,
    ) -> NativeIndex: ...
    @staticmethod
    def load(path: _File, verify: bool, mmap: bool) -> NativeIndex:
        """Open a snapshot: its rows checked too, and the file mapped, if that is asked for."""

    @staticmethod
    def from_bytes(snapshot: bytes) -> NativeIndex:
        """Make an index from the bytes of a snapshot, all of which are checked."""

    def to_bytes(self) -> bytes:
        """The bytes of a snapshot, with the metadata of the one that was loaded."""

    @staticmethod
    def read_metadata(path: _File) -> bytes:
        """Read the metadata of a snapshot."""

    def save(self, path: _File, metadata: bytes) -> None:
        """Write a snapshot, all of it or nothing."""

    def metadata(self) -> bytes:
        """The metadata of the snapshot that was loaded."""

    def validate(self) -> str | None:
        """A sentence on the first invariant that does not hold."""

    def damaged(self) -> bool:
        """Whether rows of a snapshot were read that are not what was written."""

    def changes(self) -> int:
        """A number that is another after every change of the nodes."""

    def __len__(self) -> int: ...
    def params(self) -> dict[str, Any]:
        """What the index was made with."""

    def stats(self) -> dict[str, Any]:
        """Count what the index holds."""

    def center(self) -> _Floats | None:
        """The centre of the distances."""

    def set_center(self, center: npt.ArrayLike | None) -> None:
        """Take distances from a vector, from the mean (`"mean"`) or as they are (`None`)."""

    def insert(
        self,
        entity_id: int | None,
        timestamp: int | None,
        vector: npt.ArrayLike | None,
        reward: float | None,
        namespace: str,
        tags: Collection[str] | None,
        task_type: str | None,
        action: str | None,
        recallable: bool,
    ) -> int:
        """Add a node."""

    def bulk_insert(
        self,
        entity_ids: npt.ArrayLike | None,
        timestamps: npt.ArrayLike | None,
        vectors: _Floats | None,
        present: npt.NDArray[np.bool_] | None,
        rewards: Sequence[float | None] | npt.NDArray[Any] | None,
        namespaces: str | Sequence[str],
        tags: Sequence[Collection[str]] | None,
        task_types: Sequence[str | None] | None,
        actions: Sequence[str | None] | None,
        recallable: bool | Sequence[bool] | npt.NDArray[np.bool_],
        threads: int | None,
        link: bool,
    ) -> _Ints:
        """Add nodes, all or none. `present` tells the rows of `vectors` that are vectors."""

    def reserve(self, nodes: int) -> None:
        """Make room for so many more nodes."""

    def relink(self, threads: int | None) -> None:
        """Link all nodes anew, at once."""

    def delete(self, nodes: int | Sequence[int] | npt.NDArray[np.integer[Any]]) -> None:
        """Remove nodes, all or none."""

    def skip_ids(self, count: int) -> None:
        """Pass over ids, which are then never given."""

    def compact(self) -> None:
        """Give back what deleted nodes take."""

    def node_ids(self) -> _Ints:
        """Every node, those without a vector among them."""

    def contains(self, node: object) -> bool:
        """Whether a node exists and was not deleted."""

    def step(self, node: int) -> _Step:
        """The columns of a node."""

    def namespace(self, node: int) -> str:
        """Which memory a node is part of."""

    def tags(self, node: int) -> list[str]:
        """The labels of a node."""

    def set_tags(self, node: int, tags: Collection[str]) -> None:
        """Give a node other labels."""

    def vector(self, node: int) -> _Floats | None:
        """The vector as it was inserted."""

    def set_vector(self, node: int, vector: npt.ArrayLike | None) -> None:
        """Give a node another vector, or take it away."""

    def reward(self, node: int) -> float | None:
        """The outcome of a node."""

    def set_reward(self, node: int, reward: float | None) -> None:
        """Give a node an outcome, or take it away."""

    def recallable(self, node: int) -> bool:
        """Whether a node may advise."""

    def set_recallable(self, node: int, recallable: bool) -> None:
        """Let a node advise, or keep it from that."""

    def search(
        self,
        query: npt.ArrayLike,
        k: int,
        ef: int | None,
        accept: object,
        threads: int | None,
    ) -> tuple[_Ints, _Floats]:
        """Nearest nodes: (ids, distances), of one query or row by row."""

    def distances(self, query: npt.ArrayLike, nodes: _Ints) -> _Floats:
        """How far nodes are from a vector; NaN for what is none, or has none."""

    def vectors(self, nodes: _Ints) -> _Floats:
        """The vectors of nodes, row by row; 0 for what is none, or has none."""

    def causal_search(
        self, query: npt.ArrayLike, k: int, context: int, ef: int | None, accept: object
    ) -> CausalRows:
        """Nearest nodes with what came before and after each."""

    def hybrid_search(
        self, query: npt.ArrayLike, k: int, beta: float, ef: int | None, accept: object
    ) -> list[tuple[_Hit, tuple[int, float] | None]]:
        """Nodes by their own similarity or, discounted, that of a temporal neighbour."""

    def graph_search(
        self,
        query: npt.ArrayLike,
        k: int,
        edge_boost: Mapping[str, float],
        max_hops: int,
        ef: int | None,
        accept: object,
    ) -> GraphRows:
        """Nodes by similarity and by the boosted edges that lead to them from the nearest."""

    def trajectory(
        self, namespace: str, entity_id: int, since: int | None, until: int | None
    ) -> list[_Step]:
        """The steps of one entity in time order."""

    def predecessors(self, node: int, n: int) -> list[_Step]:
        """Up to `n` steps before a node, in time order."""

    def successors(self, node: int, n: int) -> list[_Step]:
        """Up to `n` steps after a node, in time order."""

    def declare_edge_kind(self, name: str) -> None:
        """Make a name an edge kind."""

    def edge_kinds(self) -> list[str]:
        """Every name that is an edge kind."""

    def add_edge(self, a: int, b: int, edge_type: str, weight: float) -> None:
        """Add an edge, or give it a new weight."""

    def remove_edge(self, a: int, b: int, edge_type: str) -> None:
        """Remove an edge."""

    def edges(self) -> list[_Edge]:
        """Every typed edge, by start, kind and end."""

    def typed_neighbors(
        self,
        node: int,
        edge_type: str | None,
        min_weight: float,
        direction: str,
        namespaces: Sequence[str] | None,
    ) -> list[_Edge]:
        """The edges of a node, temporal ones included."""

    def traverse(
        self,
        start: int,
        edge_types: str | Sequence[str],
        max_hops: int,
        max_paths: int,
        namespaces: Sequence[str] | None,
    ) -> list[_Path]:
        """Simple paths, strongest first."""

    def ancestors(
        self,
        node: int,
        edge_types: str | Sequence[str],
        max_depth: int,
        budget: int,
        direction: str,
        namespaces: Sequence[str] | None,
    ) -> dict[str, Any]:
        """What leads to a node, or what it leads to, as columns."""

    def region_levels(self) -> list[int]:
        """The levels that have regions."""

    def region_epoch(self) -> int:
        """Which snapshot of the hubs is in force."""

    def refresh_regions(self) -> None:
        """Take a new snapshot of the hubs."""

    def regions(self, level: int) -> _Ints:
        """The regions of a level."""

    def region_members(self, region: int, level: int) -> _Ints:
        """The nodes of a region."""

    def assign_region(self, vectors: npt.ArrayLike, level: int) -> int | _Ints:
        """The region of a vector, or of each row."""

    def region_assignments(self, level: int) -> tuple[_Ints, _Ints]:
        """Every node with a vector and its region."""

    def region_trajectory(
        self, namespace: str, entity_id: int, level: int, window: int, alpha: float
    ) -> tuple[_Doubles, _Doubles]:
        """Smoothed shares of the regions in an entity's windows of time: (centres, shares)."""

    def _panic(self, changing: bool) -> None:
        """Fail on purpose, inside the lock; there where it was built for tests, in no wheel."""

def window(rows: _Ints, before: _Ints, after: _Ints, readable: _Flags, reach: int) -> _Ints:
    """Rows with their readable neighbours in time, of shape (n, 2 * reach + 1), -1 for none.

    `before` and `after` are by row, as is `readable`; a row itself is always in its window.
    """

def best_by_idf(
    holders: Sequence[_Ints], idf: Sequence[float], visible: _Flags, lengths: _Ints, most: int
) -> tuple[_Ints, _Doubles]:
    """The visible rows that hold most of some words' idf, and their shares of it, best first.

    Of equal ones the shorter, then the newer.
    """

def votes(rankings: Sequence[_Ints], constant: float) -> tuple[_Ints, _Doubles]:
    """All rows of rankings, best first, and their sums of 1 / (constant + place)."""

def candidates(
    rankings: Sequence[tuple[_Ints, _Doubles]],
    constant: float,
    net: int,
    most: int,
    reach: int,
    others: _Ints,
    before: _Ints,
    after: _Ints,
    readable: _Flags,
    visible: _Flags,
) -> tuple[_Ints, _Doubles]:
    """Visible rows, ascending: the `net` with most votes, neighbours of the first `most`, others.

    Their columns are, of each ranking, the place from 1 and the score, NaN where it does not hold a
    row; then the votes, 0 where there are none.
    """

def neighbourhood(
    rows: _Ints, before: _Ints, after: _Ints, readable: _Flags, reach: int
) -> tuple[_Ints, _Ints]:
    """Rows and their neighbours, ascending, and where in these each place of a `window` stands.

    What is not there stands behind the last one.
    """

def holds(near: _Ints, holders: Sequence[_Ints]) -> _Doubles:
    """Whether each list, ascending, holds each row: of shape (lists, rows), 1 or 0."""

def signal_columns(
    near: _Ints,
    places: _Ints,
    similarity: _Doubles,
    holders: Sequence[_Ints],
    idf: Sequence[float],
    asks: _Flags,
    lengths: _Ints,
    sessions: _Ints,
) -> tuple[dict[str, _Doubles], _Doubles]:
    """Columns that compare vectors, words and sessions, and how good each candidate is by itself.

    `similarity` is of the near rows, NaN for none; `holders` and `idf` of the words of a question;
    `asks`, `lengths` and `sessions` of all rows.
    """

def stretched(columns: Sequence[_Doubles]) -> _Doubles:
    """Columns scaled to [0, 1] by their least and greatest finite value, of shape (columns, rows).

    0 for what is not finite, and where all are equal.
    """

def weighed(
    columns: Sequence[_Doubles], weights: Sequence[float], trust: _Doubles | None = None
) -> tuple[_Doubles, _Doubles, _Doubles, _Doubles]:
    """The columns and their shares, of shape (columns, rows), what multiplies these, and the sums.

    Trust multiplies a sum of at least 0, and 2 - trust one below.
    """

def best(
    scores: _Doubles,
    places: _Ints,
    salience: _Doubles,
    time: _Doubles,
    votes: _Doubles,
    events: _Ints,
    decimals: int,
) -> _Ints:
    """Places of a table by their scores to so many decimals, highest first.

    Of equal ones the salient (NaN is 0), then the newer, the voted for, the lower event.
    """

def may_hide_orders(texts: Sequence[str]) -> list[bool]:
    """Of each text whether it may read like an order, and patterns have to be asked.

    It is not plain ASCII, or holds a word of an order, letters that are spelled out, or Base64.
    """

def row_checksums(rows: Sequence[tuple[object, ...]]) -> list[int]:
    """The checksum of each row, without its last value.

    It is that of its bytes, then of the JSON of all values with the length of bytes in their place.
    """

def compact_json(value: object) -> str:
    """A value as ASCII JSON without spaces, as `json.dumps` has it; the keys of objects are texts.

    Of two shortest forms of a float that are as near, it may take the other one.

    Raises
    ------
    TypeError
        Something that JSON cannot hold.
    ValueError
        Lists a hundred deep.
    """
