"""Models of embeddings that are known by name: dimension, limit and prefixes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

OLLAMA_URL = "http://localhost:11434"


@dataclass(frozen=True, slots=True)
class Preset:
    """One model.

    Attributes
    ----------
    model : str
        The name at its publisher.
    ollama : str or None
        What ``ollama pull`` calls it.
    names : tuple of str
        Other names that servers give it, in lower case.
    dim : int
        Dimension of its vectors.
    max_tokens : int
        How many tokens it reads.
    query, document : str
        The prefixes it was trained with.
    note : str
        When to take it.
    """

    model: str
    ollama: str | None
    names: tuple[str, ...]
    dim: int
    max_tokens: int
    query: str = ""
    document: str = ""
    note: str = ""

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes as `with_prefixes` takes them."""
        return {"query": self.query, "document": self.document}


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "nomic-embed-text-v1.5": Preset(
            model="nomic-ai/nomic-embed-text-v1.5",
            ollama="nomic-embed-text",
            names=("nomic-embed-text-v1.5", "nomic-embed-text:v1.5", "nomic-embed-text"),
            dim=768,
            max_tokens=8192,
            query="search_query: ",
            document="search_document: ",
            note="long texts; the default of the Wonda blueprint",
        ),
        "all-minilm": Preset(
            model="sentence-transformers/all-MiniLM-L6-v2",
            ollama="all-minilm",
            names=("all-minilm-l6-v2", "all-minilm:l6-v2", "all-minilm:22m", "all-minilm"),
            dim=384,
            max_tokens=256,
            note="small and fast, short texts; 384 dimensions, not 768",
        ),
        "gtr-t5-base": Preset(
            model="sentence-transformers/gtr-t5-base",
            ollama=None,
            names=("gtr-t5-base",),
            dim=768,
            max_tokens=512,
            note="for vec2text, whose published inverters read the vectors of this model",
        ),
    }
)


def preset_for(model: str) -> Preset | None:
    """Find the preset of a model by any of its names.

    Examples
    --------
    >>> preset_for("nomic-embed-text:latest").dim, preset_for("all-MiniLM-L6-v2").dim
    (768, 384)
    >>> preset_for("something-else") is None
    True
    """
    # Servers put a publisher before the name ("nomic-ai/...") or a purpose ("text-embedding-...").
    name = model.lower().rpartition("/")[2].removesuffix(":latest")
    name = name.removeprefix("text-embedding-")
    return next((preset for preset in PRESETS.values() if name in preset.names), None)
