"""Ollama: ``/api/embed``, and ``/api/embeddings`` of servers that do not have it yet."""

from __future__ import annotations

import warnings
from typing import ClassVar

from cvx.embed.http import HttpOptions
from cvx.embed.served import ServedEmbedder, base_of
from cvx.errors import (
    EmbedderAnswerError,
    EmbedderRefusedError,
    EmbedderWarning,
    EndpointMissingError,
)

DEFAULT_URL = "http://localhost:11434"
_ENDINGS = ("/api/embeddings", "/api/embed", "/api", "/v1/embeddings", "/v1")


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
        url: str = DEFAULT_URL,
        *,
        dim: int | None = None,
        max_tokens: int | None = None,
        http: HttpOptions | None = None,
    ) -> None:
        super().__init__(url, model, dim=dim, max_tokens=max_tokens, http=http)
        self._root = base_of(url, _ENDINGS)
        self._legacy = False

    def models(self) -> list[str] | None:
        """List the models that were pulled."""
        try:
            entries = self._field(self._http.get(f"{self._root}/api/tags"), "models")
            return [str(entry["name"]) for entry in entries]
        except (EmbedderAnswerError, EndpointMissingError, TypeError, LookupError):
            return None

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
        warnings.warn(
            f"{self._root} has no /api/embed: /api/embeddings takes one text a request and may "
            "cut long ones without a word; upgrade Ollama",
            EmbedderWarning,
            stacklevel=2,
        )
        return rows

    def _ask_legacy(self, texts: list[str]) -> list[object]:
        url = f"{self._root}/api/embeddings"
        return [
            self._field(self._http.post(url, {"model": self.model, "prompt": text}), "embedding")
            for text in texts
        ]
