"""Makes embedders from a line of text, and keeps which servers the user approved.

A store, or an export, may come from somebody else, and what it says decides nothing about the
network. The user's own configuration does: ``cvx/config.toml`` below ``$XDG_CONFIG_HOME`` (or
``~/.config``), or the file that the environment variable ``CVX_CONFIG`` names::

    embedders = ["ollama:nomic-embed-text", "openai:bge-m3@https://models.example/v1"]

    [keys]
    "https://models.example" = "MODELS_KEY"    # the environment variable that holds its key
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cvx.embed.lexical import LexicalEmbedder
from cvx.embed.models import OLLAMA_URL, preset_for
from cvx.embed.protocol import Embedder, with_prefixes
from cvx.errors import EmbedderError, EmbedderNotApprovedError, InvalidInputError
from cvx.types import Vector

FORMS = "lexical[:DIM], local:DIR, ollama:MODEL[@URL] or openai:MODEL[@URL]"
KEY = "CVX_EMBEDDER_KEY"
"""The environment variable with the key of the server that the user names; a store has no key."""

_OPENAI = "https://api.openai.com/v1"
_LEXICAL = re.compile(r"lexical(?::([0-9]{1,9}))?")
_LEXICAL_ID = re.compile(
    r"cvx-lexical-1/([0-9]{1,9})/([0-9]{1,9})-([0-9]{1,9})/([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)"
)
PLACE = "CVX_CONFIG"
"""The environment variable that names the file."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The user's configuration: approved embedders and keys of servers.

    Parameters
    ----------
    embedders : frozenset of str
        Lines, as ``--embedder`` takes them, that a store may name.
    keys : mapping of str to str
        By origin, such as ``https://models.example``, the environment variable with its key.
    """

    embedders: frozenset[str] = frozenset()
    keys: Mapping[str, str] = field(default_factory=dict)


def place() -> Path:
    """Return the path of the user's configuration file."""
    named = os.environ.get(PLACE)
    if named:
        return Path(named).expanduser()
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "cvx" / "config.toml"


def configuration() -> Configuration:
    """Read the user's configuration; an empty one where there is no file.

    Raises
    ------
    InvalidInputError
        The file cannot be read, or says something else than it may.
    """
    import tomllib

    path = place()
    try:
        told: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Configuration()
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{path} cannot be read ({error}): mend or remove it") from error
    embedders, keys = told.pop("embedders", []), told.pop("keys", {})
    lines = isinstance(embedders, list) and all(isinstance(one, str) for one in embedders)
    bound = isinstance(keys, dict) and all(isinstance(one, str) for one in keys.values())
    if told or not lines or not bound:
        raise InvalidInputError(
            f"{path} holds {', '.join(told) or 'a value of another type'}: give embedders, a list "
            "of strings, and [keys], strings by origin, and nothing else"
        )
    return Configuration(frozenset(embedders), keys)


def embedder_from(spec: str, *, dim: int | None = None) -> Embedder:
    """Make the embedder that the user names in a line of text.

    The key of a server is the one that the user's configuration binds to its origin (see
    above), or else that in ``CVX_EMBEDDER_KEY``, unless the configuration
    binds that one to others.

    Parameters
    ----------
    spec : str
        ``lexical`` or ``lexical:256`` (spelling only, needs nothing), ``local:DIR`` or the path of
        a model's folder, ``ollama:MODEL``, ``openai:MODEL``; the last two with ``@URL`` where the
        server is not at its usual address. Models that are known by name get their prefixes.
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
    return _made(spec_of(spec), dim, named_by_user=True)


def spec_of(said: str) -> str:
    """Return the line that a store remembers, which is used from other folders too.

    The path of a model's folder, with or without ``local:``, becomes absolute.
    """
    # Path.is_dir() raises where the name is longer than any file may have.
    given = os.path.isdir(said) and not _LEXICAL.fullmatch(said)  # noqa: PTH112
    if not given and not said.startswith("local:"):
        return said
    return f"local:{Path(said.removeprefix('local:')).absolute()}"


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
    local = spec.partition(":")[0] in ("lexical", "local")
    if not local and spec not in configuration().embedders:
        from cvx.embed.http import without_secrets

        line = without_secrets(spec)
        raise EmbedderNotApprovedError(
            f"the store names the embedder {line!r}, which is asked over the network: pass it "
            f"yourself (--embedder {line}, or embedder= of open), or approve it with "
            f"embedders = [{json.dumps(line)}] in {place()}"
        )
    return _made(spec, dim, named_by_user=False)


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

        shown = repr(without_secrets(spec))
        if "/" in kind or os.sep in kind:
            raise InvalidInputError(
                f"embedder is {shown}, and there is no such folder: give that of a model, with "
                f"config.json, model.safetensors and tokenizer.json in it, or {FORMS}"
            )
        raise InvalidInputError(f"embedder {shown}: give {FORMS}, or the path of a model's folder")
    return _served(kind, model, url, dim, named_by_user=named_by_user)


def _served(kind: str, model: str, url: str, dim: int | None, *, named_by_user: bool) -> Embedder:
    from cvx.embed.http import HttpOptions, origin_of
    from cvx.embed.servers import OllamaEmbedder, OpenAIEmbedder

    preset = preset_for(model)
    dim = preset.dim if dim is None and preset is not None else dim
    tokens = None if preset is None else preset.max_tokens
    address = url or (OLLAMA_URL if kind == "ollama" else _OPENAI)
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
    """Stands for an embedder that is not available: describes its vectors, refuses to embed.

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
