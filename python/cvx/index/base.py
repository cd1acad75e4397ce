"""The raw index as one class."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy.typing as npt

from cvx._cvx import NativeIndex
from cvx.arguments import wrong
from cvx.errors import PoisonedIndexError
from cvx.index.edges import Edges
from cvx.index.regions import Regions
from cvx.index.rows import Rows
from cvx.index.search import Search
from cvx.index.walks import Walks
from cvx.types import Vector


class TemporalIndex(Rows, Search, Edges, Walks, Regions):
    """Nodes in time: found by similarity, followed along timelines and typed edges.

    Safe to share between threads: searches run side by side, changes one after the other. It
    pickles, and a copy (``copy.copy`` or ``copy.deepcopy``) is an index of its own.

    Parameters
    ----------
    dim : int
        Length of the vectors, at least 1.
    metric : {"cosine", "l2", "ip"}, default "cosine"
        Distance (lower is nearer): 1 - cosine, squared euclidean, 1 - inner product.
    m : int, default 16
        Links a node in the graph, twice as many at its ground level; at least 2.
    ef_construction : int, default 200
        Width of the walk while inserting, at least 1.
    seed : int, default 0
        Same seed, same input: same bytes, at any number of threads.
    exact_below : int, default 10_000
        With fewer vectors than this, searches compare with every one of them.

    Raises
    ------
    InvalidParameterError, UnknownMetricError
        A parameter outside its bounds.

    References
    ----------
    Malkov & Yashunin, "Efficient and robust approximate nearest neighbor search using
    hierarchical navigable small world graphs", 2018.

    Examples
    --------
    >>> from cvx.index import TemporalIndex
    >>> ix = TemporalIndex(dim=3)
    >>> ix.insert(1, 100, [1.0, 0.0, 0.0])
    0
    >>> len(ix), 0 in ix, ix.search([1, 0, 0])[0]
    (1, True, array([0]))
    """

    def __init__(
        self,
        dim: int,
        metric: str = "cosine",
        m: int = 16,
        ef_construction: int = 200,
        seed: int = 0,
        *,
        exact_below: int = 10_000,
    ) -> None:
        self._adopt(NativeIndex(dim, metric, m, ef_construction, seed, exact_below))

    def _adopt(self, native: NativeIndex) -> None:
        self._native = native
        self._params = native.params()
        self._dim = int(self._params["dim"])

    def become(self, other: Self) -> None:
        """Take over everything of another index, which must not be used any more.

        Raises
        ------
        InvalidParameterError
            No index.
        """
        if not isinstance(other, TemporalIndex):
            raise wrong("other", other, "a TemporalIndex")
        before = self.region_epoch
        self._adopt(other._native)
        # What was learned on the regions of before must not pass for learned on these.
        self._epochs += max(0, before + 1 - self.region_epoch)

    @property
    def dim(self) -> int:
        """Length of the vectors."""
        return self._dim

    @property
    def metric(self) -> str:
        """Name of the distance: "cosine", "l2" or "ip"."""
        return str(self._params["metric"])

    @property
    def seed(self) -> int:
        """What levels, and with them graph and regions, are drawn from."""
        return int(self._params["seed"])

    @property
    def params(self) -> dict[str, Any]:
        """What the index was made with, by name."""
        return dict(self._params)

    @property
    def center(self) -> Vector | None:
        """Where distances are taken from: ndarray of shape (dim,), float32, or None.

        Set it to a vector, to ``"mean"`` (that of the vectors now stored) or to ``None``. Rows and
        queries are compared as x - center, for cosine renormalised. Setting it rebuilds the graph
        from the rows as they were inserted, and begins a new epoch of regions.

        Raises
        ------
        InvalidVectorError, InvalidParameterError
            No usable vector; another word than "mean".
        NoVectorError
            The mean of an index without vectors.
        """
        return self._native.center()

    @center.setter
    def center(self, center: npt.ArrayLike | None) -> None:
        self._native.set_center(center)

    def save(self, path: str | os.PathLike[str], metadata: bytes = b"") -> None:
        """Write a snapshot: one file, written beside and renamed, so that it is whole or absent.

        A file that is there is replaced, never written to: who has it mapped keeps it.

        Parameters
        ----------
        path : str or os.PathLike
            Where: a new file, or one to be replaced.
        metadata : bytes, default b""
            The caller's own, at most 65,536 bytes: it stands in the header, under its checksum.

        Raises
        ------
        SnapshotIOError
            The file system refused; or there is something else than a regular file, such as a
            symbolic link, a device or a folder.
        InvalidParameterError
            Too much metadata.
        """
        self._native.save(path, metadata)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, verify: bool = False, mmap: bool = False
    ) -> Self:
        """Open a snapshot.

        Header, metadata, columns, links, timelines, postings and edges are held against their
        checksums and against each other before this returns. A damaged row (vectors and their
        codes, most of the file) is a wrong distance, never a fault.

        Parameters
        ----------
        path : str or os.PathLike
            What `save` wrote.
        verify : bool, default False
            Whether to hold the rows against their checksums as well, and to refuse one that
            `insert` would refuse, which takes as long as reading the file.
        mmap : bool, default False
            Whether to map the file instead of reading it: it opens in milliseconds, and rows take
            memory only where a search needs them. Only for a file that nobody writes to while it is
            open: one that is cut off, or copied over, ends the process (SIGBUS). To replace it by
            `save` or a rename, or to remove it, is safe.

        Raises
        ------
        SnapshotIOError
            There is no such file, or it cannot be read.
        NotASnapshotError, UnsupportedVersionError, TruncatedSnapshotError, CorruptedSnapshotError
            The file is not, or no longer, what `save` wrote.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from cvx.index import TemporalIndex
        >>> ix = TemporalIndex(dim=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "a.cvx")
        ...     ix.save(path, metadata=b"of 7 May")
        ...     TemporalIndex.load(path, verify=True).metadata, TemporalIndex.read_metadata(path)
        (b'of 7 May', b'of 7 May')
        """
        index = cls.__new__(cls)
        index._adopt(NativeIndex.load(path, verify, mmap))
        return index

    @staticmethod
    def read_metadata(path: str | os.PathLike[str]) -> bytes:
        """Read what the caller of `save` put into the header, and nothing behind it.

        Raises
        ------
        SnapshotIOError
            There is no such file, or it cannot be read.
        NotASnapshotError, UnsupportedVersionError, TruncatedSnapshotError, CorruptedSnapshotError
            The file has no sound header.
        """
        return NativeIndex.read_metadata(path)

    @property
    def metadata(self) -> bytes:
        """The metadata of the snapshot that this index was loaded from; otherwise empty."""
        return self._native.metadata()

    def validate(self) -> None:
        """Check all that the parts of the index rely on in each other; for tests and doctors.

        Raises
        ------
        PoisonedIndexError
            Something does not hold: the index can no longer be trusted.
        """
        if (reason := self._native.validate()) is not None:
            raise PoisonedIndexError(
                f"unsound index ({reason}): load another snapshot, or build it again"
            )

    def __getstate__(self) -> dict[str, Any]:
        """Return everything, the native index as a snapshot: copies and pickles are whole."""
        return self.__dict__ | {"_native": self._native.to_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over what ``__getstate__`` returned, held against its checksums."""
        self.__dict__.update(state)
        self._adopt(NativeIndex.from_bytes(state["_native"]))

    def stats(self) -> dict[str, Any]:
        """Count what the index holds.

        Returns
        -------
        dict
            nodes, ids_given (deleted ones included), vectors, deleted_rows (left until `compact`),
            edges (typed), timelines, namespaces, top_level, region_epoch, kernels (the instruction
            set of the distances), bytes (of memory, of rows and links; mapped ones not counted).
        """
        return self._native.stats()

    def __repr__(self) -> str:
        return f"TemporalIndex(dim={self.dim}, metric={self.metric!r}, nodes={len(self)})"
