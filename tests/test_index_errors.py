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
from cvx.index import RawIndex
from cvx.types import Filter
from tests.index_twin import panic


@pytest.fixture
def index() -> RawIndex:
    ix = RawIndex(3, m=2)
    vectors = [[1, 0, 0], [0, 1, 0], None]
    ix.bulk_insert([1, 1, 2], [10, 20, 10], vectors, namespaces=["", "", "other"])
    ix.refresh_regions()
    return ix


def poisoned() -> object:
    index = RawIndex(2)
    with pytest.raises(cvx.errors.InternalError):
        panic(index, changing=True)
    return len(index)


def full() -> None:
    index = RawIndex(2)
    for n in range(1_025):
        index.declare_edge_kind(f"kind_{n}")


def centre_of_nothing() -> None:
    RawIndex(2).center = "mean"


def damaged(ix: RawIndex, folder: Path, name: str, change: Callable[[bytes], bytes]) -> Path:
    ix.save(folder / "good.cvx")
    (folder / name).write_bytes(change((folder / "good.cvx").read_bytes()))
    return folder / name


Call = Callable[[RawIndex, Path], Any]

# Class: what raises it, and a pattern for value, bound and cure.
PROVOKED: dict[str, list[tuple[Call, str]]] = {
    "InvalidInputError": [
        (lambda *_: RawIndex(0), "dim is 0.*at least 1"),
        (lambda *_: RawIndex(2, m=1), "m is 1.*at least 2"),
        (lambda *_: RawIndex(2, ef_construction=0), "ef_construction is 0.*at least 1"),
        (lambda *_: RawIndex(2, seed=-1), "seed is -1.*from 0"),
        (lambda ix, _: ix.search([1, 0, 0], ef=0), "ef is 0.*at least 1"),
        (lambda ix, _: ix.insert(1, 2**63, [1, 0, 0]), "9223372036854775808.*64 bits"),
        (lambda ix, _: ix.hybrid_search([1, 0, 0], beta=2), r"beta is 2.*0.*1"),
        (lambda ix, _: ix.insert(1, 1, [1, 0, 0], tags="x"), "tags is 'x'.*list of str"),
        (lambda ix, _: ix.search([1, 0, 0], 0), "k is 0.*at least 1"),
        (lambda *_: RawIndex(2, "hamming"), "hamming.*cosine, l2, ip"),
        (lambda ix, _: ix.bulk_insert([1, 2], [1], np.eye(3)[:2]), "timestamps has 1.*2"),
        (lambda ix, _: ix.bulk_insert([1, 2], [1, 2], np.eye(3)), "vectors has 3.*2"),
        (lambda ix, _: ix.insert(-1, 1, [1, 0, 0]), "entity_id is -1.*from 0"),
        (lambda ix, _: ix.insert(2**64, 1, [1, 0, 0]), "18446744073709551616.*from 0"),
        (lambda ix, _: ix.bulk_insert([-4], [1], [[1, 0, 0]]), r"entity_ids\[0\] is -4.*from 0"),
        (lambda ix, _: ix.bulk_insert([1.5], [1], [[1, 0, 0]]), r"\[1\.5\].*integers"),
        (lambda ix, _: ix.trajectory(-1), "entity_id is -1.*from 0"),
        (lambda ix, _: ix.bulk_insert([1], ["now"], [[1, 0, 0]]), "timestamps.*64-bit integers"),
        (lambda ix, _: ix.insert(1, 1, [1, 0, 0], reward=1.5), r"1\.5.*\[0, 1\].*scale"),
        (lambda ix, _: ix.set_reward(0, -0.5), r"-0\.5.*\[0, 1\].*scale"),
        (lambda ix, _: ix.set_reward(0, float("nan")), r"NaN.*\[0, 1\].*scale"),
        (lambda ix, _: ix.search([1, 0, 0], where=Filter(since=9, until=3)), r"9.*3.*(swap|first)"),
        (lambda ix, _: ix.trajectory(1, 9, 3), r"9.*3.*(swap|first)"),
        (lambda ix, _: ix.search([1, 0, 0], where=1), r"where is 1.*cvx\.Filter"),  # type: ignore[arg-type]
        (
            lambda ix, _: ix.search([1, 0, 0], where=Filter(tags=3)),  # type: ignore[arg-type]
            "where.tags is 3.*a list",
        ),
        (lambda ix, _: ix.add_edge(0, 1, "caused", 2), r"weight 2.*\[0, 1\].*scale"),
        (
            lambda ix, _: ix.graph_search([1, 0, 0], edge_boost={"caused": 2}),
            r"boost 2.*\[0, 1\].*scale",
        ),
        (lambda ix, _: ix.add_edge(0, 0, "caused"), "node 0 to itself.*two nodes"),
        (lambda ix, _: ix.add_edge(0, 1, "temporal"), "temporal.*insert the nodes"),
        (lambda ix, _: ix.declare_edge_kind("A b"), "A b.*lower snake"),
        (lambda *_: full(), "1,024.*use one of them"),
    ],
    "InvalidVectorError": [
        (lambda ix, _: ix.search("north"), "dtype.*pass real numbers"),
        (lambda ix, _: ix.search([[1, 0, 0], [1]]), "same length"),
        (lambda ix, _: ix.search(np.ones((2, 2, 3))), r"\(2, 2, 3\).*\(dim,\)"),
        (lambda ix, _: ix.search(1.0), r"shape \(\)"),
        (lambda ix, _: ix.search([1j, 0, 0]), "complex.*real"),
        (lambda ix, _: ix.causal_search(np.ones((2, 3))), "2 x 3.*one row"),
        (lambda ix, _: ix.bulk_insert([1], [1], [1.0, 0, 0]), "matrix"),
        (lambda *_: RawIndex(2, "l2").insert(1, 1, [3e38, 3e38]), "beyond.*scale"),
        (lambda ix, _: ix.insert(1, 1, [1, 0]), "2 dimensions, the index 3.*embed"),
        (lambda ix, _: ix.search([1, 0, 0, 0]), "4 dimensions, the index 3.*embed"),
        (lambda ix, _: ix.search(np.empty((0, 2))), "2 dimensions, the index 3.*embed"),
        (lambda ix, _: ix.search([]), "0 dimensions, the index 3.*embed"),
        (lambda ix, _: ix.bulk_insert([1], [1], [[1.0, 0]]), "2 dimensions, the index 3.*embed"),
        (lambda ix, _: ix.search([1, np.nan, 0]), "(NaN.*1|1.*NaN).*finite"),
        (lambda ix, _: ix.insert(1, 1, [1, 0, -np.inf]), "(-inf.*2|2.*-inf).*finite"),
        (lambda ix, _: ix.insert(1, 1, [1e39, 0, 0]), "(inf.*0|0.*inf).*finite"),
        (lambda ix, _: ix.insert(1, 1, [0, 0, 0]), "(zero|length 0).*direction.*l2"),
        (lambda ix, _: ix.search([0, 0, 0]), "(zero|length 0).*direction.*l2"),
    ],
    "UnknownError": [
        (lambda ix, _: ix.step(3), "node 3"),
        (lambda ix, _: ix.step(-1), "node -1.*insert"),
        (lambda ix, _: ix.set_recallable(99, True), "node 99"),
        (lambda ix, _: ix.predecessors(2**33), "node 8589934592"),
        (lambda ix, _: ix.trajectory(7), "entity 7.*''|entity 7.*\"\""),
        (lambda ix, _: ix.trajectory(1, namespace="other"), "entity 1.*other"),
        (lambda ix, _: ix.regions(40), r"level 40.*\[0"),
        (lambda ix, _: ix.region_members(2, 0), "node 2.*level 0.*regions"),
        (lambda ix, _: ix.add_edge(0, 1, "helps"), "helps.*caused_failure.*declare"),
        (lambda ix, _: ix.remove_edge(0, 1, "caused"), "caused.*0.*1.*typed_neigh"),
        (lambda *_: centre_of_nothing(), "vector.*insert"),
    ],
    "SnapshotError": [
        (
            lambda ix, d: RawIndex.load(damaged(ix, d, "x", lambda _: b"?" * 99)),
            "x is not a cvx snapshot",
        ),
        (
            lambda ix, d: RawIndex.load(damaged(ix, d, "x", lambda b: b[: len(b) // 2])),
            "ends.*rebuild",
        ),
        (
            lambda ix, d: RawIndex.load(damaged(ix, d, "x", lambda b: b[:-1] + b"?")),
            "damaged.*rebuild",
        ),
        (lambda _, d: RawIndex.load(d / "nowhere"), "cannot.*nowhere"),
    ],
    "InternalError": [
        (lambda ix, _: panic(ix, changing=False), "on purpose.*report"),
        (lambda *_: poisoned(), "half way.*load it"),
    ],
}

CASES = [(name, *case) for name, cases in PROVOKED.items() for case in cases]


@pytest.mark.parametrize(("name", "call", "pattern"), CASES, ids=[c[0] for c in CASES])
def test_an_error_names_value_bound_and_cure(
    index: RawIndex, name: str, call: Call, pattern: str, tmp_path: Path
) -> None:
    with pytest.raises(CvxError) as caught:
        call(index, tmp_path)
    assert type(caught.value).__name__ == name
    assert re.search(pattern, str(caught.value), re.DOTALL), str(caught.value)
    # The builtin of the same meaning catches it too.
    assert isinstance(
        caught.value, ValueError | LookupError | RuntimeError | OSError | OverflowError
    )
    assert len(index) == 3


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
