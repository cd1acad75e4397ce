"""Whatever is given to an index: it is used, or refused by name, and then nothing has changed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cvx
from cvx.errors import CvxError
from cvx.index import RawIndex

# What each argument that cannot be left out may be, by its name.
RIGHT: dict[str, Any] = {
    "a": 0,
    "accept": None,
    "action": "open",
    "actions": ["open"],
    "alpha": 0.5,
    "b": 2,
    "beta": 0.5,
    "budget": 9,
    "center": None,
    "context": 1,
    "count": 1,
    "dim": 2,
    "direction": "out",
    "edge_boost": {"caused": 0.3},
    "edge_type": "caused",
    "edge_types": ["caused"],
    "ef": None,
    "ef_construction": 9,
    "entity_id": 0,
    "entity_ids": np.array([0], np.uint64),
    "exact_below": 9,
    "k": 2,
    "level": 0,
    "link": True,
    "m": 2,
    "max_depth": 2,
    "max_hops": 2,
    "max_paths": 2,
    "metadata": b"",
    "metric": "l2",
    "min_weight": 0.0,
    "n": 1,
    "name": "my_kind",
    "namespace": "",
    "namespaces": [""],
    "node": 0,
    "nodes": [0],
    "path": "/",
    "present": None,
    "query": [1, 0],
    "recallable": True,
    "region": 0,
    "reward": None,
    "rewards": None,
    "seed": 0,
    "since": None,
    "start": 0,
    "tags": None,
    "task_type": None,
    "task_types": None,
    "threads": 1,
    "timestamp": 5,
    "timestamps": np.array([3]),
    "until": None,
    "vector": [1, 0],
    "vectors": [[1, 0]],
    "verify": False,
    "mmap": False,
    "weight": 0.5,
    "window": 2,
}
# Described by their shape and dtype, as a whole array is nothing to print.
ARRAYS = {"query", "vector", "vectors", "center", "entity_ids"}
# What the native module calls otherwise than the public face does.
PUBLIC = {"accept": "where", "context": "temporal_context"}
FUNCTIONS = {"classify", "mend"}
# No argument is ever one of these, but for functions, which are given one.
STRANGE = (object(), 1j, len, NotImplemented, [object()], [[1j]])

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=3)
    | st.text(st.characters(categories=["Cs"]), min_size=1, max_size=2)
    | st.binary(max_size=3)
    | st.sampled_from([np.float32(0.5), np.int8(-1), np.bool_(True), np.zeros(3), np.zeros(1)])
    | st.sampled_from([np.array("x"), np.array([None]), np.array(2), object(), 1j])
)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2) | st.integers(), inner, max_size=2)
        | st.sets(st.integers() | st.text(max_size=2), max_size=2)
    ),
    max_leaves=4,
)


def some_nodes(kind: type[RawIndex] = RawIndex) -> RawIndex:
    index = kind(dim=2)
    vectors = [[1, 0], [0, 1], [1, 0.1]]
    index.bulk_insert([0, 0, 1], [0, 1, 2], vectors, rewards=[1, 1, 0], actions=["a", "b", "c"])
    index.add_edge(0, 1, "caused")
    return index


def state(index: RawIndex) -> object:
    """Everything that a change of the index would change."""
    nodes = [
        (index.step(node), index.tags(node), index.recallable(node), index.namespace(node))
        for node in range(index.stats()["ids_given"])
    ]
    vectors = [np.asarray(index.vector(node)).tolist() for node in range(len(nodes))]
    center = None if index.center is None else index.center.tolist()
    # Room that was made for rows which then were refused is no change.
    counts = {name: count for name, count in index.stats().items() if name != "bytes"}
    return nodes, vectors, center, index.edges(), index.edge_kinds, counts


def refusal(call: Callable[[], Any]) -> str:
    """What a call is refused with; empty where it is not."""
    try:
        call()
    except CvxError as error:
        return str(error)
    return ""


def methods(kind: type) -> dict[str, Callable[..., Any]]:
    found = inspect.getmembers(kind, callable)
    return {name: method for name, method in found if not name.startswith("_")}


def arguments(method: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(method).parameters
    return {name: parameter for name, parameter in parameters.items() if name != "self"}


Make = Callable[[], RawIndex]
Bound = Callable[[RawIndex, str], Callable[..., Any]]
Subject = tuple[str, Make, Bound, type]
KINDS: list[Subject] = [
    ("cvx", lambda: some_nodes(cvx.TemporalIndex), getattr, cvx.TemporalIndex),
    ("native", some_nodes, lambda ix, name: getattr(ix._native, name), type(RawIndex(2)._native)),
]
CASES = [
    pytest.param(make, bound, name, argument, id=f"{called}-{name}-{argument}")
    for called, make, bound, kind in KINDS
    for name, method in methods(kind).items()
    for argument in arguments(method)
]


def call(method: Callable[..., Any], argument: str, value: object) -> None:
    required = {
        name: RIGHT[name]
        for name, parameter in arguments(method).items()
        if parameter.default in (parameter.empty, ...) and name != argument
    }
    method(**{**required, argument: value})


@pytest.mark.parametrize(("make", "bound", "name", "argument"), CASES)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(value=anything)
def test_any_value_is_used_or_refused_by_name_and_then_nothing_has_changed(
    make: Make,
    bound: Bound,
    name: str,
    argument: str,
    value: Any,
) -> None:
    if argument == "path" and isinstance(value, str):
        return
    index = make()
    if said := refusal(lambda: call(bound(index, name), argument, value)):
        assert ": " in said
        assert state(index) == state(make())


@pytest.mark.parametrize(("make", "bound", "name", "argument"), CASES)
def test_what_no_argument_can_be_is_refused_by_the_name_of_the_argument(
    make: Make, bound: Bound, name: str, argument: str
) -> None:
    for value in STRANGE:
        if argument in FUNCTIONS and callable(value):
            continue
        index = make()
        if name == "contains":
            assert bound(index, name)(value) is False
            continue
        with pytest.raises(CvxError) as caught:
            call(bound(index, name), argument, value)
        called = PUBLIC.get(argument, argument)
        assert argument in ARRAYS or called in str(caught.value)
        assert isinstance(caught.value, ValueError)
        assert state(index) == state(make())


@given(value=anything)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_centre_is_used_or_refused(value: Any) -> None:
    index = some_nodes()
    if said := refusal(lambda: setattr(index, "center", value)):
        assert ": " in said
        assert state(index) == state(some_nodes())


@pytest.mark.parametrize("argument", arguments(cvx.TemporalIndex))
@given(value=anything)
@settings(max_examples=50, deadline=None, derandomize=True)
def test_an_index_is_made_or_refused(argument: str, value: Any) -> None:
    if said := refusal(lambda: cvx.TemporalIndex(**{"dim": 2, argument: value})):
        assert argument in said
        assert ": " in said
