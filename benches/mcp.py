"""Time of an MCP call over stdio, and of the server's start.

A store of 100,000 short events (seeded words, the default embedder) is made once. Then the SDK's
client starts `cvx mcp` as a host does, and calls tools one after the other; the same calls are made
in the same way on a server that does nothing, which is what protocol and pipes cost by themselves.
The bound is held against CPU time, that of client and server together, which other processes do not
stretch. At last it calls `recall` 200 times a second for a while.

    python -m benches.mcp [--events 100000] [--calls 200] [--seconds 60] [--model DIR]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from mcp import Client, StdioServerParameters

from benches.figures import RUNS, Figure, leave
from cvx.memory import Memory

SEED, WARM, MUST_MS, MUST_START_S, RATE = 0, 10, 10.0, 1.0, 200
_PARTS = ("har", "bel", "mor", "tin", "sol", "vek", "pra", "lun", "ost", "dim")
WORDS = [a + b + c for a in _PARTS for b in _PARTS for c in _PARTS]
NOTHING = """
from mcp.server import MCPServer
built = MCPServer("nothing", log_level="WARNING")
@built.tool()
def nothing(cue: str) -> str:
    return cue
built.run("stdio")
"""
SDK = "import mcp, mcp.server, uvicorn"


def filled(folder: Path, events: int, embedder: str) -> None:
    """Make a store of sentences that a generator draws."""
    rng = np.random.default_rng(SEED)
    with Memory.open(folder, embedder=embedder) as memory:
        for start in range(0, events, 10_000):
            count = min(10_000, events - start)
            drawn = words_of(rng, count, 8)
            memory.add_many([f"{one} {start + place}" for place, one in enumerate(drawn)])
            print(f"\r  {start + count:,} of {events:,} events", end="", flush=True)
    print()


def words_of(rng: np.random.Generator, count: int, length: int) -> list[str]:
    """Draw sentences; some words are much more frequent than others."""
    drawn = (len(WORDS) * rng.random((count, length)) ** 3).astype(int)
    return [" ".join(WORDS[one] for one in row) for row in drawn]


def cues(count: int) -> list[str]:
    return words_of(np.random.default_rng(SEED + 1), count, 5)


def cpu_of_servers() -> float:
    """Return milliseconds of CPU that the processes started from here have used so far."""
    spent = 0
    for children in Path("/proc/self/task").glob("*/children"):
        for child in children.read_text().split():
            for thread in Path(f"/proc/{child}/task").glob("*/schedstat"):
                spent += int(thread.read_text().split()[0])
    return spent / 1e6


async def timed(client: Client, name: str, arguments: list[dict[str, Any]]) -> dict[str, float]:
    """Call one after the other; return milliseconds a call, without the first ten."""
    walls = []
    for place, one in enumerate(arguments):
        if place == WARM:
            own, served = time.process_time(), cpu_of_servers()
        begun = time.perf_counter()
        answer = await client.call_tool(name, one)
        walls.append((time.perf_counter() - begun) * 1e3)
        assert not answer.is_error, answer.content
    calls = len(arguments) - WARM
    return {
        "server_cpu_ms": (cpu_of_servers() - served) / calls,
        "client_cpu_ms": (time.process_time() - own) * 1e3 / calls,
        "wall_median_ms": float(np.median(walls[WARM:])),
        "wall_p99_ms": float(np.percentile(walls[WARM:], 99)),
    }


async def at_a_rate(client: Client, seconds: float) -> dict[str, float]:
    """Call `recall` at a rate, and return what became of the calls."""
    asked, times, failed = cues(int(RATE * seconds)), [], 0

    async def call(cue: str, due: float) -> None:
        nonlocal failed
        answer = await client.call_tool("recall", {"cue": cue, "k": 5})
        times.append((time.perf_counter() - due) * 1e3)
        failed += answer.is_error

    begun = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for number, cue in enumerate(asked):
            due = begun + number / RATE
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            tasks.create_task(call(cue, due))
    took = time.perf_counter() - begun
    return {
        "calls": len(asked),
        "failed": failed,
        "per_second": len(asked) / took,
        "median_ms": float(np.median(times)),
        "p99_ms": float(np.percentile(times, 99)),
    }


async def measured(folder: Path, calls: int, seconds: float) -> dict[str, Any]:
    python, here = sys.executable, {**os.environ}
    words = cues(calls + WARM)
    report: dict[str, Any] = {}
    async with Client(
        StdioServerParameters(command=python, args=["-c", NOTHING], env=here)
    ) as nothing:
        report["nothing"] = await timed(nothing, "nothing", [{"cue": one} for one in words])
    serving = StdioServerParameters(
        command=python, args=["-m", "cvx", "mcp", "--store", str(folder)], env=here
    )
    async with Client(serving) as client:
        for name, arguments in (
            ("recall", [{"cue": one} for one in words]),
            ("context", [{"cue": one} for one in words]),
            ("memory_query", [{"query": one} for one in words]),
            ("memory_add_event", [{"effect": f"{one} today"} for one in words]),
            ("update", [{"event": 7, "text": one} for one in words]),
            ("check_similar_situations", [{"context": one} for one in words]),
        ):
            report[name] = await timed(client, name, arguments)
            print(f"  {name}: {report[name]}", flush=True)
        report["rate"] = await at_a_rate(client, seconds)
    return report


def started(folder: Path) -> tuple[float, float]:
    """Return seconds of CPU until the server has answered once, and of the SDK's own import."""
    hello = (
        '{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": '
        '"2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}}\n'
    )
    best = [float("inf"), float("inf")]
    for _ in range(5):
        for place, (command, said) in enumerate(
            (
                ([sys.executable, "-m", "cvx", "mcp", "--store", str(folder)], hello),
                ([sys.executable, "-c", SDK], ""),
            )
        ):
            before = os.times()
            subprocess.run(command, input=said, check=True, capture_output=True, text=True)
            after = os.times()
            spent = after.children_user + after.children_system
            best[place] = min(best[place], spent - before.children_user - before.children_system)
    return best[0], best[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--model", default="lexical", help="an embedder, as --embedder takes it")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "store"
        filled(folder, given.events, given.model)
        up, sdk = started(folder)
        print(f"  up after {up:.2f} s of CPU, of which the SDK's import {sdk:.2f}", flush=True)
        report = asyncio.run(measured(folder, given.calls, given.seconds))
    rate = report.pop("rate")
    figures = [
        Figure("the server is up, beyond the SDK's import", f"{up - sdk:.2f} s of CPU",
               f"{MUST_START_S:g} s", up - sdk < MUST_START_S),
    ]  # fmt: skip
    for name, times in report.items():
        both = times["server_cpu_ms"] + times["client_cpu_ms"]
        bound = "" if name == "nothing" else f"{MUST_MS:g} ms"
        told = (
            f"{both:.2f} ms of CPU (server {times['server_cpu_ms']:.2f}), "
            f"{times['wall_median_ms']:.1f} ms by the clock of a shared machine"
        )
        met = both < MUST_MS if bound else None
        figures.append(Figure(f"{name} over stdio, n={given.events:,}", told, bound, met))
    figures.append(
        Figure(f"{RATE} recalls a second for {given.seconds:g} s",
               f"{rate['per_second']:.0f} a second, {rate['failed']:.0f} failed, "
               f"median {rate['median_ms']:.1f} ms, p99 {rate['p99_ms']:.1f} ms",
               "none failed", not rate["failed"])
    )  # fmt: skip
    for one in figures:
        print(f"{one.what}: {one.value}" + (f" (must: {one.bound})" if one.bound else ""))
    more = {"events": given.events, "embedder": given.model, "seed": SEED, "rate": rate}
    more |= {"start_s": up, "sdk_import_s": sdk, "calls": report}
    leave(RUNS / "mcp.json", "The MCP server", "python -m benches.mcp", figures, **more)
    return int(any(one.met is False for one in figures))


if __name__ == "__main__":
    sys.exit(main())
