"""An embedder in one line of text, as the command takes it and a store remembers it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cvx.embed.lexical import LexicalEmbedder
from cvx.errors import EmbedderError, InvalidParameterError
from cvx.types import Vector

if TYPE_CHECKING:
    from cvx.embed.http import HttpOptions
    from cvx.embed.protocol import Embedder

FORMS = "lexical[:DIM], local:DIR, ollama:MODEL[@URL] or openai:MODEL[@URL]"
KEY = "CVX_EMBEDDER_KEY"
"""The environment variable with the key of a server; a store never remembers a key."""

_OPENAI = "https://api.openai.com/v1"
_LEXICAL_ID = re.compile(r"cvx-lexical-1/(\d+)/(\d+)-(\d+)/([0-9.e+-]+)")


def embedder_from(spec: str, *, dim: int | None = None) -> Embedder:
    """Make the embedder that a line of text names.

    Parameters
    ----------
    spec : str
        ``lexical`` or ``lexical:256`` (spelling only, needs nothing), ``local:DIR`` (a model
        folder), ``ollama:MODEL``, ``openai:MODEL``; the last two with ``@URL`` where the server is
        not at its usual address. Models that are known by name get their prefixes.
    dim : int, optional
        What the dimension is, where it is known: a server is then not asked for it.

    Raises
    ------
    InvalidParameterError
        The line has another form.
    EmbedderError
        The embedder cannot be made: a package is missing, or the folder holds no model.

    Examples
    --------
    >>> embedder_from("lexical:64").info()["dim"]
    64
    """
    kind, _, rest = spec.partition(":")
    if kind == "lexical" and (not rest or rest.isdecimal()):
        return LexicalEmbedder(int(rest)) if rest else LexicalEmbedder()
    if kind == "local" and rest:
        from cvx.embed.local import LocalEmbedder

        return LocalEmbedder(rest)
    model, at, url = rest.partition("@")
    if kind not in ("ollama", "openai") or not model or bool(at) != bool(url):
        raise InvalidParameterError(f"embedder {spec!r}: give {FORMS}")
    return _served(kind, model, url, dim)


def _served(kind: str, model: str, url: str, dim: int | None) -> Embedder:
    from cvx.embed.ollama import DEFAULT_URL, OllamaEmbedder
    from cvx.embed.openai import OpenAIEmbedder
    from cvx.embed.presets import preset_for
    from cvx.embed.wrap import with_prefixes

    preset = preset_for(model)
    dim = preset.dim if dim is None and preset is not None else dim
    tokens = None if preset is None else preset.max_tokens
    made: OllamaEmbedder | OpenAIEmbedder
    if kind == "ollama":
        made = OllamaEmbedder(model, url or DEFAULT_URL, dim=dim, max_tokens=tokens, http=_http())
    else:
        made = OpenAIEmbedder(model, url or _OPENAI, dim=dim, max_tokens=tokens, http=_http())
    return with_prefixes(made, None if preset is None else preset.prefixes)


def _http() -> HttpOptions:
    from cvx.embed.http import HttpOptions

    return HttpOptions(api_key=os.environ.get(KEY) or None)


def embedder_of(identity: str) -> LexicalEmbedder | None:
    """Return the embedder behind an ``info()["id"]``, where the id alone says how to make it.

    Examples
    --------
    >>> embedder_of(LexicalEmbedder(64).info()["id"]).dim, embedder_of("served/nomic/768")
    (64, None)
    """
    found = _LEXICAL_ID.fullmatch(identity)
    if found is None:
        return None
    dim, low, high = map(int, found.groups()[:3])
    return LexicalEmbedder(dim, ngrams=(low, high), ngram_weight=float(found[4]))


class Absent:
    """Stands for a store's embedder where nothing is to be embedded.

    Parameters
    ----------
    identity : str
        The ``id`` of the embedder that it stands for.
    dim : int
        Dimension of its vectors.
    """

    def __init__(self, identity: str, dim: int) -> None:
        self._identity = identity
        self._dim = dim

    def info(self) -> dict[str, object]:
        """Say what the vectors of the store are."""
        return {"id": self._identity, "dim": self._dim, "semantic": False}

    def embed(self, texts: Sequence[str]) -> Vector:
        """Refuse.

        Raises
        ------
        EmbedderError
            Always: there is no embedder here.
        """
        raise EmbedderError(
            f"{len(texts)} texts are to be embedded with {self._identity}, which was not given: "
            "name the embedder"
        )
