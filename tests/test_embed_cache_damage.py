"""The embedding cache under damage, threads, forks and kills: never a wrong vector."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from cvx.embed import CachedEmbedder, LexicalEmbedder
from cvx.errors import (
    CacheWarning,
    EmbeddingCacheError,
    InvalidInputError,
)
from cvx.types import Vector
from tests.embed_server import unit_of
from tests.store.planted import journal_that_names

TEXTS = [f"text number {i}" for i in range(40)]


class Dense(LexicalEmbedder):
    """Vectors without a zero, by which they can be told from empty space on the disk."""

    def embed(self, texts: Sequence[str]) -> Vector:
        return np.stack([unit_of(text, self.dim) for text in texts])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vectors.sqlite"


def damaged(path: Path, cached: CachedEmbedder) -> tuple[Vector, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = cached.embed(TEXTS)
    return rows, [type(w.message).__name__ for w in caught if "cvx" in type(w.message).__module__]


def test_no_flipped_bit_changes_a_vector(path: Path) -> None:
    rng = np.random.default_rng(7)
    cached = CachedEmbedder(Dense(64), path)
    right = cached.embed(TEXTS)
    good = path.read_bytes()
    in_rows = [good.index(row.tobytes()) + int(rng.integers(256)) for row in right]
    for at in [*in_rows, *range(100), *rng.integers(100, len(good), 200).tolist()]:
        bad = bytearray(good)
        bad[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(bad)
        rows, warned = damaged(path, cached)
        np.testing.assert_array_equal(rows, right, err_msg=f"bit at byte {at}")
        assert set(warned) <= {"CacheWarning"}
        assert warned or at not in in_rows, "a flip in a vector is always noticed"


@pytest.mark.parametrize("cut", [0, 1, 99, 100, 4096, 16384, 20000, 33000])
def test_a_truncated_file_is_started_anew(path: Path, cut: int) -> None:
    cached = CachedEmbedder(LexicalEmbedder(64), path)
    right = cached.embed(TEXTS)
    path.write_bytes(path.read_bytes()[:cut])
    rows, warned = damaged(path, cached)
    np.testing.assert_array_equal(rows, right)
    # SQLite takes a file of a byte for an empty one.
    assert warned == ([] if cut <= 1 else ["CacheWarning"])
    assert (path.parent / "vectors.sqlite.damaged").exists() == (cut > 1)
    assert len(cached) == 40
    assert damaged(path, cached)[1] == []


def test_a_damaged_file_is_set_aside_and_goes_with_the_next_forgetting(path: Path) -> None:
    cached = CachedEmbedder(LexicalEmbedder(64), path)
    cached.embed(TEXTS)
    path.write_bytes(b"not a database, and long enough to be read as one" * 100)
    with pytest.warns(CacheWarning, match=r"now vectors\.sqlite\.damaged"):
        CachedEmbedder(LexicalEmbedder(64), path)
    aside = path.with_name("vectors.sqlite.damaged")
    assert aside.read_bytes().startswith(b"not a database")
    cached.forget(["whatever"])
    assert not aside.exists()


def test_a_journal_that_names_another_file_deletes_nothing(path: Path) -> None:
    cached = CachedEmbedder(Dense(64), path)
    right = cached.embed(TEXTS)
    mine = path.with_name("thesis.txt")
    mine.write_text("dear to me")
    journal_that_names(path, mine)
    rows, warned = damaged(path, cached)
    np.testing.assert_array_equal(rows, right)
    assert mine.read_text() == "dear to me"
    assert warned == ["CacheWarning"]


def test_a_database_of_something_else_is_never_touched(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE events (text TEXT)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(EmbeddingCacheError, match=r"something else \(events\)"):
        CachedEmbedder(LexicalEmbedder(8), path)
    assert path.read_bytes() == before


def test_a_cache_that_cannot_be_written_costs_a_warning_not_an_answer(path: Path) -> None:
    cached = CachedEmbedder(LexicalEmbedder(16), path)
    path.unlink()
    path.mkdir()
    with pytest.warns(CacheWarning, match="embedding without the cache"):
        rows = cached.embed(["a"])
    np.testing.assert_array_equal(rows, LexicalEmbedder(16).embed(["a"]))
    with pytest.raises(EmbeddingCacheError, match="could not forget"):
        cached.forget(["a"])
    with pytest.raises(EmbeddingCacheError, match="cannot be opened"):
        CachedEmbedder(LexicalEmbedder(16), path)
    with pytest.raises(EmbeddingCacheError, match="cannot be opened"):
        CachedEmbedder(LexicalEmbedder(16), path.parent / "no" / "such" / "folder")
    with pytest.raises(InvalidInputError, match="max_bytes is 5"):
        CachedEmbedder(LexicalEmbedder(16), path, max_bytes=5)


def test_threads_share_a_cache(path: Path) -> None:
    cached = CachedEmbedder(LexicalEmbedder(32), path)
    right = LexicalEmbedder(32).embed(TEXTS)
    wrong: list[object] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(20):
            picked = rng.integers(0, 40, 6)
            rows = cached.embed([TEXTS[i] for i in picked])
            if not np.array_equal(rows, right[picked]):
                wrong.append(picked)
            cached.forget([TEXTS[int(picked[0])]])

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


WORKER = """
import itertools, sys, warnings
import numpy as np
from cvx.embed import CachedEmbedder, LexicalEmbedder
warnings.simplefilter("error")
path, seed = sys.argv[1], int(sys.argv[2])
texts = [f"text number {i}" for i in range(40)]
right = LexicalEmbedder(32).embed(texts)
cached = CachedEmbedder(LexicalEmbedder(32), path)
rng = np.random.default_rng(seed)
for number in itertools.count() if sys.argv[3] == "for ever" else range(30):
    picked = rng.integers(0, 40, 6)
    assert np.array_equal(cached.embed([texts[i] for i in picked]), right[picked])
    cached.forget([texts[int(picked[0])]])
    if number == 5:
        print("writing", flush=True)
print(cached.hits)
"""


def test_processes_share_a_cache_also_when_some_are_killed(path: Path) -> None:
    def start(seed: int, how_long: str = "") -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path), str(seed), how_long],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )

    workers = [start(seed) for seed in range(3)]
    victims = [start(seed, "for ever") for seed in (97, 98, 99)]
    CachedEmbedder(LexicalEmbedder(32), path).embed(TEXTS)
    for victim in victims:
        assert victim.stdout is not None
        assert victim.stdout.readline() == "writing\n"
        victim.kill()
        victim.communicate()
        assert victim.returncode == -signal.SIGKILL
    results = [worker.communicate() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0], results
    assert all(int(out.split()[-1]) > 0 for out, _ in results)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = CachedEmbedder(LexicalEmbedder(32), path).embed(TEXTS)
    np.testing.assert_array_equal(rows, LexicalEmbedder(32).embed(TEXTS))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_can_use_the_cache_of_its_parent(path: Path) -> None:
    code = (
        "import os, sys\n"
        "from cvx.embed import CachedEmbedder, LexicalEmbedder\n"
        "cached = CachedEmbedder(LexicalEmbedder(8), sys.argv[1])\n"
        "cached.embed(['a'])\n"
        "child = os.fork()\n"
        "cached.embed(['a', 'child' if child == 0 else 'parent'])\n"
        "if child == 0: os._exit(0 if cached.hits == 1 else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0 and len(cached) == 3\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
