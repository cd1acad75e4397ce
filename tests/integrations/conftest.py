"""Runs the coroutine tests of LangChain's own suite, each in a loop of its own."""

import asyncio
import inspect
from pathlib import Path

import pytest

from tests.cli.command import Cvx


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Await a test that is a coroutine; leave the others to pytest."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def cvx(tmp_path: Path) -> Cvx:
    """The command on a store that is not made yet."""
    return Cvx(tmp_path / "store")
