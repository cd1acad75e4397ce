"""The embedding cache: right vectors whatever happens to its file, and forgetting that is real."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cvx.embed import CachedEmbedder, LexicalEmbedder, Prefixed, embed_query
from cvx.errors import (
    EmbedderAnswerError,
    EmbedderDimensionError,
)
from cvx.types import Vector
from tests.embed_server import unit_of

TEXTS = [f"text number {i}" for i in range(40)]


class Counting(LexicalEmbedder):
    """The lexical embedder, with a record of what it was asked."""

    def __init__(self, dim: int = 32) -> None:
        super().__init__(dim)
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> Vector:
        self.asked.append(list(texts))
        return super().embed(texts)


class Dense(LexicalEmbedder):
    """Vectors without a zero, by which they can be told from empty space on the disk."""

    def embed(self, texts: Sequence[str]) -> Vector:
        return np.stack([unit_of(text, self.dim) for text in texts])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vectors.sqlite"


def everything_in(folder: Path) -> bytes:
    return b"\0".join(p.read_bytes() for p in sorted(folder.iterdir()))


def test_a_text_is_embedded_once_and_remembered_by_the_next_process(path: Path) -> None:
    inner = Counting()
    cached = CachedEmbedder(inner, path)
    first = cached.embed(["a", "b", "a"])
    second = cached.embed(["b", "c"])
    assert inner.asked == [["a", "b"], ["c"]]
    assert (cached.hits, cached.misses, len(cached)) == (2, 3, 3)
    np.testing.assert_array_equal(first, LexicalEmbedder(32).embed(["a", "b", "a"]))
    np.testing.assert_array_equal(second, LexicalEmbedder(32).embed(["b", "c"]))
    again = Counting()
    rows = CachedEmbedder(again, path).embed(["c", "a"])
    assert again.asked == []
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, LexicalEmbedder(32).embed(["c", "a"]))
    assert CachedEmbedder(again, path).embed([]).shape == (0, 32)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(batches=st.lists(st.lists(st.text(max_size=8), max_size=8), max_size=4))
def test_the_cache_never_changes_a_vector(path: Path, batches: list[list[str]]) -> None:
    cached = CachedEmbedder(LexicalEmbedder(16), path)
    for texts in batches:
        np.testing.assert_array_equal(cached.embed(texts), LexicalEmbedder(16).embed(texts))


@pytest.mark.requirement("X8")
def test_two_embedders_never_see_each_others_vectors(path: Path) -> None:
    small, large = (CachedEmbedder(Counting(dim), path) for dim in (16, 32))
    assert small.embed(["a"]).shape == (1, 16)
    assert large.embed(["a"]).shape == (1, 32)
    assert len(small) == 2
    assert small.forget(["a"]) == 2


class Impostor(LexicalEmbedder):
    """Another dimension under the same id."""

    def info(self) -> dict[str, Any]:
        return super().info() | {"id": "same"}


@pytest.mark.requirement("X8")
def test_two_models_under_one_id_are_found_out(path: Path) -> None:
    CachedEmbedder(Impostor(16), path).embed(["a"])
    with pytest.raises(EmbedderDimensionError, match=r"remembers 16 dimensions for 'same'.* 32"):
        CachedEmbedder(Impostor(32), path).embed(["a"])


def test_queries_and_documents_are_kept_apart_only_if_they_differ(path: Path) -> None:
    inner = Counting()
    prefixed = CachedEmbedder(Prefixed(inner, query="q ", document="d "), path)
    for _ in range(2):
        np.testing.assert_array_equal(
            embed_query(prefixed, "a"), LexicalEmbedder(32).embed(["q a"])[0]
        )
        np.testing.assert_array_equal(prefixed.embed(["a"]), LexicalEmbedder(32).embed(["d a"]))
    assert inner.asked == [["q a"], ["d a"]]
    assert prefixed.forget(["a"]) == 2
    plain = CachedEmbedder(Counting(), path)
    plain.embed(["a"])
    asyncio.run(plain.aembed_query("a"))
    assert (plain.hits, plain.misses) == (1, 1)


@pytest.mark.parametrize("dim", [32, 768, 6000])
def test_what_is_forgotten_leaves_no_byte_in_the_folder(path: Path, dim: int) -> None:
    rng = np.random.default_rng(dim)
    cached = CachedEmbedder(Dense(dim), path)
    # Many small writes and deletions make the tree split and merge, which leaves copies about.
    for start in range(0, 40, 4):
        cached.embed(TEXTS[start : start + 4])
    gone = [TEXTS[i] for i in rng.permutation(40)[:15]]
    kept = [text for text in TEXTS if text not in gone]
    rows = {text: unit_of(text, dim) for text in TEXTS}
    assert all(rows[text][:32].tobytes() in everything_in(path.parent) for text in TEXTS)
    assert sum(cached.forget([text]) for text in gone[:3]) == 3
    assert cached.forget([*gone, "never seen"]) == 12
    left = everything_in(path.parent)
    for text in gone:
        for at in range(0, dim - 3, max(4, dim // 40)):
            assert rows[text][at : at + 4].tobytes() not in left
    assert all(rows[text][:32].tobytes() in left for text in kept)
    assert len(cached) == 25
    np.testing.assert_array_equal(cached.embed(kept), np.stack([rows[text] for text in kept]))
    assert cached.misses == 40


@pytest.mark.requirement("B8")
def test_a_cache_behind_prefixes_forgets_what_was_asked_through_them(path: Path) -> None:
    cached = CachedEmbedder(Dense(32), path)
    prefixed = Prefixed(cached, query="query: ", document="passage: ")
    rows = [*prefixed.embed(["a mug", "a shelf"]), prefixed.embed_query("a mug")]
    assert all(row.tobytes() in everything_in(path.parent) for row in rows)
    prefixed.forget(["a mug"])
    left = everything_in(path.parent)
    assert [row.tobytes() in left for row in rows] == [False, True, False]
    Prefixed(Dense(32), query="", document="passage: ").forget(["a mug"])


def test_what_is_evicted_leaves_no_byte_either_and_the_oldest_goes_first(path: Path) -> None:
    now = [0.0]
    cached = CachedEmbedder(Dense(1024), path, max_bytes=1 << 20, clock=lambda: now[0])
    texts = [f"number {i}" for i in range(600)]
    for start in range(0, 600, 50):
        now[0] += 10_000
        cached.embed(texts[start : start + 50])
        cached.embed(texts[:5])
        assert path.stat().st_size < (1 << 20) + 50 * 6000
    assert 100 < len(cached) < 260
    before = cached.misses
    cached.embed(texts[:5])
    cached.embed(texts[-50:])
    assert cached.misses == before, "what was used lately is still there"
    left = everything_in(path.parent)
    for text in texts[5:200]:
        assert unit_of(text, 1024)[:8].tobytes() not in left


def test_a_forgetting_that_broke_off_is_finished_by_the_next_write(path: Path) -> None:
    cached = CachedEmbedder(Dense(64), path)
    cached.embed(TEXTS)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA secure_delete = OFF")
        db.execute("DELETE FROM vectors")
        db.execute("INSERT INTO remnants VALUES (1)")
    db.close()
    row = unit_of(TEXTS[20], 64).tobytes()
    assert row in everything_in(path.parent)
    cached.embed(["another"])
    assert row not in everything_in(path.parent)


def test_neither_texts_nor_access_for_others_are_on_the_disk(path: Path) -> None:
    cached = CachedEmbedder(LexicalEmbedder(16), path)
    cached.embed(["the secret of the mug"])
    assert b"secret" not in everything_in(path.parent)
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


class Poisoned(LexicalEmbedder):
    """Gives NaN."""

    def embed(self, texts: Sequence[str]) -> Vector:
        return np.full_like(super().embed(texts), np.nan)


def test_a_bad_answer_is_never_remembered(path: Path) -> None:
    cached = CachedEmbedder(Poisoned(8), path)
    with pytest.raises(EmbedderAnswerError, match="NaN"):
        cached.embed(["a"])
    assert len(cached) == 0
