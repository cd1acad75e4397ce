"""Ollama and OpenAI-compatible embedders against real local servers, good and bad."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

pytest.importorskip("httpcore")
pytest.importorskip("stamina")

from cvx.embed import Embedder, HttpOptions, OllamaEmbedder, OpenAIEmbedder, aembed, embed_query
from cvx.embed.http import Http
from cvx.embed.servers import ServedEmbedder
from cvx.errors import (
    EmbedderError,
    EmbedderRefusedError,
    EmbedderWarning,
    EndpointMissingError,
    InvalidInputError,
    ModelNotFoundError,
)
from tests.embed_server import OLD_OLLAMA, OLLAMA, OPENAI, Server, running, unit_of

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
        with pytest.warns(EmbedderWarning, match=r"no /api/embed.*upgrade Ollama"):
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
        pytest.raises(EmbedderRefusedError, match=r"refused with 401.*HttpOptions\(api_key") as e,
    ):
        embedder.embed(["a mug"])
    assert "s3cret" not in str(e.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "address",
    [
        "http://me:s3cret@localhost",
        "http://s3cret@localhost",
        "https://me:s3cret@host:notaport/v1",
        "me:s3cret@host",
        "http://me:s3/cret@localhost",
        "ftp://host/?key=s3cret",
    ],
)
def test_a_password_in_an_address_is_refused_and_never_shown(address: str) -> None:
    with pytest.raises(InvalidInputError, match=r"no address|leave them out") as raised:
        OllamaEmbedder("toy", address)
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("key", ["s3cret\n", "s3cr\u00e9t", "s3 cret", "s3cret\x00", ""])
def test_a_key_that_no_header_can_hold_is_refused_and_never_shown(key: str) -> None:
    with pytest.raises(InvalidInputError, match="api_key is empty or holds") as raised:
        HttpOptions(api_key=key)
    assert not key or key.strip() not in str(raised.value)


@pytest.mark.requirement("B16")
def test_a_key_never_leaves_the_machine_unencrypted() -> None:
    options = HttpOptions(api_key="s3cret")
    for address in ("http://host.example:8000/v1", "http://10.0.0.7", "http://localhost.example"):
        with pytest.raises(InvalidInputError, match=r"would go to http://\S+ unencrypted") as e:
            OllamaEmbedder("toy", address, http=options)
        assert "s3cret" not in str(e.value)
        OllamaEmbedder("toy", address).close()
    for address in (
        "http://localhost",
        "http://127.0.0.9:1",
        "http://[::1]",
        "https://host.example",
    ):
        OllamaEmbedder("toy", address, http=options).close()


@pytest.mark.requirement("B16")
def test_a_key_goes_to_the_origin_that_it_was_given_with_and_no_other(serve: Serve) -> None:
    own, other = serve(), serve()
    with closing(Http(own.url, HttpOptions(api_key="s3cret"))) as client:
        assert client.get(f"{own.url}/api/tags").good
        for elsewhere in (
            other.url,
            own.url.replace("127.0.0.1", "localhost"),
            "https://127.0.0.1",
        ):
            with pytest.raises(InvalidInputError, match=f"is not on {own.url}"):
                client.get(f"{elsewhere}/api/tags")
    assert other.requests == []


def test_the_proxy_of_the_environment_is_used_but_not_for_this_machine(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, server = serve(), serve()
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("http_proxy", proxy.url.replace("//", "//me:s3cret@"))
    for address in ("http://nowhere.invalid", server.url):
        with closing(Http(address, HttpOptions())) as client:
            client.get(f"{address}/api/tags")
    assert [path for path, _ in proxy.requests] == ["http://nowhere.invalid/api/tags"]
    assert proxy.headers[0]["Proxy-Authorization"] == "Basic bWU6czNjcmV0"
    assert len(server.requests) == 1
    monkeypatch.setenv("http_proxy", "socks5://me:s3cret@127.0.0.1")
    with pytest.raises(InvalidInputError, match=r"'socks5://\*\*\*@127.0.0.1': set one with"):
        Http("http://nowhere.invalid", HttpOptions())


def test_a_redirect_is_not_followed(serve: Serve) -> None:
    other = serve()
    server = serve(modes=[307], location=f"{other.url}/api/embed")
    with (
        ollama(server, http={"api_key": "s3cret"}) as embedder,
        pytest.raises(EmbedderError, match="refused with 307"),
    ):
        embedder.embed(["a mug"])
    assert other.requests == []


def test_a_key_that_the_server_repeats_is_hidden_in_every_form(serve: Serve) -> None:
    key = 'sk"/+%'
    server = serve(key="another", modes=["good"])
    with (
        ollama(server, http={"api_key": key}) as embedder,
        pytest.raises(EmbedderRefusedError) as raised,
    ):
        embedder.embed(["a mug"])
    said = f"{raised.value} {raised.value!r} {raised.value.__cause__!r}"
    for form in (key, json.dumps(key)[1:-1], quote(key, safe="")):
        assert form not in said


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
    with pytest.raises(InvalidInputError, match=says):
        make()
