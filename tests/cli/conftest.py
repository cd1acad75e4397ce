from pathlib import Path

import pytest

from tests.cli.command import Cvx


@pytest.fixture
def cvx(tmp_path: Path) -> Cvx:
    """The command on a store that is not made yet."""
    return Cvx(tmp_path / "store")
