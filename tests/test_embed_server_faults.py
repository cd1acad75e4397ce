"""Embedders against servers that fail in every way: typed errors, and never a wrong vector."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

pytest.importorskip("httpcore")
pytest.importorskip("stamina")

from cvx.embed import HttpOptions, OllamaEmbedder, OpenAIEmbedder
from cvx.embed.servers import ServedEmbedder
from cvx.errors import (
    EmbedderAnswerError,
    EmbedderDimensionError,
    EmbedderRefusedError,
    EmbedderTimeoutError,
    EmbedderUnreachableError,
    TextTooLongError,
)
from tests.embed_server import OLLAMA, OPENAI, Server, running, unit_of
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


def test_retries_print_nothing() -> None:
    code = """
from cvx.embed import HttpOptions, OllamaEmbedder
from cvx.errors import EmbedderUnreachableError
try:
    OllamaEmbedder("toy", "http://127.0.0.1:9", http=HttpOptions(backoff_s=0.0)).embed(["a mug"])
except EmbedderUnreachableError:
    pass
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


@BOTH
@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_passing_fault_is_repeated(
    serve: Serve, make: Make, endpoints: frozenset[str], status: int
) -> None:
    server = serve(endpoints=endpoints, modes=[status, "truncated", "good"])
    with make(server) as embedder:
        np.testing.assert_allclose(embedder.embed(["a mug"]), expected(["a mug"]), rtol=1e-6)
    assert len(server.requests) == 3


@BOTH
def test_a_lasting_fault_is_a_typed_error_after_the_retries(
    serve: Serve, make: Make, endpoints: frozenset[str]
) -> None:
    server = serve(endpoints=endpoints, modes=[500])
    with (
        make(server, http={"retries": 1}) as embedder,
        pytest.raises(EmbedderRefusedError, match=r"refused with 500 .*out of order.*the server's"),
    ):
        embedder.embed(["a mug"])
    assert len(server.requests) == 2


@BOTH
def test_silence_is_a_typed_timeout_after_the_retries(
    serve: Serve, make: Make, endpoints: frozenset[str]
) -> None:
    server = serve(endpoints=endpoints, modes=["silent"])
    with (
        make(server, http={"timeout_s": 0.1, "retries": 1}) as embedder,
        pytest.raises(EmbedderTimeoutError, match=r"within 0\.1 s, 2 times: raise timeout_s"),
    ):
        embedder.embed(["a mug"])
    assert server.arrivals.at_least(2) == 2


def test_an_answer_that_drips_runs_into_the_deadline_too(serve: Serve) -> None:
    server = serve(modes=["drip"])
    with (
        ollama(server, http={"timeout_s": 0.3, "retries": 0}) as embedder,
        pytest.raises(EmbedderTimeoutError, match=r"0\.3 s"),
    ):
        embedder.embed(["a mug"])


def test_answers_that_break_off_are_a_typed_error_after_the_retries(serve: Serve) -> None:
    server = serve(modes=["truncated"])
    with (
        ollama(server) as embedder,
        pytest.raises(EmbedderUnreachableError, match=r"tried 3 times.*`ollama serve`"),
    ):
        embedder.embed(["a mug"])
    assert len(server.requests) == 3


def test_no_server_is_a_typed_error() -> None:
    with (
        nobody() as address,
        OllamaEmbedder("toy", address, http=HttpOptions(retries=0)) as embedder,
        pytest.raises(EmbedderUnreachableError, match=r"start the server .* check the address"),
    ):
        embedder.embed(["a mug"])


@BOTH
@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("nan", "NaN or infinity for text 1 of 2"),
        ("zeros", "zeros for text 1 of 2"),
        ("count", "1 vectors for 2 texts"),
        ("ragged", "no matrix of numbers"),
        ("text", "no matrix of numbers"),
        ("garbage", "sent no JSON"),
    ],
)
def test_a_bad_answer_is_never_taken_for_vectors(
    serve: Serve, make: Make, endpoints: frozenset[str], mode: str, says: str
) -> None:
    if (make, mode) == (openai, "count"):
        says = r"rows numbered \[0\] for 2 texts"
    server = serve(endpoints=endpoints, modes=[mode])
    with make(server) as embedder, pytest.raises(EmbedderAnswerError, match=says):
        embedder.embed(["a mug", "a shelf"])


@pytest.mark.requirement("X8")
@BOTH
def test_another_dimension_than_declared_names_both_and_the_model(
    serve: Serve, make: Make, endpoints: frozenset[str]
) -> None:
    server = serve(endpoints=endpoints, dim=384)
    with (
        make(server, dim=768) as embedder,
        pytest.raises(EmbedderDimensionError, match=r"'toy' gives 384 dimensions, 768 were expe"),
    ):
        embedder.embed(["a mug"])


def test_a_dimension_that_changes_on_the_way_is_an_error(serve: Serve) -> None:
    server = serve(dim=4)
    with ollama(server) as embedder:
        embedder.embed(["a mug"])
        server.dim = 6
        with pytest.raises(EmbedderDimensionError, match="6 dimensions, 4 were expected"):
            embedder.embed(["a mug"])


@BOTH
def test_the_text_that_is_too_long_is_found_and_named(
    serve: Serve, make: Make, endpoints: frozenset[str]
) -> None:
    server = serve(endpoints=endpoints, longest=20)
    texts = [*TEXTS, "a very long story about a mug", "a pan"]
    with (
        make(server, max_tokens=5, http={"batch_size": 4}) as embedder,
        pytest.raises(TextTooLongError, match=r"text 5, 29 characters .*\(5 tokens\): split it"),
    ):
        embedder.embed(texts)
