"""Hits that are made when they are read."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pickle import dumps, loads
from typing import Any

import pytest

from cvx.index import RawIndex
from cvx.types import Edge, Step


@pytest.fixture
def index() -> RawIndex:
    index = RawIndex(2)
    index.bulk_insert(
        [1, 1, 2], [10, 20, 30], [[1, 0], [1, 1], [0, 1]], actions=["open", None, "take"]
    )
    index.add_edge(0, 2, "caused", 0.5)
    return index


def test_hits_are_a_sequence_that_equals_its_list(index: RawIndex) -> None:
    hits = index.causal_search([1, 0], 3, 1)
    assert len(hits) == len(list(hits)) == 3
    assert hits == list(hits)
    assert hits == index.causal_search([1, 0], 3, 1)
    assert hits != index.causal_search([0, 1], 3, 1)
    assert hits[-1] in hits
    assert hits[:2] == [hits[0], hits[1]]
    assert hits[0] is hits[0]
    assert repr(hits) == repr(list(hits))
    with pytest.raises(IndexError):
        hits[3]


def test_what_was_found_stays_though_the_index_changes(index: RawIndex) -> None:
    causal = index.causal_search([1, 0], 1, 5)
    graph = index.graph_search([1, 0], 3, {"caused": 1.0})
    index.delete([1, 2])
    index.set_reward(0, 0.5)
    assert (causal[0].action, causal[0].reward) == ("open", None)
    assert causal[0].successors == (Step(1, 1, 20, None, None),)
    paths = {hit.node: (hit.action, hit.path) for hit in graph}
    assert paths[2] == ("take", (Edge(0, 2, "caused", 0.5, boost=1.0),))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda hits: loads(dumps(hits))])
def test_hits_are_copied_and_pickled_as_the_list_they_are(
    index: RawIndex, copied: Callable[[Any], Any]
) -> None:
    for hits in (index.causal_search([1, 0]), index.graph_search([1, 0])):
        assert copied(hits) == list(hits)
        assert [hit.node for hit in copied(hits)] == [0, 1, 2]
