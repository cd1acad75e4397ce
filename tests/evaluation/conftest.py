from __future__ import annotations

from collections.abc import Iterator

import pytest

from cvx.embed import LexicalEmbedder
from cvx.memory import Memory


@pytest.fixture
def memory() -> Iterator[Memory]:
    """An empty memory in RAM."""
    with Memory(embedder=LexicalEmbedder()) as made:
        yield made
