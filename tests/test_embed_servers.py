"""Ollama and OpenAI-compatible embedders against real local servers, good and bad."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

pytest.importorskip("httpx")
pytest.importorskip("stamina")

from cvx.embed import Embedder, HttpOptions, OllamaEmbedder, OpenAIEmbedder, aembed, embed_query
from cvx.embed.served import ServedEmbedder
from cvx.errors import (
    EmbedderAccessError,
    EmbedderError,
    EmbedderUnreachableError,
    EndpointMissingError,
    InvalidParameterError,
    LegacyEndpointWarning,
    ModelNotFoundError,
)
from tests.embed_server import OLD_OLLAMA, OLLAMA, OPENAI, Server, running, unit_of
from tests.http_server import nobody

Serve = Callable[..., Server]
Make = Callable[..., ServedEmbedder]
TEXTS = ["a mug", "a shelf", "an apple", "a drawer", "a lamp"]


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(**settings: Any) -> Server:
            return stack.enter_context(running(Server(**settings)))

        yield start


def ollama(server: Server, model: str = "toy", **settings: Any) -> ServedEmbedder:
    options = {"backoff_s": 0.0, **settings.pop("http", {})}
    return OllamaEmbedder(model, server.url, http=HttpOptions(**options), **settings)


def openai(server: Server, model: str = "toy", **settings: Any) -> ServedEmbedder:
    options = {"backoff_s": 0.0, **settings.pop("http", {})}
    return OpenAIEmbedder(model, server.url, http=HttpOptions(**options), **settings)


BOTH = pytest.mark.parametrize(
    ("make", "endpoints"), [(ollama, OLLAMA), (openai, OPENAI)], ids=["ollama", "openai"]
)


def expected(texts: list[str], dim: int = 8) -> Any:
    return np.stack([unit_of(text, dim) for text in texts])


@pytest.mark.requirement("W1", "W3")
@BOTH
def test_each_text_gets_its_own_vector_in_order(
    serve: Serve, make: Make, endpoints: frozenset[str]
) -> None:
    server = serve(endpoints=endpoints)
    with make(server, http={"batch_size": 2}) as embedder:
        assert isinstance(embedder, Embedder)
        rows = embedder.embed(TEXTS)
        assert rows.dtype == np.float32
        np.testing.assert_allclose(rows, expected(TEXTS), rtol=1e-6)
        assert embedder.info()["dim"] == 8
        assert embedder.info()["model"] == "toy"
        assert embedder.embed([]).shape == (0, 8)
        np.testing.assert_allclose(embed_query(embedder, "a mug"), rows[0], rtol=1e-6)
    assert [len(body["input"]) for body in server.posts()] == [2, 2, 1, 1]


@pytest.mark.requirement("W3")
def test_ollama_is_asked_not_to_cut_texts(serve: Serve) -> None:
    server = serve()
    with ollama(server) as embedder:
        embedder.embed(["a mug"])
    assert server.requests == [
        ("/api/embed", {"model": "toy", "input": ["a mug"], "truncate": False})
    ]


@pytest.mark.requirement("W3")
def test_an_old_ollama_is_asked_one_prompt_at_a_time_with_a_warning(serve: Serve) -> None:
    server = serve(endpoints=OLD_OLLAMA)
    with ollama(server) as embedder:
        with pytest.warns(LegacyEndpointWarning, match=r"no /api/embed.*upgrade Ollama"):
            rows = embedder.embed(["a mug", "a shelf"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            embedder.embed(["a lamp"])
    # The older endpoint does not scale its vectors: here they are those of the newer one.
    np.testing.assert_allclose(rows, expected(["a mug", "a shelf"]), rtol=1e-6)
    assert server.requests[1:] == [
        ("/api/embeddings", {"model": "toy", "prompt": text})
        for text in ("a mug", "a shelf", "a lamp")
    ]


def test_an_old_ollama_without_the_model_says_so(serve: Serve) -> None:
    server = serve(endpoints=OLD_OLLAMA)
    with ollama(server, "other") as embedder, pytest.raises(ModelNotFoundError, match="pull other"):
        embedder.embed(["a mug"])


def test_rows_of_openai_servers_are_put_in_order_by_their_number(serve: Serve) -> None:
    server = serve(endpoints=OPENAI, modes=["shuffled"])
    with openai(server) as embedder:
        np.testing.assert_allclose(embedder.embed(TEXTS), expected(TEXTS), rtol=1e-6)


@pytest.mark.requirement("W3")
@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/v1/embeddings"])
def test_any_form_of_the_address_will_do_for_openai(serve: Serve, path: str) -> None:
    server = serve(endpoints=OPENAI)
    with OpenAIEmbedder("toy", server.url + path) as embedder:
        embedder.embed(["a mug"])
    assert server.requests == [("/v1/embeddings", {"model": "toy", "input": ["a mug"]})]


@pytest.mark.parametrize("path", ["/", "/api", "/api/embed", "/api/embeddings/", "/v1"])
def test_any_form_of_the_address_will_do_for_ollama(serve: Serve, path: str) -> None:
    server = serve()
    with OllamaEmbedder("toy", server.url + path) as embedder:
        embedder.embed(["a mug"])
    assert server.requests[0][0] == "/api/embed"


def test_shorter_vectors_are_asked_for_only_on_demand(serve: Serve) -> None:
    server = serve(endpoints=OPENAI)
    with openai(server, dim=4, shorten=True) as embedder:
        assert embedder.embed(["a mug"]).shape == (1, 4)
    assert server.posts()[0]["dimensions"] == 4


@pytest.mark.parametrize(
    ("header", "value"), [("Authorization", "Bearer s3cret"), ("api-key", "s3cret")]
)
def test_the_key_goes_into_its_header_and_nowhere_else(
    serve: Serve, header: str, value: str
) -> None:
    server = serve(endpoints=OPENAI, key=value)
    options = HttpOptions(api_key="s3cret", api_key_header=header)
    with OpenAIEmbedder("toy", server.url, http=options) as embedder:
        embedder.embed(["a mug"])
        assert "s3cret" not in f"{options!r}{embedder.info()}"
    assert server.headers[0][header] == value


@BOTH
def test_a_wrong_key_is_a_typed_error_that_hides_the_key(
    serve: Serve, make: Make, endpoints: frozenset[str]
) -> None:
    server = serve(endpoints=endpoints, key="Bearer s3cret-and-more")
    with (
        make(server, http={"api_key": "s3cret"}) as embedder,
        pytest.raises(EmbedderAccessError, match=r"refused with 401.*HttpOptions\(api_key") as e,
    ):
        embedder.embed(["a mug"])
    assert "s3cret" not in str(e.value)
    assert len(server.requests) == 1


def test_a_password_in_the_address_is_never_shown() -> None:
    with (
        nobody() as address,
        OllamaEmbedder(
            "toy", address.replace("//", "//me:s3cret@"), http=HttpOptions(retries=0)
        ) as embedder,
        pytest.raises(EmbedderUnreachableError, match=f"{address}/") as e,
    ):
        embedder.embed(["a mug"])
    assert "s3cret" not in str(e.value)


@pytest.mark.requirement("W4")
@BOTH
def test_a_missing_model_says_how_to_get_it(
    serve: Serve, make: Make, endpoints: frozenset[str]
) -> None:
    server = serve(endpoints=endpoints, models=("toy", "bear"))
    cure = r"`ollama pull nomic`" if make is ollama else r"choose one of its own: toy, bear"
    with make(server, "nomic") as embedder, pytest.raises(ModelNotFoundError, match=cure):
        embedder.embed(["a mug"])


def test_a_server_of_neither_kind_is_a_typed_error(serve: Serve) -> None:
    server = serve(endpoints=frozenset({"/"}))
    with ollama(server) as a, pytest.raises(EndpointMissingError, match="protocol of ollama"):
        a.embed(["a mug"])
    with openai(server) as b, pytest.raises(EndpointMissingError, match="protocol of openai"):
        b.embed(["a mug"])


@pytest.mark.requirement("X8")
def test_the_id_names_the_model_and_the_dimension_not_the_way_to_it(serve: Serve) -> None:
    a, b, c = serve(dim=4), serve(endpoints=OPENAI, dim=4), serve(dim=5)
    ids = []
    for embedder in (ollama(a), ollama(a, "toy:latest"), openai(b), ollama(c)):
        with embedder:
            ids.append(embedder.info()["id"])
    assert ids[0] == ids[1] == ids[2] != ids[3]


def test_the_event_loop_goes_on_while_a_server_is_silent(serve: Serve) -> None:
    server = serve(modes=["silent"])

    async def both() -> None:
        with ollama(server, http={"timeout_s": 30.0}) as embedder:
            waiting = asyncio.create_task(aembed(embedder, ["a mug"]))
            # The request is out and unanswered, and this coroutine runs nevertheless.
            await asyncio.to_thread(server.arrived.wait)
            assert not waiting.done()
            server.modes = ["good"]
            second = await embedder.aembed_query("a shelf")
            np.testing.assert_allclose(second, unit_of("a shelf", 8), rtol=1e-6)
            assert not waiting.done()
            server.over.set()
            with pytest.raises(EmbedderError):
                await waiting

    asyncio.run(both())


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: OllamaEmbedder("toy", "localhost:11434"), "'localhost:11434' is no address"),
        (lambda: OllamaEmbedder("toy", "http://"), "no address"),
        (lambda: OllamaEmbedder(""), "model is empty"),
        (lambda: OllamaEmbedder("toy", dim=0), "dim is 0"),
        (lambda: HttpOptions(timeout_s=0), "timeout_s is 0"),
        (lambda: HttpOptions(timeout_s=float("nan")), "timeout_s is nan"),
        (lambda: HttpOptions(retries=-1), "retries is -1"),
        (lambda: HttpOptions(batch_size=0), "batch_size is 0"),
        (lambda: OllamaEmbedder("toy").embed("one text"), "single str"),
    ],
)
def test_settings_out_of_bounds_are_refused(make: Callable[[], object], says: str) -> None:
    with pytest.raises(InvalidParameterError, match=says):
        make()
