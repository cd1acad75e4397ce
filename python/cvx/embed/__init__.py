"""Embedders turn text into vectors: the protocol, the offline default, local and served ones.

| embedder | needs |
|---|---|
| `LexicalEmbedder` | nothing; knows spelling, not meaning |
| `LocalEmbedder` | a model folder, and ``pip install safetensors scipy tokenizers`` |
| `OllamaEmbedder`, `OpenAIEmbedder`, `detect` | a server, and ``pip install httpcore stamina`` |
| `EncoderEmbedder`, `as_embedder` | an object with ``encode``, as sentence-transformers has |

`CachedEmbedder` remembers the vectors of any of them on disk, `Prefixed` puts prefixes before
queries and documents, and `cvx.embed.check.check` says whether one works and how to mend it.
Names are loaded when they are first used, and the packages behind them when an embedder is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cvx.embed.lexical import LexicalEmbedder
from cvx.embed.protocol import (
    Embedder,
    EncoderEmbedder,
    Prefixed,
    aembed,
    as_embedder,
    embed_query,
)
from cvx.lazy import names_of

if TYPE_CHECKING:
    from cvx.embed.cache import CachedEmbedder as CachedEmbedder
    from cvx.embed.http import Http as Http
    from cvx.embed.http import HttpOptions as HttpOptions
    from cvx.embed.http import Reply as Reply
    from cvx.embed.local import LocalEmbedder as LocalEmbedder
    from cvx.embed.models import PRESETS as PRESETS
    from cvx.embed.models import Preset as Preset
    from cvx.embed.models import preset_for as preset_for
    from cvx.embed.servers import OllamaEmbedder as OllamaEmbedder
    from cvx.embed.servers import OpenAIEmbedder as OpenAIEmbedder
    from cvx.embed.servers import detect as detect

_HOME = {
    "CachedEmbedder": "cache",
    "Http": "http",
    "HttpOptions": "http",
    "LocalEmbedder": "local",
    "OllamaEmbedder": "servers",
    "OpenAIEmbedder": "servers",
    "PRESETS": "models",
    "Preset": "models",
    "Reply": "http",
    "detect": "servers",
    "preset_for": "models",
}

__all__ = [
    *_HOME,
    "Embedder",
    "EncoderEmbedder",
    "LexicalEmbedder",
    "Prefixed",
    "aembed",
    "as_embedder",
    "embed_query",
]
__getattr__, __dir__ = names_of(__name__, _HOME)
