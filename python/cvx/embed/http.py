"""An HTTP client for embedding servers: deadlines, retries, and keys bound to one origin."""

from __future__ import annotations

import ipaddress
import json
import logging
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from cvx.arguments import above_zero, check_fields, number, whole
from cvx.errors import (
    EmbedderAnswerError,
    EmbedderTimeoutError,
    EmbedderUnreachableError,
    InvalidInputError,
)
from cvx.extras import needs

_RETRYABLE = {408, 409, 425, 429}
_MAX_ANSWER_BYTES = 256 << 20
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONNECTIONS, _IDLE, _IDLE_S = 100, 20, 5.0


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How a server is asked.

    Parameters
    ----------
    api_key : str, optional
        Sent to the origin (scheme, host and port) of the address that it is given with, to no
        other, and never unencrypted to another machine. Never shown in messages or ``repr``.
    api_key_header : str, default "Authorization"
        Where the key goes: a bearer token there, the bare key in any other header.
    timeout_s : float, default 60
        Seconds within which a whole answer must have come, connecting included. A server that has
        yet to load a model may need many.
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
        check_fields(
            self, timeout_s=above_zero, retries=whole(0), backoff_s=number(0.0), batch_size=whole(1)
        )
        key = self.api_key
        if key is not None and not (key and key.isascii() and key.isprintable() and " " not in key):
            raise InvalidInputError(
                "api_key is empty or holds a space, a line break or another character that no "
                "header can: give the key alone"
            )
        if not _HEADER.fullmatch(self.api_key_header):
            raise InvalidInputError(
                f"api_key_header is {self.api_key_header!r}: give the name of a header"
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
    text: str = field(repr=False)

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


# Retries are told by the error that they end in, if they do; who logs hears of each.
logging.getLogger("stamina").addHandler(logging.NullHandler())


class _BusyError(Exception):
    def __init__(self, reply: Reply) -> None:
        self.reply = reply


class Http:
    """One connection pool to one server; threads may share it.

    Redirects are not followed: they could lead the key, or what is embedded, elsewhere.

    Parameters
    ----------
    url : str
        Any address on the server, to begin with ``http://`` or ``https://``.
    options : HttpOptions

    Raises
    ------
    InvalidInputError
        No address; one with a user name or password in it; a key that would leave this machine
        unencrypted.
    MissingExtraError
        The extra ``http`` is not installed.
    """

    def __init__(self, url: str, options: HttpOptions) -> None:
        parts = _address(url)
        local = _is_loopback(parts)
        if options.api_key is not None and parts.scheme == "http" and not local:
            raise InvalidInputError(
                f"the key would go to {_origin(parts)} unencrypted: give an https:// address, or "
                "no key"
            )
        with needs("http"):
            import httpcore
            import stamina  # noqa: F401

        from cvx.embed.deadline import Deadline, Network

        self.options = options
        self._origin = _origin(parts)
        self._deadline = Deadline()
        how: dict[str, Any] = {
            "ssl_context": httpcore.default_ssl_context() if parts.scheme == "https" else None,
            "max_connections": _CONNECTIONS,
            "max_keepalive_connections": _IDLE,
            "keepalive_expiry": _IDLE_S,
            "network_backend": Network(self._deadline),
        }
        # A proxy for the outside world must not stand between a program and its own machine.
        proxy = None if local else _proxy(parts)
        if proxy is None:
            self._pool = httpcore.ConnectionPool(**how)
        else:
            self._pool = httpcore.HTTPProxy(
                f"http://{proxy.hostname}:{proxy.port or 80}",
                proxy_auth=(unquote(proxy.username), unquote(proxy.password or ""))
                if proxy.username
                else None,
                **how,
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
        self._pool.close()

    def _ask(self, method: str, url: str, body: object) -> Reply:
        import httpcore
        import stamina

        parts, options = _address(url), self.options
        if _origin(parts) != self._origin:
            raise InvalidInputError(
                f"{without_secrets(url)!r} is not on {self._origin}: make another client for it"
            )
        shown = parts._replace(query="", fragment="").geturl()
        repeated = (
            _BusyError,
            httpcore.TimeoutException,
            httpcore.NetworkError,
            httpcore.RemoteProtocolError,
            httpcore.ProxyError,
        )
        retrying = stamina.RetryingCaller(
            attempts=options.retries + 1,
            timeout=None,
            wait_initial=options.backoff_s,
            wait_max=8.0,
            wait_jitter=0.0,
        )
        try:
            return retrying(repeated, self._once, method, url, shown, body)
        except _BusyError as busy:
            return busy.reply
        except httpcore.TimeoutException as error:
            raise EmbedderTimeoutError(
                f"{shown} gave no whole answer within {options.timeout_s} s, "
                f"{options.retries + 1} times: raise timeout_s, lower batch_size, or use a "
                "faster model"
            ) from error
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError) as error:
            raise EmbedderUnreachableError(
                f"{shown} cannot be reached ({self._hidden(str(error)[:200])}), tried "
                f"{options.retries + 1} times: start the server (for Ollama: `ollama serve`) and "
                "check the address"
            ) from error

    def _once(self, method: str, url: str, shown: str, body: object) -> Reply:
        headers: list[tuple[bytes | str, bytes | str]] = [
            ("Accept", "application/json"),
            # What comes packed cannot be bounded by what was received.
            ("Accept-Encoding", "identity"),
            ("User-Agent", "cvx"),
            *self.options.headers().items(),
        ]
        content = None
        if body is not None:
            headers.append(("Content-Type", "application/json"))
            content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        data = bytearray()
        timeout_s = self.options.timeout_s
        with (
            self._deadline.within(timeout_s),
            self._pool.stream(
                method,
                url,
                headers=headers,
                content=content,
                extensions={"timeout": {"pool": timeout_s}},
            ) as response,
        ):
            for name, value in response.headers:
                if name.lower() == b"content-encoding" and value.lower() != b"identity":
                    raise EmbedderAnswerError(
                        f"{shown} packed its answer ({value[:40]!r}) unasked: let it send plain "
                        "JSON"
                    )
            for chunk in response.iter_stream():
                data += chunk
                if len(data) > _MAX_ANSWER_BYTES:
                    raise EmbedderAnswerError(
                        f"{shown} sent more than {_MAX_ANSWER_BYTES >> 20} MiB: lower batch_size"
                    )
        text = self._hidden(data.decode("utf-8", "replace"))
        reply = Reply(shown, response.status, text)
        if (reply.status in _RETRYABLE or reply.status >= 500) and not says_too_long(text):
            raise _BusyError(reply)
        return reply

    def _hidden(self, text: str) -> str:
        """Return what a server sent without the key, which some repeat."""
        key = self.options.api_key
        for form in () if key is None else (key, json.dumps(key)[1:-1], quote(key, safe="")):
            text = text.replace(form, "***")
        return text


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


def without_secrets(text: str) -> str:
    """Return an address, or a line with one in it, without user name, password and query.

    Examples
    --------
    >>> without_secrets("openai:bge-m3@https://me:secret@host/v1?key=secret")
    'openai:bge-m3@https://***@host/v1?***'
    """
    return _QUERY.sub("?***", _ORIGIN.sub(_without_user, text))


# Behind two slashes, or at the beginning of a line without any.
_ORIGIN = re.compile(r"(//|\A(?!.*//))(\S*+)")
_QUERY = re.compile(r"[?#]\S+")


def _without_user(found: re.Match[str]) -> str:
    _, at, host = found[2].rpartition("@")
    return f"{found[1]}***@{host}" if at else found[0]


def _address(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        whole = parts.hostname and parts.port != 0 and parts.scheme in ("http", "https")
    except ValueError:
        whole = False
    if not whole or not (url.isascii() and url.isprintable() and " " not in url):
        raise InvalidInputError(
            f"{without_secrets(url)!r} is no address: give one such as http://localhost:11434"
        )
    if "@" in parts.netloc:
        # It would be remembered with the address, and shown wherever that is.
        raise InvalidInputError(
            f"the address of {parts.hostname} holds a user name or a password: leave them out, and "
            "give a key as HttpOptions(api_key=...)"
        )
    return parts


def origin_of(url: str) -> str:
    """Return scheme, host and port of an address: what a key is bound to.

    Raises
    ------
    InvalidInputError
        No address, or one with a user name or password in it.

    Examples
    --------
    >>> origin_of("https://Host.example:443/v1/embeddings")
    'https://host.example'
    """
    return _origin(_address(url))


def _origin(parts: SplitResult) -> str:
    usual = {"http": 80, "https": 443}[parts.scheme]
    port = "" if parts.port in (None, usual) else f":{parts.port}"
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"


def _is_loopback(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _proxy(parts: SplitResult) -> SplitResult | None:
    """Return the proxy that the environment names for an address."""
    found = getproxies()
    named = found.get(parts.scheme) or found.get("all")
    if not named or proxy_bypass(parts.netloc):
        return None
    proxy = urlsplit(named if "//" in named else f"http://{named}")
    if proxy.scheme != "http" or not proxy.hostname:
        raise InvalidInputError(
            f"the proxy of the environment is {without_secrets(named)!r}: set one with http://, or "
            f"no_proxy={parts.hostname}"
        )
    return proxy
