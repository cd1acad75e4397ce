"""Copies and pickles of an index: whole, and apart from the original."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cvx
from cvx import index as raw
from cvx.errors import SnapshotError

Copy = Callable[[raw.RawIndex], raw.RawIndex]
KINDS = [raw.RawIndex, cvx.TemporalIndex]
COPIES: dict[str, Copy] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda index: pickle.loads(pickle.dumps(index)),
}
copies = pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
kinds = pytest.mark.parametrize("kind", KINDS)


def lived(kind: type[raw.RawIndex], folder: Path) -> raw.RawIndex:
    """An index with every kind of content, a history, metadata, and regions of its second life."""
    rng = np.random.default_rng(5)
    index = kind(4, seed=2)
    index.bulk_insert(
        np.arange(300) % 7,
        np.arange(300),
        rng.normal(size=(300, 4)),
        rewards=(np.arange(300) % 2).astype(np.float32),
        namespaces=["" if n % 5 else "other" for n in range(300)],
        actions=["go to the desk" if n % 3 else "take the mug" for n in range(300)],
    )
    index.declare_edge_kind("reminds_of")
    index.add_edge(1, 2, "reminds_of", 0.5)
    index.delete([5, 6])
    index.compact()
    index.center = rng.normal(size=4)
    index.save(folder / "lived.cvx", metadata=b"of May")
    index.become(type(index).load(folder / "lived.cvx"))
    return index


def told(index: raw.RawIndex, folder: Path) -> tuple[Any, ...]:
    index.save(folder / "told.cvx", metadata=index.metadata)
    return (folder / "told.cvx").read_bytes(), index.region_epoch, index.params


@pytest.mark.requirement("V19")
@kinds
@copies
def test_a_copy_is_whole_and_goes_its_own_way(
    kind: type[raw.RawIndex], copied: Copy, tmp_path: Path
) -> None:
    original = lived(kind, tmp_path)
    before = told(original, tmp_path)
    other = copied(original)
    assert type(other) is kind
    assert told(other, tmp_path) == before
    node = other.insert(1, 500, [1, 2, 3, 4])
    other.delete([7])
    other.set_reward(8, 0.25)
    other.add_edge(1, 9, "caused")
    other.validate()
    assert told(original, tmp_path) == before
    assert original.insert(1, 500, [1, 2, 3, 4]) == node
    assert 7 in original


@pytest.mark.requirement("V11")
@copies
def test_a_copy_has_a_best_action_of_its_own(copied: Copy, tmp_path: Path) -> None:
    original = lived(cvx.TemporalIndex, tmp_path)
    assert isinstance(original, cvx.TemporalIndex)
    model = original.transition_model()
    region = model.assign(np.array([1, 0, 0, 0], np.float32))
    before = original.best_action(region)
    other = copied(original)
    assert isinstance(other, cvx.TemporalIndex)
    assert other.best_action(region) == before
    hubs = set(original.regions(model.level).tolist())
    gone = [n for n in range(7, 300) if n % 2 and n not in hubs]
    original.delete(gone)
    assert original.best_action(region) != before
    assert other.best_action(region) == before
    other.delete(gone)
    assert other.best_action(region) == original.best_action(region)


def test_what_holds_an_index_twice_holds_its_copy_twice() -> None:
    index = raw.RawIndex(2)
    one, again = copy.deepcopy([index, index])
    assert one is again
    assert one is not index


@pytest.mark.requirement("V10")
def test_a_damaged_pickle_is_refused_by_name() -> None:
    index = raw.RawIndex(2)
    index.insert(1, 1, [1, 0])
    whole = pickle.dumps(index)
    at = whole.index(b"CVXINDEX") + 100
    with pytest.raises(SnapshotError, match=r": \w+"):
        pickle.loads(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])


def test_an_index_tells_what_it_holds() -> None:
    index = raw.RawIndex(dim=2)
    index.bulk_insert(vectors=[[1, 0], None])
    told = "RawIndex(dim=2, metric='cosine', nodes=2, vectors=1, edges=0, timelines=1, namespaces=1"
    assert repr(index) == f"{told}, center=None)"
    index.center = [0.5, 0.5]
    assert repr(copy.copy(index)) == f"{told}, center='set')"
    page = index._repr_html_()
    assert "<caption>RawIndex</caption>" in page
    assert "<tr><th>nodes</th><td>2</td></tr>" in page
