"""An embedder in one line of text, as the command takes it and a store remembers it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cvx.embed.configuration import configuration, place
from cvx.embed.lexical import LexicalEmbedder
from cvx.errors import EmbedderError, EmbedderNotApprovedError, InvalidInputError
from cvx.types import Vector

if TYPE_CHECKING:
    from cvx.embed.protocol import Embedder

FORMS = "lexical[:DIM], local:DIR, ollama:MODEL[@URL] or openai:MODEL[@URL]"
KEY = "CVX_EMBEDDER_KEY"
"""The environment variable with the key of the server that the user names; a store has no key."""

_OPENAI = "https://api.openai.com/v1"
_LEXICAL = re.compile(r"lexical(?::([0-9]{1,9}))?")
_LEXICAL_ID = re.compile(
    r"cvx-lexical-1/([0-9]{1,9})/([0-9]{1,9})-([0-9]{1,9})/([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)"
)


def embedder_from(spec: str, *, dim: int | None = None) -> Embedder:
    """Make the embedder that the user names in a line of text.

    The key of a server is the one that the user's configuration binds to its origin (see
    ``cvx.embed.configuration``), or else that in ``CVX_EMBEDDER_KEY``, unless the configuration
    binds that one to others.

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
    InvalidInputError
        The line has another form.
    EmbedderError
        The embedder cannot be made: a package is missing, or the folder holds no model.

    Examples
    --------
    >>> embedder_from("lexical:64").info()["dim"]
    64
    """
    return _made(spec, dim, named_by_user=True)


def remembered_embedder(spec: str, *, dim: int | None = None) -> Embedder:
    """Make the embedder that a store names, as far as the user allows that.

    One that uses the network is made only if the user's configuration lists the line; it gets no
    key but the one that is bound there to its origin.

    Parameters
    ----------
    spec, dim
        As for ``embedder_from``.

    Raises
    ------
    EmbedderNotApprovedError
        It uses the network, and the user has not approved it.
    InvalidInputError, EmbedderError
        As for ``embedder_from``.
    """
    if _uses_network(spec) and spec not in configuration().embedders:
        from cvx.embed.http import without_secrets

        line = without_secrets(spec)
        raise EmbedderNotApprovedError(
            f"the store names the embedder {line!r}, which is asked over the network: pass it "
            f"yourself (--embedder {line}, or embedder= of open), or approve it with "
            f"embedders = [{json.dumps(line)}] in {place()}"
        )
    return _made(spec, dim, named_by_user=False)


def _uses_network(spec: str) -> bool:
    return spec.partition(":")[0] not in ("lexical", "local")


def _made(spec: str, dim: int | None, *, named_by_user: bool) -> Embedder:
    kind, _, rest = spec.partition(":")
    if found := _LEXICAL.fullmatch(spec):
        return LexicalEmbedder(int(found[1])) if found[1] else LexicalEmbedder()
    if kind == "local" and rest:
        from cvx.embed.local import LocalEmbedder

        return LocalEmbedder(rest)
    model, at, url = rest.partition("@")
    if kind not in ("ollama", "openai") or not model or bool(at) != bool(url):
        from cvx.embed.http import without_secrets

        raise InvalidInputError(f"embedder {without_secrets(spec)!r}: give {FORMS}")
    return _served(kind, model, url, dim, named_by_user=named_by_user)


def _served(kind: str, model: str, url: str, dim: int | None, *, named_by_user: bool) -> Embedder:
    from cvx.embed.http import HttpOptions, origin_of
    from cvx.embed.ollama import DEFAULT_URL, OllamaEmbedder
    from cvx.embed.openai import OpenAIEmbedder
    from cvx.embed.presets import preset_for
    from cvx.embed.wrap import with_prefixes

    preset = preset_for(model)
    dim = preset.dim if dim is None and preset is not None else dim
    tokens = None if preset is None else preset.max_tokens
    address = url or (DEFAULT_URL if kind == "ollama" else _OPENAI)
    http = HttpOptions(api_key=_key(origin_of(address), named_by_user=named_by_user))
    make = OllamaEmbedder if kind == "ollama" else OpenAIEmbedder
    made = make(model, address, dim=dim, max_tokens=tokens, http=http)
    return with_prefixes(made, None if preset is None else preset.prefixes)


def _key(origin: str, *, named_by_user: bool) -> str | None:
    bound = configuration().keys
    variable = bound.get(origin)
    if variable is None and named_by_user and KEY not in bound.values():
        variable = KEY
    return None if variable is None else os.environ.get(variable) or None


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
