"""Answers on disk: asked once, told apart by all they depend on, never taken on trust."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("httpcore")
pytest.importorskip("stamina")

from cvx.errors import CacheWarning
from experiments.chat import Answer, AnswerCache, Chat, ChatModel, Message
from experiments.errors import LLMCacheError, LLMCacheMissError, LLMError
from tests.chat_server import Server, serving

HELLO: list[Message] = [{"role": "user", "content": "hello"}]


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    with serving() as start:
        yield start


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_the_same_question_is_asked_once(serve: Callable[..., Server], tmp_path: Path) -> None:
    server = serve((200, "good day"), (200, "another day"))
    for number in range(3):
        with Chat(server.url, ChatModel("m"), cache=AnswerCache(tmp_path)) as chat:
            assert chat.ask(HELLO) == Answer("good day", number > 0, 50, 4)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("model", "messages"),
    [
        (ChatModel("n"), HELLO),
        (ChatModel("m", temperature=0.1), HELLO),
        (ChatModel("m", seed=1), HELLO),
        (ChatModel("m", max_tokens=5), HELLO),
        (ChatModel("m"), [{"role": "user", "content": "hello "}]),
        (ChatModel("m"), [{"role": "system", "content": "hello"}]),
        (ChatModel("m"), [*HELLO, *HELLO]),
    ],
)
def test_whatever_an_answer_depends_on_tells_questions_apart(
    tmp_path: Path, model: ChatModel, messages: list[Message]
) -> None:
    cache = AnswerCache(tmp_path)
    cache.put(ChatModel("m").request(HELLO), Answer("good day"))
    assert cache.get(ChatModel("m").request(HELLO)) == Answer("good day", True)
    assert cache.get(model.request(messages)) is None


def test_a_run_is_repeated_without_the_server(serve: Callable[..., Server], tmp_path: Path) -> None:
    server = serve((200, "good day"))
    with Chat(server.url, ChatModel("m"), cache=AnswerCache(tmp_path)) as chat:
        chat.ask(HELLO)
    only = AnswerCache(tmp_path, only=True)
    with Chat("http://127.0.0.1:9/v1", ChatModel("m"), cache=only) as chat:
        assert chat.ask(HELLO).text == "good day"
        with pytest.raises(LLMCacheMissError, match="the run to repeat asked something else"):
            chat.ask([])
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [500, 200])
def test_failures_are_not_kept(serve: Callable[..., Server], tmp_path: Path, status: int) -> None:
    server = serve((status, {"error": "no"}), (200, "good day"))
    with Chat(server.url, ChatModel("m"), cache=AnswerCache(tmp_path)) as chat:
        if status == 200:
            with pytest.raises(LLMError):
                chat.ask(HELLO)
            assert files(tmp_path) == []
        assert chat.ask(HELLO).text == "good day"


@given(st.text(), st.text(), st.integers(0, 9))
def test_any_text_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, asked: str, told: str, tokens: int
) -> None:
    cache = AnswerCache(tmp_path_factory.mktemp("answers"))
    request = ChatModel("m").request([{"role": "user", "content": asked}])
    cache.put(request, Answer(told, False, tokens, tokens))
    assert cache.get(request) == Answer(told, True, tokens, tokens)


def test_no_flipped_bit_and_no_cut_file_is_believed(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path)
    request = ChatModel("m").request(HELLO)
    cache.put(request, Answer("good day", False, 5, 6))
    (path,) = files(tmp_path)
    good = path.read_bytes()
    damaged: list[bytes] = [good[:cut] for cut in range(0, len(good) - 1, 7)]
    damaged += [good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :] for at in range(0, len(good), 3)]
    for content in damaged:
        path.write_bytes(content)
        with pytest.warns(CacheWarning, match="the model is asked again"):
            assert cache.get(request) is None
    cache.put(request, Answer("good day", False, 5, 6))
    assert path.read_bytes() == good


def test_a_file_of_another_question_is_not_believed(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path)
    mine, other = ChatModel("m").request(HELLO), ChatModel("n").request(HELLO)
    cache.put(mine, Answer("good day"))
    (path,) = files(tmp_path)
    cache.put(other, Answer("bad day"))
    (theirs,) = set(files(tmp_path)) - {path}
    path.write_bytes(theirs.read_bytes())
    with pytest.warns(CacheWarning):
        assert cache.get(mine) is None


def test_a_folder_that_cannot_be_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    cache = AnswerCache(tmp_path / "file")
    request: dict[str, Any] = ChatModel("m").request(HELLO)
    assert cache.get(request) is None
    with pytest.raises(LLMCacheError, match="cannot be written"):
        cache.put(request, Answer("good day"))


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    cache, request = AnswerCache(tmp_path), ChatModel("m").request(HELLO)
    cache.put(request, Answer("good day"))
    (kept,) = files(tmp_path)
    kept.unlink()
    # A folder in the place of the file: the last step of writing fails.
    kept.mkdir()
    (kept / "x").touch()
    with pytest.raises(LLMCacheError, match="cannot be written"):
        cache.put(request, Answer("good day"))
    assert files(tmp_path) == [kept / "x"]
