"""A newcomer's incident log: entities by name, causes stated, proposed and asked for."""

import json
import os
import pickle
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import cvx


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cvx", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CVX_STORE": str(folder)},
    )


def test_a_log_is_asked_why_from_python_and_from_a_shell(tmp_path: Path) -> None:
    began = datetime(2026, 3, 2, 8, tzinfo=UTC)
    log = cvx.Memory.open(tmp_path / "log", embedder="lexical")
    with pytest.raises(cvx.errors.UnknownError, match="no event fits"):
        log.why("the login gateway")

    def note(minutes: int, who: str, text: str) -> cvx.Event:
        return log.add(text, entity=who, timestamp=began + timedelta(minutes=minutes))

    expired = note(0, "gateway", "The certificate of the login gateway expired.")
    note(3, "canteen", "The canteen served soup.")
    failed = note(5, "gateway", "Logins failed because the certificate of the gateway had expired.")
    queue = note(30, "support", "The support queue grew to 400 tickets.")
    assert [event.id for event in log.events({"entities": ["gateway"]})] == [expired.id, failed.id]
    assert [event.id for event in log.events({"since": began + timedelta(minutes=5)})] == [
        failed.id,
        queue.id,
    ]

    for _ in range(2):
        log.link(failed, queue, why="users cannot get in")
    (guess,) = (one for one in log.causes.propose(failed) if one.cause == expired.id)
    assert "probably" in str(log.why("the support queue")).lower()
    assert guess.state == "judged"
    assert log.causes.confirm(guess).state == "confirmed"
    story = log.why("the support queue")
    assert [step.id for step in story] == [failed.id, expired.id]
    assert "probably" not in str(story).lower()
    assert str(pickle.loads(pickle.dumps(story))) == str(story)
    assert [step.id for step in log.consequences(expired)] == [failed.id, queue.id]

    told = command(tmp_path / "log", "why", "the support queue")
    assert told.returncode == 0, told.stderr
    assert "users cannot get in" in told.stdout
    told = command(tmp_path / "log", "why", "the support queue", "--json")
    assert json.loads(told.stdout)["narrative"] == str(story)
    assert (
        command(tmp_path / "log", "add", "All is well again.", "--entity", "support").returncode
        == 0
    )
    assert log.recall("is all well?", k=1)[0].text == "All is well again."
    with cvx.Memory.open(tmp_path / "log", read_only=True) as reader:
        assert str(reader.why("the support queue")) == str(story)
        with pytest.raises(cvx.errors.ReadOnlyError):
            reader.link(expired, queue)

    assert log.causes.reject(guess).state == "rejected"
    assert [step.id for step in log.why(queue)] == [failed.id]
    assert all(one.cause != expired.id for one in log.causes.propose(failed))
    with pytest.raises(
        cvx.errors.InvalidInputError, match="give an int or a datetime with a time zone"
    ):
        log.add("at noon", timestamp="2026-03-02T12:00")  # type: ignore[arg-type]
    log.close()
