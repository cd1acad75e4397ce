"""What all embedding servers have in common: batches, checks, and refusals explained."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from cvx.embed.http import Http, HttpOptions, Reply, says_too_long
from cvx.embed.protocol import Threaded, checked_rows, listed, normalised
from cvx.errors import (
    EmbedderAnswerError,
    EmbedderRefusedError,
    EndpointMissingError,
    InvalidInputError,
    ModelNotFoundError,
    TextTooLongError,
)
from cvx.types import Vector

_NO_MODEL = ("not found", "does not exist", "not_found", "no such", "failed to load")


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
        if dim is not None and dim < 1:
            raise InvalidInputError(f"dim is {dim}: give at least 1, or leave it out")
        self.url = url
        self.model = model
        self.dim = dim
        self.max_tokens = max_tokens
        self._http = Http(url, http or HttpOptions())
        self._source = f"{self.provider} model {model!r}"

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

    @abstractmethod
    def models(self) -> list[str] | None:
        """List the models of the server, or return None if it does not say."""

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
