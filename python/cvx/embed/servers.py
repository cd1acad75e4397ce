"""Embedders behind a server: Ollama's protocol, OpenAI's, and finding out which one it speaks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

import numpy as np

from cvx.arguments import optional, whole
from cvx.embed.http import Http, HttpOptions, Reply, says_too_long
from cvx.embed.models import OLLAMA_URL, preset_for
from cvx.embed.protocol import Prefixed, Threaded, checked_rows, listed, normalised, with_prefixes
from cvx.errors import (
    EmbedderAnswerError,
    EmbedderDimensionError,
    EmbedderError,
    EmbedderRefusedError,
    EmbedderWarning,
    EndpointMissingError,
    InvalidInputError,
    ModelNotFoundError,
    TextTooLongError,
    warn,
)
from cvx.types import Vector

_NO_MODEL = ("not found", "does not exist", "not_found", "no such", "failed to load")
_OLLAMA_ENDINGS = ("/api/embeddings", "/api/embed", "/api", "/v1/embeddings", "/v1")
_OPENAI_ENDINGS = ("/embeddings", "/api")


class ServedEmbedder(Threaded):
    """Vectors from a server, of norm 1 whatever the server makes of them.

    Parameters
    ----------
    url : str
        The server's base address, or that of its endpoint.
    model : str
        The model's name as the server knows it.
    dim : int, optional
        What the dimension must be; by default it is learned from the first answer.
    max_tokens : int, optional
        How many tokens the model reads, for ``info()``.
    http : HttpOptions
        Key, time-out, retries, batch size.
    """

    provider: ClassVar[str]
    _listing: tuple[str, str, str]

    def __init__(
        self,
        url: str,
        model: str,
        *,
        dim: int | None = None,
        max_tokens: int | None = None,
        http: HttpOptions | None = None,
    ) -> None:
        if not model:
            raise InvalidInputError("model is empty: give its name as the server knows it")
        optional(whole(1))("dim", dim)
        self.url = url
        self.model = model
        self.dim = dim
        self.max_tokens = max_tokens
        self._http = Http(url, http or HttpOptions())
        self._source = f"{self.provider} model {model!r}"

    def __repr__(self) -> str:
        return f"<{self._source}>"

    def info(self) -> dict[str, Any]:
        """Describe the vectors; embeds one text if the dimension is not yet known.

        The ``id`` names the model and the dimension, not the address: the same model behind
        another address or protocol gives vectors that may be mixed.
        """
        if self.dim is None:
            self.embed(["dimension"])
        return {
            "id": f"served/{self.model.removesuffix(':latest')}/{self.dim}",
            "dim": self.dim,
            "semantic": True,
            "provider": self.provider,
            "model": self.model,
            "prefixes": {"query": "", "document": ""},
            "max_tokens": self.max_tokens,
        }

    def embed(self, texts: Sequence[str]) -> Vector:
        """Embed a batch, in as many requests as it takes.

        Parameters
        ----------
        texts : sequence of str
            n texts; n may be 0.

        Returns
        -------
        ndarray of shape (n, dim), float32
            Rows of norm 1.

        Raises
        ------
        EmbedderTimeoutError, EmbedderUnreachableError
            If no answer came, repetitions included.
        ModelNotFoundError, EmbedderRefusedError, TextTooLongError, EndpointMissingError
            If the server refuses for one of these reasons.
        EmbedderRefusedError
            If it refuses for another one.
        EmbedderDimensionError
            If the vectors have another dimension than ``dim``.
        EmbedderAnswerError
            If the answer is anything but one row of finite numbers for each text.
        """
        batch = listed(texts)
        if not batch:
            return np.zeros((0, self.info()["dim"]), dtype=np.float32)
        size = self._http.options.batch_size
        parts = [self._batch(batch[at : at + size], at) for at in range(0, len(batch), size)]
        return np.concatenate(parts)

    def models(self) -> list[str] | None:
        """List the models of the server, or return None if it does not say."""
        path, listed_as, name = self._listing
        try:
            entries = self._field(self._http.get(path), listed_as)
            return [str(entry[name]) for entry in entries]
        except (EmbedderAnswerError, EndpointMissingError, TypeError, LookupError):
            return None

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @abstractmethod
    def _ask(self, texts: list[str]) -> object:
        """Send one request and return the rows as they came."""

    @abstractmethod
    def _cure_for_missing_model(self) -> str:
        """Say what to do where the server has no such model."""

    def _batch(self, texts: list[str], first: int) -> Vector:
        try:
            answer = self._ask(texts)
        except TextTooLongError as error:
            if len(texts) == 1:
                reads = f" ({self.max_tokens} tokens)" if self.max_tokens else ""
                raise TextTooLongError(
                    f"text {first}, {len(texts[0])} characters from {texts[0][:40]!r} on, is "
                    f"longer than {self._source} reads{reads}: split it ({error})"
                ) from error
            # The server does not say which text: halving finds it, or batches that do fit.
            half = len(texts) // 2
            return np.concatenate(
                [self._batch(texts[:half], first), self._batch(texts[half:], first + half)]
            )
        rows = checked_rows(answer, len(texts), self._source, self.dim)
        rows = normalised(rows, self._source)
        self.dim = rows.shape[1]
        return rows

    def _field(self, reply: Reply, name: str) -> Any:
        """Take a field of a good answer, or explain the refusal."""
        if not reply.good:
            raise self._explained(reply)
        body = reply.json()
        if not isinstance(body, dict) or name not in body:
            raise EmbedderAnswerError(
                f"{reply.url} does not speak the protocol of {self.provider}: it sent "
                f"{reply.text[:200]!r} without {name!r}; check the address"
            )
        return body[name]

    def _explained(self, reply: Reply) -> EmbedderRefusedError:
        said = f"{reply.url} refused with {reply.status} ({reply.text[:200]!r})"
        low = reply.text[:2000].lower()
        if reply.status in {401, 403}:
            return EmbedderRefusedError(
                f"{said}: give the server's key as HttpOptions(api_key=...)"
            )
        if says_too_long(low) or reply.status == 413:
            return TextTooLongError(said)
        if "model" in low and any(words in low for words in _NO_MODEL):
            return ModelNotFoundError(
                f"{self.provider} has no model {self.model!r}: {self._cure_for_missing_model()}"
            )
        if reply.status in {404, 405}:
            return EndpointMissingError(
                f"{said}: it does not speak the protocol of {self.provider}; check the address"
            )
        return EmbedderRefusedError(
            f"{said}: check that {self.model!r} is an embedding model, and the server's log"
        )


class OllamaEmbedder(ServedEmbedder):
    """Vectors from an Ollama server.

    A text longer than the model reads is an error, never cut in silence. Only where the server
    is so old that it has nothing but ``/api/embeddings`` it may be cut: a warning says so.

    Parameters
    ----------
    model : str
        Such as ``"nomic-embed-text"``; fetch it with ``ollama pull`` first.
    url : str, default "http://localhost:11434"
        The server's address.
    dim, max_tokens : int, optional
        What the dimension must be; how many tokens the model reads.
    http : HttpOptions
        Key, time-out, retries, batch size.

    Examples
    --------
    >>> embedder = OllamaEmbedder("nomic-embed-text")   # doctest: +SKIP
    >>> embedder.embed(["a mug on a shelf"]).shape      # doctest: +SKIP
    (1, 768)
    """

    provider: ClassVar[str] = "ollama"

    def __init__(
        self,
        model: str,
        url: str = OLLAMA_URL,
        *,
        dim: int | None = None,
        max_tokens: int | None = None,
        http: HttpOptions | None = None,
    ) -> None:
        super().__init__(url, model, dim=dim, max_tokens=max_tokens, http=http)
        self._root = base_of(url, _OLLAMA_ENDINGS)
        self._listing = f"{self._root}/api/tags", "models", "name"
        self._legacy = False

    def _cure_for_missing_model(self) -> str:
        return f"run `ollama pull {self.model}`"

    def _ask(self, texts: list[str]) -> object:
        if not self._legacy:
            body = {"model": self.model, "input": texts, "truncate": False}
            try:
                return self._field(self._http.post(f"{self._root}/api/embed", body), "embeddings")
            except EndpointMissingError as missing:
                return self._ask_legacy_first(texts, missing)
        return self._ask_legacy(texts)

    def _ask_legacy_first(self, texts: list[str], missing: EndpointMissingError) -> object:
        try:
            rows = self._ask_legacy(texts)
        except (EndpointMissingError, EmbedderAnswerError):
            raise missing from None
        except EmbedderRefusedError:
            self._legacy = True
            raise
        self._legacy = True
        warn(
            f"{self._root} has no /api/embed: /api/embeddings takes one text a request and may "
            "cut long ones without a word; upgrade Ollama",
            EmbedderWarning,
        )
        return rows

    def _ask_legacy(self, texts: list[str]) -> list[object]:
        url = f"{self._root}/api/embeddings"
        return [
            self._field(self._http.post(url, {"model": self.model, "prompt": text}), "embedding")
            for text in texts
        ]


class OpenAIEmbedder(ServedEmbedder):
    """Vectors from a server that speaks OpenAI's embedding protocol.

    Parameters
    ----------
    model : str
        The model's name as the server knows it.
    url : str
        The base address, such as ``http://localhost:1234/v1`` or ``https://api.openai.com/v1``,
        or the full address of ``embeddings``. An address without a path gets ``/v1``.
    dim, max_tokens : int, optional
        What the dimension must be; how many tokens the model reads.
    shorten : bool, default False
        Ask the server for vectors of ``dim`` dimensions, which some models can shorten to.
    http : HttpOptions
        Key, time-out, retries, batch size.

    Examples
    --------
    >>> embedder = OpenAIEmbedder("bge-m3", "http://localhost:8000/v1")   # doctest: +SKIP
    >>> embedder.embed(["a mug on a shelf"]).shape                        # doctest: +SKIP
    (1, 1024)
    """

    provider: ClassVar[str] = "openai"

    def __init__(
        self,
        model: str,
        url: str,
        *,
        dim: int | None = None,
        max_tokens: int | None = None,
        shorten: bool = False,
        http: HttpOptions | None = None,
    ) -> None:
        super().__init__(url, model, dim=dim, max_tokens=max_tokens, http=http)
        base = base_of(url, _OPENAI_ENDINGS)
        self._base = base if urlsplit(base).path else f"{base}/v1"
        self._listing = f"{self._base}/models", "data", "id"
        self._extra = {"dimensions": dim} if shorten and dim is not None else {}

    def _cure_for_missing_model(self) -> str:
        offered = self.models()
        if offered:
            return f"load it in the server, or choose one of its own: {', '.join(offered[:20])}"
        return "load it in the server, or choose one that it has"

    def _ask(self, texts: list[str]) -> object:
        body = {"model": self.model, "input": texts, **self._extra}
        reply = self._http.post(f"{self._base}/embeddings", body)
        entries: Any = self._field(reply, "data")
        try:
            # The protocol numbers the rows and does not promise their order.
            places = [entry.get("index", at) for at, entry in enumerate(entries)]
            if sorted(places) != list(range(len(texts))):
                raise EmbedderAnswerError(
                    f"{self._source} answered with rows numbered {places[:20]} for {len(texts)} "
                    "texts: a server that cannot embed batches needs batch_size=1"
                )
            by_place = dict(zip(places, entries, strict=True))
            return [by_place[at]["embedding"] for at in range(len(texts))]
        except (TypeError, LookupError, AttributeError) as error:
            raise EmbedderAnswerError(
                f"{reply.url} does not speak the protocol of {self.provider}: it sent "
                f"{reply.text[:200]!r}; check the address"
            ) from error


def detect(
    url: str,
    model: str,
    *,
    dim: int | None = None,
    prefixes: Mapping[str, str] | None = None,
    http: HttpOptions | None = None,
) -> OllamaEmbedder | OpenAIEmbedder | Prefixed:
    """Make the embedder that fits a server: Ollama's protocol or OpenAI's.

    The address tells which is tried first (``/v1`` in the path: OpenAI's; port 11434, ``/api``
    or nothing special: Ollama's). The server then embeds one text; if it does not speak that
    protocol, the other is tried.

    Parameters
    ----------
    url : str
        The server's address.
    model : str
        The model's name as the server knows it.
    dim : int, optional
        What the dimension must be; by default that of the model's preset, if it has one.
    prefixes : mapping, optional
        ``{"query": ..., "document": ...}``; by default those of the preset. ``{}`` for none.
    http : HttpOptions
        Key, time-out, retries, batch size.

    Returns
    -------
    OllamaEmbedder, OpenAIEmbedder or Prefixed
        With its dimension known. Close it when it is no longer needed.

    Raises
    ------
    EmbedderError
        A subclass says what is wrong: no server, no such model, a key, the dimension; or the
        server speaks neither protocol.
    """
    preset = preset_for(model)
    if preset is not None:
        dim = preset.dim if dim is None else dim
        prefixes = preset.prefixes if prefixes is None else prefixes
    max_tokens = None if preset is None else preset.max_tokens
    failures = []
    path = urlsplit(url).path.rstrip("/")
    openai_first = "/v1" in path or path.endswith("/openai")
    protocols: tuple[type[OllamaEmbedder | OpenAIEmbedder], ...] = (OllamaEmbedder, OpenAIEmbedder)
    for protocol in reversed(protocols) if openai_first else protocols:
        candidate = protocol(model, url, dim=dim, max_tokens=max_tokens, http=http)
        try:
            candidate.embed(["which protocol"])
        except BaseException as error:
            candidate.close()
            if not _speaks_another_protocol(error):
                raise
            failures.append(f"{protocol.provider}: {error}")
        else:
            return with_prefixes(candidate, prefixes)
    raise EmbedderError(
        "the server speaks neither Ollama's protocol nor OpenAI's: " + "; ".join(failures)
    )


def _speaks_another_protocol(error: BaseException) -> bool:
    return isinstance(error, EndpointMissingError) or (
        isinstance(error, EmbedderAnswerError) and not isinstance(error, EmbedderDimensionError)
    )


def base_of(url: str, endings: Sequence[str]) -> str:
    """Cut the first of the endings that the address has.

    Examples
    --------
    >>> base_of("http://host:1/api/embed/", ["/api/embed", "/api"])
    'http://host:1'
    """
    base = url.rstrip("/")
    for ending in endings:
        if base.endswith(ending):
            return base.removesuffix(ending)
    return base
