"""Finding out what a server speaks, and whether an embedder works, before relying on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("httpcore")
pytest.importorskip("stamina")

from cvx.embed import (
    PRESETS,
    CachedEmbedder,
    HttpOptions,
    LexicalEmbedder,
    OllamaEmbedder,
    Prefixed,
    detect,
    embed_query,
    preset_for,
)
from cvx.embed.check import check
from cvx.embed.protocol import innermost
from cvx.errors import (
    EmbedderAnswerError,
    EmbedderDimensionError,
    EmbedderError,
    EmbedderRefusedError,
    EmbedderUnreachableError,
    EmbedderWarning,
    ModelNotFoundError,
)
from cvx.types import Vector
from tests.embed_server import OLD_OLLAMA, OLLAMA, OPENAI, Server, running, unit_of
from tests.http_server import nobody

Serve = Callable[..., Server]
QUICK = HttpOptions(retries=0)


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(**settings: Any) -> Server:
            return stack.enter_context(running(Server(**settings)))

        yield start


@pytest.mark.requirement("W3")
@pytest.mark.parametrize("path", ["", "/v1", "/api"])
@pytest.mark.parametrize(
    ("endpoints", "provider"),
    [(OLLAMA, "ollama"), (OPENAI, "openai"), (OLLAMA | OPENAI, None)],
    ids=["ollama", "openai", "both"],
)
def test_the_protocol_is_found_whatever_the_address_suggests(
    serve: Serve, path: str, endpoints: frozenset[str], provider: str | None
) -> None:
    server = serve(endpoints=endpoints)
    by_address = "openai" if path == "/v1" else "ollama"
    with closing(detect(server.url + path, "toy")) as embedder:
        assert embedder.info()["provider"] == (provider or by_address)
        assert embedder.info()["dim"] == 8
        np.testing.assert_allclose(embedder.embed(["a mug"])[0], unit_of("a mug", 8), rtol=1e-6)


@pytest.mark.requirement("W3")
def test_the_address_tells_which_protocol_is_tried_first(serve: Serve) -> None:
    first = []
    for path in ("", "/v1"):
        server = serve(endpoints=OLLAMA | OPENAI)
        detect(server.url + path, "toy").close()
        first.append([path for path, _ in server.requests])
    assert first == [["/api/embed"], ["/v1/embeddings"]]


def test_an_old_ollama_is_detected_with_a_warning(serve: Serve) -> None:
    server = serve(endpoints=OLD_OLLAMA)
    with (
        pytest.warns(EmbedderWarning),
        closing(detect(server.url, "toy")) as embedder,
    ):
        assert embedder.info()["provider"] == "ollama"


def test_a_server_that_speaks_neither_is_a_typed_error_naming_both(serve: Serve) -> None:
    server = serve(endpoints=frozenset({"/"}))
    with pytest.raises(EmbedderError, match=r"neither.*ollama: .*openai: ") as caught:
        detect(server.url, "toy")
    assert type(caught.value) is EmbedderError


@pytest.mark.requirement("W4")
def test_a_missing_model_is_not_mistaken_for_another_protocol(serve: Serve) -> None:
    server = serve()
    with pytest.raises(ModelNotFoundError, match="ollama pull bear"):
        detect(server.url, "bear")
    with nobody() as address, pytest.raises(EmbedderUnreachableError):
        detect(address, "toy", http=QUICK)


@pytest.mark.requirement("W3")
def test_a_known_model_brings_its_dimension_and_its_prefixes(serve: Serve) -> None:
    server = serve(models=("nomic-embed-text",), dim=768)
    with closing(detect(server.url, "nomic-embed-text")) as embedder:
        info = embedder.info()
        assert (info["dim"], info["max_tokens"]) == (768, 8192)
        assert info["prefixes"] == {"query": "search_query: ", "document": "search_document: "}
        np.testing.assert_allclose(
            embedder.embed(["a mug"])[0], unit_of("search_document: a mug", 768), rtol=1e-6
        )
        np.testing.assert_allclose(
            embed_query(embedder, "a mug"), unit_of("search_query: a mug", 768), rtol=1e-6
        )
    with closing(detect(server.url, "nomic-embed-text", prefixes={})) as plain:
        np.testing.assert_array_equal(plain.embed(["a mug"])[0], embed_query(plain, "a mug"))
        assert plain.info()["id"] != info["id"]


@pytest.mark.requirement("X8")
def test_a_known_model_with_another_dimension_is_refused(serve: Serve) -> None:
    server = serve(models=("all-minilm",), dim=768)
    with pytest.raises(EmbedderDimensionError, match="'all-minilm' gives 768 dimensions, 384"):
        detect(server.url, "all-minilm")


@pytest.mark.requirement("W3", "X8")
def test_presets_are_found_by_any_of_their_names() -> None:
    nomic, minilm, gtr = (
        PRESETS[n] for n in ("nomic-embed-text-v1.5", "all-minilm", "gtr-t5-base")
    )
    assert (nomic.dim, nomic.max_tokens, minilm.dim, gtr.dim) == (768, 8192, 384, 768)
    assert "vec2text" in gtr.note
    for name, preset in [
        ("nomic-embed-text:latest", nomic),
        ("nomic-ai/nomic-embed-text-v1.5", nomic),
        ("text-embedding-nomic-embed-text-v1.5", nomic),
        ("sentence-transformers/all-MiniLM-L6-v2", minilm),
        ("gtr-t5-base", gtr),
        ("nomic-embed-vision", None),
    ]:
        assert preset_for(name) == preset


@pytest.mark.requirement("W4")
@pytest.mark.parametrize("endpoints", [OLLAMA, OPENAI], ids=["ollama", "openai"])
def test_a_check_reports_what_works(serve: Serve, endpoints: frozenset[str]) -> None:
    server = serve(endpoints=endpoints)
    with closing(detect(server.url, "toy")) as embedder:
        report = check(embedder, expected_dim=8)
    assert (report.model, report.dim) == ("toy", 8)
    assert report.provider == ("ollama" if endpoints == OLLAMA else "openai")
    assert report.seconds > 0


@pytest.mark.requirement("W4")
def test_a_check_of_a_server_that_is_down_says_how_to_start_it() -> None:
    with (
        nobody() as address,
        OllamaEmbedder("toy", address, http=QUICK) as embedder,
        pytest.raises(EmbedderUnreachableError, match="`ollama serve`"),
    ):
        check(embedder)


@pytest.mark.requirement("W4")
def test_a_check_of_a_missing_model_says_how_to_get_it_and_what_there_is(serve: Serve) -> None:
    server = serve(models=("toy", "bear"))
    with (
        OllamaEmbedder("nomic-embed-text", server.url) as embedder,
        pytest.raises(
            ModelNotFoundError, match=r"`ollama pull nomic-embed-text`.*toy:latest, bear:latest"
        ),
    ):
        check(embedder)


@pytest.mark.requirement("W4", "X8")
def test_a_check_names_both_dimensions_and_the_model(serve: Serve) -> None:
    server = serve(dim=384)
    with (
        OllamaEmbedder("toy", server.url) as embedder,
        pytest.raises(
            EmbedderDimensionError,
            match=r"'toy' gives 384 dimensions, 768 are expected.*nomic-embed-text-v1\.5",
        ),
    ):
        check(embedder, expected_dim=768)


def test_a_check_of_a_server_that_cannot_list_its_models_asks_for_a_vector(serve: Serve) -> None:
    server = serve(endpoints=frozenset({"/api/embed"}))
    with OllamaEmbedder("toy", server.url) as embedder:
        assert check(embedder).dim == 8


@pytest.mark.parametrize(
    ("mode", "error"), [(500, EmbedderRefusedError), ("nan", EmbedderAnswerError)]
)
def test_a_check_lets_nothing_bad_through(
    serve: Serve, mode: Any, error: type[EmbedderError]
) -> None:
    server = serve(modes=[mode])
    with OllamaEmbedder("toy", server.url, http=QUICK) as embedder, pytest.raises(error):
        check(embedder)


def test_a_check_passes_the_cache_by(serve: Serve, tmp_path: Path) -> None:
    server = serve()
    with OllamaEmbedder("toy", server.url, http=QUICK) as embedder:
        cached = CachedEmbedder(Prefixed(embedder, query="q ", document="d "), tmp_path / "c")
        assert innermost(cached) is embedder
        check(cached)
        server.modes = [500]
        with pytest.raises(EmbedderRefusedError):
            check(cached)
        assert len(cached) == 0


class Lying(LexicalEmbedder):
    """Says another dimension than it gives."""

    def info(self) -> dict[str, Any]:
        return super().info() | {"dim": 99}


class Broken(LexicalEmbedder):
    """Raises what no caller expects."""

    def embed(self, texts: Sequence[str]) -> Vector:
        raise ZeroDivisionError(f"{len(texts)} by zero")


def test_a_check_finds_an_embedder_that_lies_or_breaks() -> None:
    with pytest.raises(EmbedderDimensionError, match="says it gives 99 dimensions and gives 16"):
        check(Lying(16))
    with pytest.raises(EmbedderError, match="Broken failed with ZeroDivisionError: 1 by zero"):
        check(Broken(16))
    assert check(LexicalEmbedder(16), expected_dim=16).provider == "lexical"


def test_aembed_of_the_offline_default_is_the_same_vectors() -> None:
    embedder = LexicalEmbedder(16)
    rows = asyncio.run(embedder.aembed(["a mug"]))
    np.testing.assert_array_equal(rows, embedder.embed(["a mug"]))
