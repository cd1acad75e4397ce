"""Processes are killed at any moment: what was acknowledged is there, and nothing else is wrong."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cvx.memory import Memory
from cvx.store.failpoints import NAMES
from tests.store.processes import CONTEXT, consistent, embedder, write_until_killed

GOLDEN = Path(__file__).parent / "golden"
WRITERS = 4


def run_and_kill(folder: Path, cycles: int, seed: int) -> tuple[int, int]:
    rng = random.Random(seed)
    added: dict[int, str] = {}
    rewards: dict[int, float | None] = {}
    forgotten: set[int] = set()
    links: set[tuple[int, int]] = set()
    unacknowledged = 0
    for cycle in range(cycles):
        writers, acks = [], []
        for name in range(WRITERS):
            receive, send = CONTEXT.Pipe(duplex=False)
            writer = CONTEXT.Process(
                target=write_until_killed,
                args=(str(folder), f"w{name} c{cycle}", seed * 1000 + cycle * 10 + name, send),
                daemon=True,
            )
            writer.start()
            send.close()
            writers.append(writer)
            acks.append(receive)
        heard = []
        # Each writer is killed right after an acknowledgement: in the middle of its next write.
        for writer, receive in zip(writers, acks, strict=True):
            heard += [receive.recv() for _ in range(rng.randrange(1, 6))]
            writer.kill()
        for writer, receive in zip(writers, acks, strict=True):
            writer.join()
            try:
                while True:
                    heard.append(receive.recv())
            except EOFError:
                pass
        for kind, a, b in heard:
            if kind == "add":
                added[a] = b
            elif kind == "reward":
                rewards[a] = b
            elif kind == "forget":
                forgotten.add(a)
            elif kind == "link":
                links.add((a, b))
        with Memory.open(folder, embedder=embedder()) as memory:
            assert memory.admin.check() == []
            there = {int(e.event_id or 0): e for e in memory.record.events()}
            for event, text in added.items():
                assert there[event].text == text
            extra = set(there) - set(added)
            assert len(extra) <= WRITERS
            unacknowledged += len(extra)
            added.update({event: there[event].text for event in extra})
            # The last, unacknowledged write of a writer may have changed one of its rewards.
            wrong = [e for e, reward in rewards.items() if there[e].reward != reward]
            assert len(wrong) <= WRITERS
            rewards.update({e: there[e].reward for e in wrong})
            for event in forgotten:
                assert there[event].state == "archived"
            nodes = {event.node: event.event_id for event in there.values()}
            stored = {(nodes[e.from_node], nodes[e.to_node]) for e in memory.record.links()}
            assert links <= stored
        if cycle % 10 == 9:
            consistent(folder)
    return len(added), unacknowledged


@pytest.mark.requirement("X9", "B9", "W26")
def test_no_acknowledged_write_is_lost_when_four_writers_are_killed_fifty_times(
    tmp_path: Path,
) -> None:
    written, extra = run_and_kill(tmp_path / "m", 50, seed=1)
    assert written > 50 * WRITERS
    assert extra <= 50 * WRITERS
    print(f"{written} events written, {extra} of them unacknowledged, none lost")


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.skipif("CVX_NIGHTLY" not in os.environ, reason="nightly: set CVX_NIGHTLY=1")
def test_no_acknowledged_write_is_lost_in_a_thousand_kills(tmp_path: Path) -> None:
    # Twenty stores: what is checked after each death grows with the store.
    runs = [run_and_kill(tmp_path / f"m{seed}", 50, seed) for seed in range(2, 22)]
    written, extra = (sum(counts) for counts in zip(*runs, strict=True))
    assert extra <= 1000 * WRITERS
    print(f"{written} events written, {extra} of them unacknowledged, none lost")


def die_at(folder: Path, failpoint: str) -> tuple[int, list[list[str]]]:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("processes.py")), str(folder)],
        env={**os.environ, "CVX_FAILPOINT": failpoint},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode in (0, -9), done.stderr
    return done.returncode, [line.split(" ", 2) for line in done.stdout.splitlines()]


def everywhere(folder: Path, words: bytes) -> list[str]:
    return [p.name for p in folder.rglob("*") if p.is_file() and words in p.read_bytes()]


@pytest.mark.requirement("X9", "B8")
@pytest.mark.parametrize("turn", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_a_death_at_any_write_sync_or_rename_loses_nothing(
    tmp_path: Path, name: str, turn: int
) -> None:
    folder = tmp_path / "m"
    folder.mkdir()
    if name.startswith("migrate"):
        shutil.copy(GOLDEN / "v1.db", folder / "memory.db")
    code, said = die_at(folder, f"{name}@{turn}")
    if code == 0:
        # Some points are passed once only; the first turn must have been reached.
        assert turn == 2
        assert said[-1] == ["closed"]
    added = {int(line[1]): line[2] for line in said if line[0] == "added"}
    erased = {int(line[1]) for line in said if line[0] == "erased"}
    with Memory.open(folder, embedder=embedder()) as memory:
        assert memory.admin.check() == []
        there = {int(e.event_id or 0): e.text for e in memory.record.events()}
        secret = "the first secret number 0"
        gone = secret not in there.values() and secret in added.values()
        for event, text in added.items():
            if event not in erased and not (gone and text == secret):
                assert there[event] == text
        # Whatever was committed is found again, by words and by nearness.
        for event, text in there.items():
            if text and text in added.values():
                assert event in [hit.event.event_id for hit in memory.recall(text) if hit.event]
        assert memory.add("life goes on").id not in there
    if gone:
        assert everywhere(folder, b"first secret number 0") == []
    consistent(folder)


@pytest.mark.requirement("X9")
@pytest.mark.parametrize("name", ["transaction.begun", "transaction.written"])
def test_an_error_before_the_commit_is_typed_and_leaves_nothing(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cvx.errors import RecordIOError
    from cvx.store import failpoints

    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        first = memory.add("before").id
        monkeypatch.setattr(failpoints, "_wanted", f"{name}:error")
        monkeypatch.setattr(failpoints, "_reached", {})
        with pytest.raises(RecordIOError, match=name):
            memory.add("never")
        assert len(memory) == 1
        assert memory.recall("never", floor=0.99) == []
        second = memory.add("after").id
        assert [hit.event.text for hit in memory.recall("after", k=1) if hit.event] == ["after"]
        assert second > first
    consistent(tmp_path / "m")
