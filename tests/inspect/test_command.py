"""`cvx inspect` and `cvx report`, as a person starts them."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from cvx.store.schema import SCHEMA_VERSION
from tests.cli.command import Cvx, environment


@pytest.fixture
def cvx(tmp_path: Path) -> Cvx:
    """The command on a store that is not made yet."""
    return Cvx(tmp_path / "store")


@pytest.mark.requirement("B21")
def test_inspect_serves_the_address_that_it_prints_and_ends_when_interrupted(store: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "cvx", "inspect", "--no-browser", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(store),
    )
    try:
        assert running.stdout is not None
        url, _, token = json.loads(running.stdout.readline())["url"].partition("#token=")
        asked = urllib.request.Request(url + "api/overview", headers={"X-Cvx-Token": token})
        with urllib.request.urlopen(asked, timeout=60) as got:
            told = json.loads(got.read())
        assert (told["active"], told["can_edit"]) == (16, False)
    finally:
        running.terminate()
        running.communicate()


def test_a_store_that_cannot_be_opened_says_why(tmp_path: Path, cvx: Cvx) -> None:
    done = cvx("inspect", "--no-browser")
    assert (done.code, "no store" in done.err or "there is no" in done.err) == (3, True)
    assert not cvx.store.exists()
    assert cvx("report", "--out", tmp_path / "x.html").code == 3


def test_a_store_of_another_version_says_so(tmp_path: Path, cvx: Cvx) -> None:
    cvx("add", "rain")
    later = SCHEMA_VERSION + 7
    with sqlite3.connect(cvx.store / "memory.db") as base:
        base.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (str(later),))
    base.close()
    for words in (("inspect", "--no-browser"), ("report", "--out", tmp_path / "x.html")):
        done = cvx(*words)
        assert (done.code, f"version {later}" in done.err) == (3, True)


def test_report_writes_one_file_or_says_why_not(cvx: Cvx, tmp_path: Path) -> None:
    cvx("add", "it rained all night")
    done = cvx("report", "--out", tmp_path / "memory.html", "--json").json
    text = (tmp_path / "memory.html").read_text()
    assert done == {"path": str(tmp_path / "memory.html"), "bytes": len(text.encode())}
    assert "it rained all night" in text
    assert cvx("report", "--out", tmp_path / "nowhere" / "x.html").code == 4


def test_report_overwrites_only_where_told_to(cvx: Cvx, tmp_path: Path) -> None:
    cvx("add", "it rained all night")
    path = tmp_path / "memory.html"
    path.write_text("mine")
    done = cvx("report", "--out", path)
    assert (done.code, "--force" in done.err, path.read_text()) == (4, True, "mine")
    assert cvx("report", "--out", path, "--force").code == 0
    assert "it rained all night" in path.read_text()
