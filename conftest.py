"""What the tests of cvx and of its experiments share: data, and the record of what they prove."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent
# The same examples in every run, and no clock: the machine is shared.
settings.register_profile("cvx", deadline=None, derandomize=True)
settings.load_profile("cvx")

# Tests, and what they start, keep their key here and not with the user's.
os.environ["XDG_STATE_HOME"] = str(ROOT / "runs" / "state")

PROOFS = ROOT / "runs" / "pytest-proofs.json"


_seen: dict[str, dict[str, object]] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    ids = [str(i) for mark in item.iter_markers("requirement") for i in mark.args]
    report.user_properties.append(("requirement", ids))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    # Under xdist the worker's reports arrive at the controller too: only there are they kept.
    if os.environ.get("PYTEST_XDIST_WORKER"):
        return
    ids = dict(report.user_properties).get("requirement", [])
    decisive = report.when == "call" or report.outcome != "passed"
    if ids and decisive:
        _seen[report.nodeid] = {"outcome": report.outcome, "ids": ids}


def pytest_sessionfinish(session: pytest.Session) -> None:
    whole_suite = session.config.args == session.config.getini("testpaths")
    if os.environ.get("PYTEST_XDIST_WORKER") or not whole_suite:
        return
    PROOFS.parent.mkdir(exist_ok=True)
    PROOFS.write_text(json.dumps(_seen, indent=1, sort_keys=True))


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data; tests that need it are left out, by name, where it is absent."""
    folder = Path(os.environ.get("CVX_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}: set CVX_DATA to run this test")
    return folder
