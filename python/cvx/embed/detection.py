"""Finding out which protocol a server speaks."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from cvx.embed.http import HttpOptions
from cvx.embed.ollama import OllamaEmbedder
from cvx.embed.openai import OpenAIEmbedder
from cvx.embed.presets import preset_for
from cvx.embed.wrap import Prefixed, with_prefixes
from cvx.errors import (
    EmbedderAnswerError,
    EmbedderDimensionError,
    EmbedderError,
    EndpointMissingError,
)

_PROTOCOLS: tuple[type[OllamaEmbedder] | type[OpenAIEmbedder], ...] = (
    OllamaEmbedder,
    OpenAIEmbedder,
)


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
    for protocol in _in_order(url):
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


def _in_order(url: str) -> tuple[type[OllamaEmbedder] | type[OpenAIEmbedder], ...]:
    path = urlsplit(url).path.rstrip("/")
    openai_first = "/v1" in path or path.endswith("/openai")
    return _PROTOCOLS[::-1] if openai_first else _PROTOCOLS


def _speaks_another_protocol(error: BaseException) -> bool:
    return isinstance(error, EndpointMissingError) or (
        isinstance(error, EmbedderAnswerError) and not isinstance(error, EmbedderDimensionError)
    )
