"""Sentence vectors for the benches, cached between runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from benches.causal.scenarios import Rows
from benches.recalling import minilm as installed
from cvx.embed import CachedEmbedder

_CACHE = Path(__file__).resolve().parents[2] / ".cache" / "minilm.sqlite"


def minilm() -> Callable[[Sequence[str]], Rows] | None:
    """Return all-MiniLM-L6-v2 with a memory of what it embedded, or None where it is absent."""
    model = installed.minilm()
    if model is None:
        return None
    _CACHE.parent.mkdir(exist_ok=True)
    return CachedEmbedder(model, _CACHE).embed
