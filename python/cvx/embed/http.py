"""Asking a server: retries, deadlines, and errors that say what to do."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from cvx.errors import (
    EmbedderAnswerError,
    EmbedderTimeoutError,
    EmbedderUnreachableError,
    InvalidParameterError,
    MissingExtraError,
)

_RETRYABLE = {408, 409, 425, 429}
_MAX_ANSWER_BYTES = 256 << 20
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How a server is asked.

    Parameters
    ----------
    api_key : str, optional
        Never shown in messages or ``repr``.
    api_key_header : str, default "Authorization"
        Where the key goes: a bearer token there, the bare key in any other header.
    timeout_s : float, default 60
        Seconds within which a whole answer must have come. A server that has yet to load a model
        may need many.
    retries : int, default 2
        How often a request is repeated after a time-out, a broken connection, 429 or 5xx.
    backoff_s : float, default 0.5
        Seconds before the first repetition; they double each time, up to 8.
    batch_size : int, default 64
        Texts a request.
    """

    api_key: str | None = field(default=None, repr=False)
    api_key_header: str = "Authorization"
    timeout_s: float = 60.0
    retries: int = 2
    backoff_s: float = 0.5
    batch_size: int = 64

    def __post_init__(self) -> None:
        bounds = {"timeout_s": self.timeout_s > 0, "retries": self.retries >= 0}
        bounds |= {"backoff_s": self.backoff_s >= 0, "batch_size": self.batch_size >= 1}
        for name, good in bounds.items():
            if not good:
                raise InvalidParameterError(
                    f"{name} is {getattr(self, name)}: timeout_s must be above 0, batch_size at "
                    "least 1, retries and backoff_s at least 0"
                )

    def headers(self) -> dict[str, str]:
        """The header that carries the key, if there is a key."""
        if self.api_key is None:
            return {}
        bearer = self.api_key_header.lower() == "authorization"
        return {self.api_key_header: f"Bearer {self.api_key}" if bearer else self.api_key}


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered, whatever the status."""

    url: str
    status: int
    text: str

    @property
    def good(self) -> bool:
        """Whether it is no refusal."""
        return 200 <= self.status < 300

    def json(self) -> Any:
        """Parse the body.

        Raises
        ------
        EmbedderAnswerError
            If it is no JSON.
        """
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError) as error:
            raise EmbedderAnswerError(
                f"{self.url} sent no JSON ({self.text[:200]!r}): "
                "give the address of an embedding server"
            ) from error


class _BusyError(Exception):
    def __init__(self, reply: Reply) -> None:
        self.reply = reply


class Http:
    """One connection pool to one server; threads may share it.

    Parameters
    ----------
    url : str
        Any address on the server, to begin with ``http://`` or ``https://``.
    options : HttpOptions
    """

    def __init__(self, url: str, options: HttpOptions) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise InvalidParameterError(
                f"{url!r} is no address: give one such as http://localhost:11434"
            )
        try:
            import httpx
            import stamina  # noqa: F401
        except ImportError as error:
            raise MissingExtraError(f"{error}: pip install 'cvx[http]'") from error
        self.options = options
        # A proxy for the outside world must not stand between a program and its own machine.
        self._client = httpx.Client(
            timeout=options.timeout_s,
            headers=options.headers(),
            trust_env=parts.hostname not in _LOOPBACK,
        )

    def get(self, url: str) -> Reply:
        """Send a GET request."""
        return self._ask("GET", url, None)

    def post(self, url: str, body: object) -> Reply:
        """Send a POST request with a JSON body.

        Returns
        -------
        Reply
            Of any status; those worth repeating were repeated before.

        Raises
        ------
        EmbedderTimeoutError
            If no whole answer came in time, repetitions included.
        EmbedderUnreachableError
            If there is no connection, or every one broke off.
        """
        return self._ask("POST", url, body)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _ask(self, method: str, url: str, body: object) -> Reply:
        import httpx
        import stamina

        shown, options = _without_secrets(url), self.options
        attempts = stamina.retry_context(
            on=_worth_repeating,
            attempts=options.retries + 1,
            timeout=None,
            wait_initial=options.backoff_s,
            wait_max=8.0,
            wait_jitter=0.0,
        )
        reply = None
        try:
            for attempt in attempts:
                with attempt:
                    reply = self._once(method, url, shown, body)
        except _BusyError as busy:
            reply = busy.reply
        except httpx.TimeoutException as error:
            raise EmbedderTimeoutError(
                f"{shown} gave no whole answer within {options.timeout_s} s, "
                f"{options.retries + 1} times: raise timeout_s, lower batch_size, or use a "
                "faster model"
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise EmbedderUnreachableError(
                f"{shown} cannot be reached ({error}), tried {options.retries + 1} times: start "
                "the server (for Ollama: `ollama serve`) and check the address"
            ) from error
        assert reply is not None
        return reply

    def _once(self, method: str, url: str, shown: str, body: object) -> Reply:
        import httpx

        data = bytearray()
        deadline = time.monotonic() + self.options.timeout_s
        with self._client.stream(method, url, json=body) as response:
            # httpx bounds each read alone: a server that drips would never be timed out.
            for chunk in response.iter_bytes():
                data += chunk
                if time.monotonic() > deadline:
                    raise httpx.ReadTimeout("the answer drips", request=response.request)
                if len(data) > _MAX_ANSWER_BYTES:
                    raise EmbedderAnswerError(
                        f"{shown} sent more than {_MAX_ANSWER_BYTES >> 20} MiB: lower batch_size"
                    )
        text = data.decode("utf-8", "replace")
        if self.options.api_key:
            text = text.replace(self.options.api_key, "***")
        reply = Reply(shown, response.status_code, text)
        if (reply.status in _RETRYABLE or reply.status >= 500) and not says_too_long(text):
            raise _BusyError(reply)
        return reply


def says_too_long(text: str) -> bool:
    """Whether a refusal is about the length of a text or of a batch."""
    low = text[:2000].lower()
    return any(
        words in low
        for words in (
            "context length",
            "context size",
            "too long",
            "too large",
            "max_tokens",
            "maximum input",
            "maximum allowed batch",
        )
    )


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query="", fragment="").geturl()


def _worth_repeating(error: Exception) -> bool:
    import httpx

    return isinstance(error, (_BusyError, httpx.TransportError))
