"""Histories of threads in processes that are killed, paused and given wrong clocks: what each read
saw is one state of the store, never older than what its reader had seen or written before."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import threading
import time
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import pytest

from cvx.memory import Memory
from tests.counting import NIGHTLY, ROUND, size, tried
from tests.store.processes import CONTEXT, embedder

KEYS = [f"k{number}" for number in range(6)]
PROCESSES, THREADS = 4, 4
OPERATIONS = size("CVX_OPERATIONS", 1_000_000, 1_500)
PART = 20_000
"""So many in a store: what a process costs to start, and a log to count, grows with them."""


def clock_of(seed: int) -> int:
    """Return the time, now and then of a clock that jumps by days."""
    now = time.time_ns() // 1000
    rng = random.Random(seed ^ now)
    return now + (rng.randrange(-3, 4) * 86_400_000_000 if rng.random() < 0.02 else 0)


def work(folder: str, name: str, seed: int, log: str) -> None:
    """Read and write in threads until killed; note each operation once it has returned."""
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    memory = Memory._opened(folder, embedder(), now=lambda: clock_of(seed))

    def thread(number: int) -> None:
        rng, made = random.Random(seed * 100 + number), 0
        who = f"{name}.{number}"
        while True:
            begun, kind = time.monotonic_ns(), rng.random()
            saw: dict[str, str] = {}
            wrote = None
            if kind < 0.35:
                made += 1
                wrote = rng.choice(KEYS), f"{who}.{made}"
                memory.add(wrote[1], key=wrote[0])
            elif kind < 0.7:
                saw = {str(event.key): event.text for event in memory.events()}
            elif kind < 0.9:
                key = rng.choice(KEYS)
                try:
                    saw = {key: memory.get(key=key).text}
                except KeyError:
                    saw = {}
            else:
                hits = memory.recall(f"{who}.{made}", k=4)
                saw = {str(hit["key"]): hit.text for hit in hits}
            line = {"who": who, "begun": begun, "ended": time.monotonic_ns()}
            line |= {"saw": saw} if wrote is None else {"wrote": wrote}
            os.write(out, (json.dumps(line) + "\n").encode())

    threads = [threading.Thread(target=thread, args=(n,), daemon=True) for n in range(THREADS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


@dataclass(frozen=True)
class Operation:
    """One read or write of one thread, with the system's monotonic time before and after."""

    who: str
    begun: int
    ended: int
    saw: dict[str, str] | None = None
    wrote: tuple[str, str] | None = None


def recorded(
    folder: Path, logs: Path, rng: random.Random, generation: int, wanted: int
) -> list[Operation]:
    """Let processes work, kill, pause and replace them, and return what they noted."""
    running = {}
    done = 0
    while done < wanted:
        for place in range(PROCESSES):
            if place not in running:
                generation += 1
                log = str(logs / f"{generation}.jsonl")
                told = (str(folder), f"p{generation}", generation, log)
                running[place] = CONTEXT.Process(target=work, args=told, daemon=True)
                running[place].start()
        # However slow the machine is, something is done between two disturbances.
        before = done
        while done < min(before + 50, wanted):
            time.sleep(0.5 if NIGHTLY else 0.2)
            done = sum(log.read_bytes().count(b"\n") for log in logs.iterdir())
            assert all(one.exitcode in (None, -signal.SIGKILL) for one in running.values())
        chosen = running[rng.randrange(PROCESSES)]
        if rng.random() < 0.5:
            os.kill(chosen.pid or 0, signal.SIGSTOP)
            time.sleep(0.05)
            os.kill(chosen.pid or 0, signal.SIGCONT)
        elif rng.random() < 0.3:
            chosen.kill()
            chosen.join()
            running = {place: one for place, one in running.items() if one is not chosen}
    for one in running.values():
        one.kill()
        one.join()
    found: list[Operation] = []
    for file in logs.iterdir():
        for line in file.read_text().splitlines():
            row = json.loads(line)
            found.append(Operation(row["who"], row["begun"], row["ended"], row.get("saw"),
                                   tuple(row["wrote"]) if "wrote" in row else None))  # fmt: skip
    return sorted(found, key=lambda one: one.begun)


def violations(operations: list[Operation], order: dict[tuple[str, str], int]) -> list[str]:
    """Return what no order of the commits explains.

    Parameters
    ----------
    operations : list of Operation
        By their beginning.
    order : dict
        The place of each committed value, a pair of key and text, in the order of commits.
    """
    wrong, last = list[str](), dict[str, int]()
    places = {key: sorted(at for (k, _), at in order.items() if k == key) for key in KEYS}
    # What had been acknowledged to anybody when a read began, it has to see.
    acknowledged = sorted((one.ended, order.get(one.wrote, -1)) for one in operations if one.wrote)
    times = [ended for ended, _ in acknowledged]
    floors = list(accumulate((place for _, place in acknowledged), max))
    for one in operations:
        if one.wrote is not None:
            if one.wrote not in order:
                wrong.append(f"lost: {one}")
                continue
            if order[one.wrote] < last.get(one.who, -1):
                wrong.append(f"a write went back: {one}")
            last[one.who] = order[one.wrote]
            continue
        before = bisect_right(times, one.begun)
        low = max(last.get(one.who, -1), floors[before - 1] if before else -1)
        high = len(order)
        for key, text in (one.saw or {}).items():
            if (key, text) not in order:
                wrong.append(f"never committed: {one}")
                continue
            at = order[key, text]
            after = bisect_right(places[key], at)
            low = max(low, at)
            if after < len(places[key]):
                high = min(high, places[key][after] - 1)
        if low > high:
            wrong.append(f"no one state: {one}, between {low} and {high}")
        else:
            last[one.who] = low
    return wrong


@pytest.mark.requirement("B17")
@pytest.mark.slow
def test_reads_are_snapshots_that_never_go_back(tmp_path: Path) -> None:
    rng, done, reads, wrong = random.Random(ROUND), 0, 0, list[str]()
    while done < OPERATIONS:
        part = tmp_path / str(done)
        operations = one_history(part, rng, 100_000 * ROUND + done, min(PART, OPERATIONS - done))
        done, reads = done + len(operations), reads + sum(o.wrote is None for o in operations)
        wrong += violations(operations, order_of(part / "store"))
        tried(f"histories ({len(wrong)} violations), operations", done, 1)
        shutil.rmtree(part)
    print(f"\n{done:,} operations, {reads:,} reads: {len(wrong)} violations")
    assert wrong == []


def one_history(part: Path, rng: random.Random, generation: int, wanted: int) -> list[Operation]:
    """Make a store, and record what so many operations on it saw."""
    (part / "logs").mkdir(parents=True)
    Memory.open(part / "store", embedder=embedder()).close()
    return recorded(part / "store", part / "logs", rng, generation, wanted)


def order_of(folder: Path) -> dict[tuple[str, str], int]:
    """Return the place of each committed value in the order of commits, of a sound store."""
    with Memory.open(folder, embedder=embedder()) as memory:
        assert memory.admin.check() == []
        versions = [
            (version.recorded, str(version.key), version.text)
            for event in memory.events()
            for version in (*memory.get(event).history, event)
        ]
    return {(key, text): at for at, (_, key, text) in enumerate(sorted(versions))}


def test_the_checker_sees_each_kind_of_violation() -> None:
    order = {("k0", "a"): 0, ("k1", "b"): 1, ("k0", "c"): 2}

    def told(*operations: Operation) -> list[str]:
        return violations(list(operations), order)

    write = Operation("x", 0, 1, wrote=("k0", "c"))
    assert told(write, Operation("x", 2, 3, saw={"k0": "c", "k1": "b"})) == []
    assert told(Operation("x", 2, 3, saw={"k0": "a", "k1": "b"})) == []
    assert told(Operation("x", 0, 1, wrote=("k0", "z"))) != []
    assert told(write, Operation("x", 2, 3, saw={"k0": "a"})) != []
    assert told(write, Operation("y", 2, 3, saw={"k0": "a"})) != []
    assert told(Operation("y", 0, 1, saw={"k0": "c"}), Operation("y", 2, 3, saw={"k0": "a"})) != []
    assert told(Operation("y", 0, 1, saw={"k0": "c", "k1": "never"})) != []
