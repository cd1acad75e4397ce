"""The lexical embedder: deterministic, of unit norm, near where spelling is near."""

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.embed import Embedder, LexicalEmbedder
from cvx.errors import InvalidInputError


@given(st.lists(st.text(max_size=40), max_size=5), st.integers(2, 700))
def test_every_text_gets_a_finite_vector_of_norm_1(texts: list[str], dim: int) -> None:
    vectors = LexicalEmbedder(dim).embed(texts)
    assert vectors.shape == (len(texts), dim)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-5)


@given(st.lists(st.text(max_size=40), min_size=1, max_size=5))
def test_a_text_has_the_same_vector_alone_and_in_a_batch(texts: list[str]) -> None:
    embedder = LexicalEmbedder(64)
    batch = embedder.embed(texts)
    for row, text in zip(batch, texts, strict=True):
        assert row.tobytes() == LexicalEmbedder(64).embed([text])[0].tobytes()


def test_the_same_text_has_the_same_vector_in_another_process() -> None:
    code = (
        "from cvx.embed import LexicalEmbedder;"
        "print(LexicalEmbedder().embed(['Put the mug on the shelf']).tobytes().hex())"
    )
    out = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": salt, "PYTHONPATH": ":".join(sys.path)},
        ).stdout.strip()
        for salt in ("1", "2")
    }
    here = LexicalEmbedder().embed(["Put the mug on the shelf"]).tobytes().hex()
    assert out == {here}


def test_inflected_words_are_nearer_than_strangers() -> None:
    a, b, c = LexicalEmbedder().embed(["clean the mugs", "cleaning a mug", "open some drawer"])
    assert a @ b > a @ c + 0.1


def test_case_and_unicode_form_do_not_matter() -> None:
    a, b = LexicalEmbedder().embed(["CAFÉ", "cafe\u0301"])
    np.testing.assert_array_equal(a, b)


def test_repeated_words_do_not_drown_the_others() -> None:
    a, b = LexicalEmbedder().embed(["mug " * 100 + "shelf", "shelf"])
    assert a @ b > 0.05


def test_it_says_that_it_knows_no_meaning() -> None:
    info = LexicalEmbedder(128).info()
    assert info["semantic"] is False
    assert info["dim"] == 128
    assert isinstance(LexicalEmbedder(), Embedder)


def test_other_parameters_have_another_id() -> None:
    embedders = [LexicalEmbedder(64), LexicalEmbedder(65), LexicalEmbedder(64, ngrams=(3, 4))]
    ids = {embedder.info()["id"] for embedder in embedders}
    assert len(ids) == 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: LexicalEmbedder(1),
        lambda: LexicalEmbedder(ngrams=(4, 3)),
        lambda: LexicalEmbedder(ngrams=(0, 3)),
        lambda: LexicalEmbedder(ngram_weight=-1.0),
        lambda: LexicalEmbedder(ngram_weight=float("nan")),
        lambda: LexicalEmbedder().embed("one text"),
        lambda: LexicalEmbedder().embed(["a", None]),  # type: ignore[list-item]
    ],
)
def test_bad_input_is_a_typed_error(make: object) -> None:
    with pytest.raises(InvalidInputError):
        make()  # type: ignore[operator]


def test_data_without_a_space_costs_no_more_than_its_length_and_is_told_by_its_ends() -> None:
    embedder = LexicalEmbedder()
    blob = "".join(f"{n:x}" for n in range(200_000))
    hashed: list[int] = []
    counted = LexicalEmbedder()
    own = counted._hashed

    def counting(features: Sequence[str], weights: Any) -> Any:
        hashed.append(len(features))
        return own(features, weights)

    counted._hashed = counting  # type: ignore[method-assign]
    one = counted.embed([blob])[0]
    assert len(blob) > 900_000
    assert sum(hashed) < 13_000, "three for each sign of both ends"
    same, other, end = embedder.embed([blob, blob[::-1], blob[:-3] + "zzz"])
    assert one.tobytes() == same.tobytes()
    assert abs(one @ other) < 0.2
    assert one @ end > 0.4
    # Up to 4,094 characters every part counts.
    long = "ab" * 2_047
    assert embedder.embed([long])[0] @ embedder.embed([long[:1_000] + "x" + long[1_001:]])[0] < 1
