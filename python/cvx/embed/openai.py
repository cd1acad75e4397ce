"""Servers that speak OpenAI's ``/v1/embeddings``: OpenAI, LM Studio, vLLM, llama.cpp and others."""

from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import urlsplit

from cvx.embed.http import HttpOptions
from cvx.embed.served import ServedEmbedder, base_of
from cvx.errors import EmbedderAnswerError, EndpointMissingError

_ENDINGS = ("/embeddings", "/api")


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
        base = base_of(url, _ENDINGS)
        self._base = base if urlsplit(base).path else f"{base}/v1"
        self._extra = {"dimensions": dim} if shorten and dim is not None else {}

    def models(self) -> list[str] | None:
        """List the models that the server names, or return None if it names none."""
        try:
            entries = self._field(self._http.get(f"{self._base}/models"), "data")
            return [str(entry["id"]) for entry in entries]
        except (EmbedderAnswerError, EndpointMissingError, TypeError, LookupError):
            return None

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
