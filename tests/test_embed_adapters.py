"""Prefixes, adapters, and what every embedder's answer is held to."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cvx.embed import (
    Embedder,
    EncoderEmbedder,
    LexicalEmbedder,
    OllamaEmbedder,
    Prefixed,
    aembed,
    as_embedder,
    embed_query,
)
from cvx.embed.protocol import checked_rows, normalised, with_prefixes
from cvx.errors import (
    EmbedderAnswerError,
    EmbedderDimensionError,
    InvalidInputError,
    MissingExtraError,
)
from cvx.types import Vector


class Letters:
    """An object with ``encode``: counts the letters a, b and c."""

    def encode(self, texts: list[str]) -> list[list[int]]:
        return [[text.count(letter) for letter in "abc"] for text in texts]


class Plain:
    """The least that is an embedder."""

    def embed(self, texts: Sequence[str]) -> Vector:
        return np.ones((len(texts), 2), dtype=np.float32)

    def info(self) -> dict[str, Any]:
        return {"id": "plain", "dim": 2, "semantic": False}


def test_queries_and_documents_get_their_own_prefix() -> None:
    inner = LexicalEmbedder(64)
    embedder = Prefixed(inner, query="query: ", document="passage: ")
    np.testing.assert_array_equal(embedder.embed(["a mug"]), inner.embed(["passage: a mug"]))
    np.testing.assert_array_equal(embed_query(embedder, "a mug"), inner.embed(["query: a mug"])[0])
    np.testing.assert_array_equal(
        asyncio.run(embedder.aembed_query("a mug")), embedder.embed_query("a mug")
    )
    with pytest.raises(InvalidInputError, match="single str"):
        embedder.embed("a mug")


@pytest.mark.requirement("X8")
def test_other_prefixes_have_another_id() -> None:
    inner = LexicalEmbedder(8)
    ids = {
        embedder.info()["id"]
        for embedder in (
            inner,
            Prefixed(inner, query="q ", document=""),
            Prefixed(inner, query="", document="q "),
            Prefixed(inner, query="q", document=" "),
        )
    }
    assert len(ids) == 4
    assert with_prefixes(inner, {"query": "", "document": ""}) is inner
    assert with_prefixes(inner, {"query": "q "}).info()["prefixes"]["query"] == "q "


@pytest.mark.requirement("W1", "W3")
def test_an_object_with_encode_becomes_an_embedder() -> None:
    embedder = as_embedder(Letters(), "letters")
    assert isinstance(embedder, Embedder)
    rows = embedder.embed(["abba", "cab"])
    np.testing.assert_array_equal(rows, [[2, 2, 0], [1, 1, 1]])
    assert rows.dtype == np.float32
    assert embedder.embed([]).shape == (0, 3)
    assert embedder.info()["id"] == "encoder/letters/3"
    assert as_embedder(embedder) is embedder
    assert as_embedder(Plain(), "ignored").info()["id"] == "plain"


def test_what_is_no_embedder_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="object is no embedder"):
        as_embedder(object())  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"Letters has encode\(\).*name='...'"):
        as_embedder(Letters())
    with pytest.raises(InvalidInputError, match="name is empty"):
        EncoderEmbedder(Letters(), "")


def test_aembed_works_with_the_least_embedder_too() -> None:
    np.testing.assert_array_equal(asyncio.run(aembed(Plain(), ["a", "b"])), np.ones((2, 2)))
    np.testing.assert_array_equal(embed_query(Plain(), "a"), np.ones(2))


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([[1.0, np.nan], [1.0, 1.0]], "NaN or infinity for text 0 of 2"),
        ([[1.0, 1.0], [1.0, 1e300]], "NaN or infinity for text 1 of 2"),
        ([[1.0, 1.0]], "1 vectors for 2 texts"),
        ([[1.0], [1.0, 2.0]], "no matrix"),
        ([["1", "2"], ["3", "4"]], "no matrix"),
        ([[True], [False]], "no matrix"),
        ([[None], [1.0]], "no matrix"),
        ([[], []], "no matrix"),
        ([1.0, 2.0], "no matrix"),
        (None, "no matrix"),
        ({"a": 1}, "no matrix"),
        ([[10**400], [1]], "no matrix"),
    ],
)
def test_what_is_no_row_of_finite_numbers_a_text_is_refused(values: object, says: str) -> None:
    with pytest.raises(EmbedderAnswerError, match=f"toy answered with .*{says}|{says}"):
        checked_rows(values, 2, "toy")


def test_good_rows_pass_as_float32_and_can_be_scaled() -> None:
    rows = checked_rows(np.array([[3, 4], [0, 2]]), 2, "toy", 2)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(normalised(rows, "toy"), np.array([[0.6, 0.8], [0.0, 1.0]]))
    with pytest.raises(EmbedderAnswerError, match="zeros for text 1 of 2"):
        normalised(np.array([[1, 0], [0, 0]], dtype=np.float32), "toy")
    with pytest.raises(EmbedderDimensionError, match="toy gives 2 dimensions, 3 were expected"):
        checked_rows(rows, 2, "toy", 3)


def _run(code: str, path: Path | None = None) -> str:
    folders = [str(path)] if path else []
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([*folders, *sys.path])},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.requirement("W2")
def test_importing_the_embedders_loads_nothing_that_is_not_needed() -> None:
    heavy = ["httpcore", "stamina", "tokenizers", "safetensors", "scipy", "sqlite3", "asyncio"]
    code = f"import sys, cvx.embed; print([m for m in {heavy!r} if m in sys.modules])"
    assert _run(code) == "[]"


@pytest.mark.requirement("W2")
def test_the_offline_default_needs_no_package_and_no_network(tmp_path: Path) -> None:
    for name in ("httpcore", "stamina", "tokenizers", "safetensors"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not installed')")
    code = (
        "import socket; socket.socket = None\n"
        "from cvx.embed import LexicalEmbedder\n"
        "print(LexicalEmbedder(8).embed(['a mug']).shape)"
    )
    assert _run(code, tmp_path) == "(1, 8)"


def test_a_missing_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stamina", None)
    with pytest.raises(MissingExtraError, match="pip install httpcore stamina"):
        OllamaEmbedder("toy")


def test_every_name_of_the_package_can_be_loaded() -> None:
    import cvx.embed

    assert all(getattr(cvx.embed, name) is not None for name in cvx.embed.__all__)
    assert set(cvx.embed.__all__) <= set(dir(cvx.embed))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = cvx.embed.Nothing
