"""A chat server: one question, one answer, or an error that says what to do."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypedDict

from cvx.embed import Http, HttpOptions, Reply
from cvx.errors import (
    EmbedderAnswerError,
    EmbedderTimeoutError,
    EmbedderUnreachableError,
    InvalidInputError,
    MissingExtraError,
)
from experiments.errors import LLMError, LLMTimeoutError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from experiments.chat.answers import AnswerCache


class Message(TypedDict):
    """What one side said."""

    role: str
    content: str


class Answer(NamedTuple):
    """What a model said.

    Attributes
    ----------
    text : str
        Empty where the server sent no text.
    cached : bool
        Whether it came from disk, and nobody was asked.
    prompt_tokens, completion_tokens : int
        As the server counts them; 0 where it does not.
    """

    text: str
    cached: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ChatModel:
    """Which model answers, and how it draws its words: all that an answer depends on.

    Parameters
    ----------
    name : str
        As the server knows it.
    temperature : float, default 0.0
        At least 0; 0 takes the likeliest word.
    seed : int, default 0
        Of the drawing, for servers that have one.
    max_tokens : int, optional
        Of an answer; by default the server's own.

    Raises
    ------
    InvalidInputError
        An empty name, a negative temperature, no token at all.
    """

    name: str
    temperature: float = 0.0
    seed: int = 0
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        few = self.max_tokens is not None and self.max_tokens < 1
        if not self.name or not self.temperature >= 0 or few:
            raise InvalidInputError(
                f"model {self.name!r}, temperature {self.temperature}, max_tokens "
                f"{self.max_tokens}: give a name, a temperature of at least 0, at least one token"
            )

    def request(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the body of a request: the whole of what an answer depends on."""
        body = {**asdict(self), "messages": list(messages)}
        body["model"] = body.pop("name")
        return {name: value for name, value in body.items() if value is not None}


class Chat:
    """A model behind a server.

    Parameters
    ----------
    url : str
        The server's base address, for example ``http://localhost:11434/v1``, or the full address
        of its ``chat/completions``.
    model : ChatModel
    http : HttpOptions, optional
        Key, time-out and retries.
    cache : AnswerCache, optional
        Answers that are known are taken from there, others put there.

    Raises
    ------
    LLMError
        No address; httpcore or stamina is not installed.
    """

    def __init__(
        self,
        url: str,
        model: ChatModel,
        *,
        http: HttpOptions | None = None,
        cache: AnswerCache | None = None,
    ) -> None:
        self.model = model
        self.cache = cache
        try:
            self._http = Http(url, http or HttpOptions())
        except (InvalidInputError, MissingExtraError) as error:
            raise LLMError(str(error)) from error
        whole = url.endswith("/chat/completions")
        self._url = url if whole else url.rstrip("/") + "/chat/completions"

    def ask(self, messages: Sequence[Message]) -> Answer:
        """Return the model's answer.

        Raises
        ------
        LLMTimeoutError
            No whole answer came in time, repetitions included.
        LLMError
            The server cannot be reached, refuses, or speaks something else.
        LLMCacheMissError
            The answer is not known, and the cache is all that may be asked.
        """
        request = self.model.request(messages)
        if self.cache is not None:
            known = self.cache.get(request)
            if known is not None:
                return known
        answer = self._asked(request)
        if self.cache is not None:
            self.cache.put(request, answer)
        return answer

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _asked(self, request: dict[str, Any]) -> Answer:
        options = self._http.options
        try:
            reply = self._http.post(self._url, request)
        except EmbedderTimeoutError as error:
            raise LLMTimeoutError(
                f"{self._url} gave no answer within {options.timeout_s} s, {options.retries + 1} "
                "times: raise timeout_s or use a faster model"
            ) from error
        except EmbedderUnreachableError as error:
            raise LLMError(
                f"{self._url} cannot be reached ({error.__cause__}): check the address"
            ) from error
        except EmbedderAnswerError as error:
            raise LLMError(f"{self._url} sent more than anybody reads: {error}") from error
        if not reply.good:
            raise LLMError(
                f"{self._url} refused with {reply.status} ({reply.text[:200]!r}): check the "
                "model's name and the key"
            )
        return _read(reply)


def _read(reply: Reply) -> Answer:
    try:
        body = json.loads(reply.text)
        text = body["choices"][0]["message"]["content"]
        counts = body.get("usage") or {}
        tokens = [int(counts.get(f"{kind}_tokens") or 0) for kind in ("prompt", "completion")]
    # A number of tokens may be infinite: JSON as Python reads it has such.
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        OverflowError,
    ) as error:
        raise LLMError(
            f"{reply.url} does not speak the chat protocol (it sent {reply.text[:200]!r}): "
            "give the address of an OpenAI-compatible server"
        ) from error
    return Answer(text if isinstance(text, str) else "", False, *tokens)
