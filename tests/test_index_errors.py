"""Every error of the tree can be raised, and says what was wrong, what is right, what to do."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cvx.errors
from cvx.errors import CvxError
from cvx.index import TemporalIndex
from cvx.types import Filter

ix = TemporalIndex(3, m=2)
ix.bulk_insert([1, 1, 2], [10, 20, 10], [[1, 0, 0], [0, 1, 0], None], namespaces=["", "", "other"])
ix.refresh_regions()


def poisoned() -> object:
    index = TemporalIndex(2)
    with pytest.raises(cvx.errors.InternalError):
        index._native._panic(True)
    return len(index)


def full() -> None:
    index = TemporalIndex(2)
    for n in range(1_025):
        index.declare_edge_kind(f"kind_{n}")


def centre_of_nothing() -> None:
    TemporalIndex(2).center = "mean"


def damaged(folder: Path, name: str, change: Callable[[bytes], bytes]) -> Path:
    ix.save(folder / "good.cvx")
    (folder / name).write_bytes(change((folder / "good.cvx").read_bytes()))
    return folder / name


# Class: what raises it, and a pattern for value, bound and cure.
PROVOKED: dict[str, list[tuple[Callable[[Path], Any], str]]] = {
    "InvalidParameterError": [
        (lambda _: TemporalIndex(0), "dim is 0.*1 or more"),
        (lambda _: TemporalIndex(2, m=1), "m is 1.*2 or more"),
        (lambda _: TemporalIndex(2, ef_construction=0), "ef_construction is 0.*1 or more"),
        (lambda _: TemporalIndex(2, seed=-1), "seed -1.*from 0"),
        (lambda _: ix.search([1, 0, 0], ef=0), "ef is 0.*1 or more"),
        (lambda _: ix.insert(1, 2**63, [1, 0, 0]), "9223372036854775808.*64 bits"),
        (lambda _: ix.hybrid_search([1, 0, 0], beta=2), r"beta is 2.*0.*1"),
    ],
    "InvalidKError": [(lambda _: ix.search([1, 0, 0], 0), "k is 0.*1 or more")],
    "UnknownMetricError": [(lambda _: TemporalIndex(2, "hamming"), "hamming.*cosine, l2, ip")],
    "InvalidVectorError": [
        (lambda _: ix.search("north"), "dtype.*pass real numbers"),
        (lambda _: ix.search([[1, 0, 0], [1]]), "same length"),
        (lambda _: ix.search(np.ones((2, 2, 3))), r"\(2, 2, 3\).*\(dim,\)"),
        (lambda _: ix.search(1.0), r"shape \(\)"),
        (lambda _: ix.search([1j, 0, 0]), "complex.*real"),
        (lambda _: ix.causal_search(np.ones((2, 3))), "2 x 3.*one row"),
        (lambda _: ix.bulk_insert([1], [1], [1.0, 0, 0]), "matrix"),
        (lambda _: ix.insert(1, 1, [3e38, 3e38, 3e38]), "1e18.*scale"),
    ],
    "DimensionError": [
        (lambda _: ix.insert(1, 1, [1, 0]), "2 dimensions, the index 3.*embed"),
        (lambda _: ix.search([1, 0, 0, 0]), "4 dimensions, the index 3.*embed"),
        (lambda _: ix.search(np.empty((0, 2))), "2 dimensions, the index 3.*embed"),
        (lambda _: ix.search([]), "0 dimensions, the index 3.*embed"),
        (lambda _: ix.bulk_insert([1], [1], [[1.0, 0]]), "2 dimensions, the index 3.*embed"),
    ],
    "NonFiniteVectorError": [
        (lambda _: ix.search([1, np.nan, 0]), "component 1.*NaN.*finite"),
        (lambda _: ix.insert(1, 1, [1, 0, -np.inf]), "component 2.*-inf.*finite"),
        (lambda _: ix.insert(1, 1, [1e39, 0, 0]), "component 0.*inf.*finite"),
    ],
    "ZeroVectorError": [
        (lambda _: ix.insert(1, 1, [0, 0, 0]), "length 0.*direction.*l2"),
        (lambda _: ix.search([0, 0, 0]), "length 0.*direction.*l2"),
    ],
    "LengthMismatchError": [
        (lambda _: ix.bulk_insert([1, 2], [1], np.eye(3)[:2]), "timestamps has 1.*2"),
        (lambda _: ix.bulk_insert([1, 2], [1, 2], np.eye(3)), "vectors has 3.*2"),
    ],
    "InvalidEntityError": [
        (lambda _: ix.insert(-1, 1, [1, 0, 0]), "entity -1.*from 0"),
        (lambda _: ix.insert(2**64, 1, [1, 0, 0]), "18446744073709551616.*from 0"),
        (lambda _: ix.bulk_insert([-4], [1], [[1, 0, 0]]), "entity -4.*from 0"),
        (lambda _: ix.bulk_insert([1.5], [1], [[1, 0, 0]]), "float64.*integers"),
        (lambda _: ix.trajectory(-1), "entity -1.*from 0"),
    ],
    "InvalidInputError": [
        (lambda _: ix.bulk_insert([1], ["now"], [[1, 0, 0]]), "timestamps.*64-bit integers"),
        (lambda _: ix.insert(1, 1, [1, 0, 0], tags="x"), "'x'.*set of strings"),
    ],
    "RewardRangeError": [
        (lambda _: ix.insert(1, 1, [1, 0, 0], reward=1.5), r"1\.5.*\[0, 1\].*scale"),
        (lambda _: ix.set_reward(0, -0.5), r"-0\.5.*\[0, 1\].*scale"),
        (lambda _: ix.set_reward(0, float("nan")), r"NaN.*\[0, 1\].*scale"),
    ],
    "InvertedRangeError": [
        (lambda _: ix.search([1, 0, 0], where=Filter(since=9, until=3)), r"9\.\.3.*first"),
        (lambda _: ix.trajectory(1, 9, 3), r"9\.\.3.*first"),
    ],
    "InvalidFilterError": [
        (lambda _: ix.search([1, 0, 0], where={}), r"\{\}.*cvx\.Filter"),  # type: ignore[arg-type]
        (lambda _: ix.search([1, 0, 0], where=Filter(tags="x")), "tags.*x.*cvx.Filter"),
    ],
    "EdgeWeightError": [
        (lambda _: ix.add_edge(0, 1, "caused", 2), r"weight 2.*\[0, 1\].*scale"),
        (
            lambda _: ix.graph_search([1, 0, 0], edge_boost={"caused": 2}),
            r"boost 2.*\[0, 1\].*scale",
        ),
    ],
    "InvalidEdgeError": [
        (lambda _: ix.add_edge(0, 0, "caused"), "node 0 to itself.*two nodes"),
        (lambda _: ix.add_edge(0, 1, "temporal"), "temporal.*insert the nodes"),
    ],
    "InvalidEdgeKindNameError": [(lambda _: ix.declare_edge_kind("A b"), "A b.*lower snake")],
    "UnknownNodeError": [
        (lambda _: ix.step(3), "node 3"),
        (lambda _: ix.step(-1), "node -1.*insert"),
        (lambda _: ix.set_recallable(99, True), "node 99"),
        (lambda _: ix.predecessors(2**33), "node 8589934592"),
    ],
    "UnknownEntityError": [
        (lambda _: ix.trajectory(7), "entity 7.*''|entity 7.*\"\""),
        (lambda _: ix.trajectory(1, namespace="other"), "entity 1.*other"),
    ],
    "UnknownLevelError": [(lambda _: ix.regions(40), r"level 40.*\[0")],
    "UnknownRegionError": [(lambda _: ix.region_members(2, 0), "node 2.*level 0.*regions")],
    "UnknownEdgeKindError": [
        (lambda _: ix.add_edge(0, 1, "helps"), "helps.*caused_failure.*declare")
    ],
    "UnknownEdgeError": [(lambda _: ix.remove_edge(0, 1, "caused"), "caused.*0.*1.*typed_neigh")],
    "NoVectorError": [(lambda _: centre_of_nothing(), "no vector.*insert")],
    "CapacityError": [(lambda _: full(), "1,024.*use one of them")],
    "NotASnapshotError": [
        (lambda d: TemporalIndex.load(damaged(d, "x", lambda _: b"?" * 99)), "x.*not.*save")
    ],
    "TruncatedSnapshotError": [
        (
            lambda d: TemporalIndex.load(damaged(d, "x", lambda b: b[: len(b) // 2])),
            "ends.*section.*rebuild",
        )
    ],
    "CorruptedSnapshotError": [
        (
            lambda d: TemporalIndex.load(damaged(d, "x", lambda b: b[:-40] + bytes(40))),
            "section.*damaged.*rebuild",
        )
    ],
    "SnapshotIOError": [(lambda d: TemporalIndex.load(d / "nowhere"), "nowhere.*check the path")],
    "InternalError": [(lambda _: ix._native._panic(False), "on purpose.*report")],
    "PoisonedIndexError": [(lambda _: poisoned(), "half way.*load it")],
}

CASES = [(name, *case) for name, cases in PROVOKED.items() for case in cases]


@pytest.mark.parametrize(("name", "call", "pattern"), CASES, ids=[c[0] for c in CASES])
def test_an_error_names_value_bound_and_cure(
    name: str, call: Callable[[Path], Any], pattern: str, tmp_path: Path
) -> None:
    with pytest.raises(CvxError) as caught:
        call(tmp_path)
    assert type(caught.value).__name__ == name
    assert re.search(pattern, str(caught.value), re.DOTALL), str(caught.value)
    # The builtin of the same meaning catches it too.
    assert isinstance(
        caught.value, ValueError | LookupError | RuntimeError | OSError | OverflowError
    )
    assert len(ix) == 3


def classes() -> list[type[CvxError]]:
    return [
        value
        for _, value in inspect.getmembers(cvx.errors, inspect.isclass)
        if issubclass(value, CvxError)
    ]


def test_every_error_class_has_a_test_that_raises_it() -> None:
    leaves = [c.__name__ for c in classes() if not c.__subclasses__()]
    sources = "\n".join(p.read_text() for p in Path(__file__).parent.rglob("test_*.py"))
    asserted = set(re.findall(r"raises\(\s*\(?\s*(?:errors\.|cvx\.errors\.)?(\w+Error)", sources))
    unproved = {name for name in leaves if not PROVOKED.get(name) and name not in asserted}
    assert unproved == set()


def test_every_class_is_documented_and_fits_a_builtin() -> None:
    for error in classes():
        assert error.__doc__
        assert str(error("as it is")) == "as it is"
        if error not in (CvxError, cvx.errors.SnapshotError):
            builtin = [b for b in error.__mro__ if b.__module__ == "builtins"]
            assert builtin[0] not in (Exception, BaseException, object)
