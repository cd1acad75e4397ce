"""Asking a chat server: what is sent, what comes back, and every way it can fail."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("httpcore")
pytest.importorskip("stamina")

from cvx.embed import HttpOptions
from cvx.errors import InvalidInputError
from experiments.chat import Answer, Chat, ChatModel
from experiments.errors import LLMError, LLMTimeoutError
from tests.chat_server import SILENCE, Server, serving

HTTP = HttpOptions(timeout_s=2.0, retries=1, backoff_s=0.0)


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    with serving() as start:
        yield start


def ask(server: Server, **settings: Any) -> Answer:
    with Chat(server.url, ChatModel("m", **settings), http=HTTP) as chat:
        return chat.ask([{"role": "user", "content": "hello"}])


def test_what_an_answer_depends_on_is_sent_and_nothing_else(serve: Callable[..., Server]) -> None:
    server = serve((200, "good day"))
    assert ask(server, temperature=0.5, seed=3, max_tokens=9) == Answer("good day", False, 50, 4)
    assert server.requests[0] == {
        "model": "m",
        "temperature": 0.5,
        "seed": 3,
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "hello"}],
    }
    ask(server)
    assert "max_tokens" not in server.requests[1]


@pytest.mark.parametrize(
    ("message", "text"),
    [({"content": None}, ""), ({"content": ["a"]}, ""), ({"content": ""}, "")],
)
def test_an_answer_without_text_is_empty(
    serve: Callable[..., Server], message: dict[str, Any], text: str
) -> None:
    assert ask(serve((200, {"choices": [{"message": message}]}))) == Answer(text)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        {"choices": []},
        {"choices": [{"text": "look"}]},
        {"choices": [{"message": {"content": "look"}}], "usage": "much"},
        {"choices": [{"message": {"content": "look"}}], "usage": {"prompt_tokens": "much"}},
        {"choices": [{"message": {"content": "look"}}], "usage": {"prompt_tokens": math.inf}},
        [1],
        "null",
    ],
)
def test_what_is_no_completion_is_a_typed_error(serve: Callable[..., Server], body: Any) -> None:
    sent = b"null" if body == "null" else body
    with pytest.raises(LLMError, match="does not speak the chat protocol"):
        ask(serve((200, sent)))


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_a_refusal_is_a_typed_error_with_what_the_server_said(
    serve: Callable[..., Server], status: int
) -> None:
    with pytest.raises(LLMError, match=rf"refused with {status} .*out of order"):
        ask(serve((status, {"error": "out of order"})))


def test_silence_is_a_typed_timeout(serve: Callable[..., Server]) -> None:
    server = serve((SILENCE, "late"))
    options = HttpOptions(timeout_s=0.1, retries=1, backoff_s=0.0)
    with (
        Chat(server.url, ChatModel("m"), http=options) as chat,
        pytest.raises(LLMTimeoutError, match=r"no answer within 0\.1 s, 2 times"),
    ):
        chat.ask([])


@pytest.mark.parametrize(
    "settings", [{"name": ""}, {"name": "m", "temperature": -0.1}, {"name": "m", "max_tokens": 0}]
)
def test_a_model_that_cannot_be_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="at least one token"):
        ChatModel(**settings)
