"""What somebody who knows hnswlib or faiss would write first, from docs/index.md alone."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import numpy as np
import pytest

import cvx


def reopened(path: Path, query: np.ndarray) -> list[int]:
    index = cvx.TemporalIndex.load(path, mmap=True)
    return [int(node) for node in index.search(query, 3, where={"tags": "new"})[0]]


@pytest.mark.slow
def test_fifty_thousand_vectors_are_found_changed_saved_and_opened_elsewhere(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(0)
    # As embeddings do, they vary in fewer directions than they have dimensions.
    data = (rng.normal(size=(50_000, 10)) @ rng.normal(size=(10, 32))).astype(np.float32)
    queries = data[:100] + 0.3 * rng.normal(size=(100, 32)).astype(np.float32)

    index = cvx.TemporalIndex(dim=32, metric="l2", m=8, ef_construction=80)
    ids = index.bulk_insert(vectors=data)
    found, distances = index.search(queries, k=10)

    by_hand = [np.argsort(((data - query) ** 2).sum(axis=1))[:10] for query in queries]
    hits = sum(len(set(row) & set(true)) for row, true in zip(found, by_hand, strict=True))
    assert hits >= 990
    assert (np.diff(distances, axis=1) >= 0).all()

    index.set_vector(7, queries[0])
    index.set_tags(7, ["new"])
    index.delete(ids[10:1000])
    index.compact()
    assert (len(index), 10 in index, 7 in index) == (49_010, False, True)
    assert index.search(queries[0], 1)[0].tolist() == [7]

    path = tmp_path / "vectors.cvx"
    index.save(path)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(reopened, (path, queries[0])) == [7]
