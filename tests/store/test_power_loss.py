"""The power fails at any moment: what was acknowledged is there, and the store opens."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

from cvx.causal import CausalMemoryCore, RuleJudge
from cvx.errors import DamagedStoreError, LexicalOnlyWarning, StoreError
from cvx.memory import Memory
from cvx.store.files import HALF_IMPORT
from tests.counting import NIGHTLY, ROUND, size, tried
from tests.power_loss.replay import Change, Disk, Shape, changes, lay_out
from tests.power_loss.workload import embedder, held, told

HERE = Path(__file__).resolve().parent.parent / "power_loss"
ROOT = HERE.parent.parent
SHARED = Path("/dev/shm")
# So many states are tried; of those that are met, each of so many.
MOST, EVERY = size("CVX_STATES", 100_000, 400), 1 if NIGHTLY else 8

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="calls are recorded by LD_PRELOAD"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="the recorder is compiled"),
]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[Change]:
    """Every change that the workload made to its folder, in order."""
    folder = tmp_path_factory.mktemp("recorded")
    root, library, log = folder / "root", folder / "trace.so", folder / "log"
    root.mkdir()
    build = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(HERE / "trace.c")]
    subprocess.run(build, check=True, timeout=120)
    places = f"{ROOT / 'python'}{os.pathsep}{ROOT}"
    environment = {**os.environ, "PYTHONPATH": places, "TRACE_ROOT": str(root)}
    environment |= {"TRACE_LOG": str(log), "LD_PRELOAD": str(library)}
    asked = [sys.executable, str(HERE / "workload.py"), str(root)]
    subprocess.run(asked, check=True, timeout=3_600, env=environment)
    found = changes(log)
    # The recording is whole if playing it gives the very folder.
    disk = Disk(frozenset({"acks"}))
    for change in found:
        disk.play(change)
    assert next(disk.states(random.Random(0), 0)) == on_disk(root)
    return found


def on_disk(folder: Path) -> Shape:
    return {
        path.name: on_disk(path) if path.is_dir() else path.read_bytes()
        for path in sorted(folder.iterdir())
    }


def states_of(recorded: list[Change]) -> Iterator[Shape]:
    """Yield the states that differ, of every moment of the run, in rounds of other draws."""
    seen = set[bytes]()
    for number in count(1_000_000 * ROUND):
        disk, rng = Disk(frozenset({"acks"})), random.Random(number)
        for change in recorded:
            disk.play(change)
            for shape in disk.states(rng, 2):
                for store in ("store", "second"):
                    if isinstance(inside := shape.get(store), dict):
                        # Shared memory is not on the disk.
                        inside.pop("memory.db-shm", None)
                mark = digest(shape)
                if mark not in seen:
                    seen.add(mark)
                    yield shape


def digest(shape: Shape) -> bytes:
    told = hashlib.sha256()
    for name, content in shape.items():
        told.update(f"{name}\0".encode())
        told.update(content if isinstance(content, bytes) else digest(content))
        told.update(b"\1")
    return told.digest()


def acknowledged(recorded: list[Change]) -> list[dict[str, Any]]:
    """Return what the whole run said, before its first word: nothing."""
    disk = Disk(frozenset({"acks"}))
    for change in recorded:
        disk.play(change)
    whole = next(disk.states(random.Random(0), 0))["acks"]
    assert isinstance(whole, bytes)
    return [
        {"stores": {}, "files": {}, "core": []},
        *(json.loads(line) for line in whole.splitlines()),
    ]


Sound = set[tuple[int, str, bytes]]
"""What was held to what was acknowledged, and stood: how far that went, which part, its bytes."""


def check(root: Path, shape: Shape, said: list[dict[str, Any]], sound: Sound) -> None:
    """Hold what is left to what was acknowledged: that, or that and the call under way.

    Stores and core know nothing of each other, so that none is opened twice as it is.
    """
    acks = shape.get("acks", b"")
    at = acks.count(b"\n") if isinstance(acks, bytes) else 0
    allowed = said[at : at + 2]
    for name in ("store", "second"):
        known = [one["stores"].get(name, {"events": [], "links": []}) for one in allowed]
        inside = shape.get(name)
        if not isinstance(inside, dict):
            assert {"events": [], "links": []} in known, name
        elif (mark := (at, name, digest(inside))) not in sound:
            check_store(root / name, known)
            sound.add(mark)
    for name, sha in said[at]["files"].items():
        assert hashlib.sha256((root / name).read_bytes()).hexdigest() == sha, name
    core = {name: held for name, held in shape.items() if name.startswith("core.db")}
    mark = (at, "core.db", digest(core))
    if mark not in sound and ("core.db" in core or said[at]["core"]):
        check_core(root / "core.db", [one["core"] for one in allowed], closing=at == len(said) - 1)
        sound.add(mark)


def check_store(folder: Path, known: list[dict[str, Any]]) -> None:
    """Open a store, hold it to what is known, and use it."""
    if [one.name for one in folder.iterdir()] == [HALF_IMPORT]:
        with pytest.raises(StoreError, match="broke off"):
            opened(folder)
        shutil.rmtree(folder / HALF_IMPORT)
    with opened(folder) as memory:
        holds = held(memory)
        assert holds in known, folder.name
        assert memory.admin.check() == []
        active = [event for event in holds["events"] if event[2] == "active"]
        if active:
            # However busy the machine is, the embedder is waited for.
            patient = replace(memory.learning.pipeline, timeout_s=600.0)
            assert memory.recall(active[-1][1], 1, pipeline=patient)[0].text == active[-1][1]
        memory.add("and it goes on")


def check_core(file: Path, known: list[Any], *, closing: bool) -> None:
    """Open a causal core, and hold it to what is known."""
    try:
        with CausalMemoryCore(file, RuleJudge(), embedder()) as core:
            assert told(core) in known
    except DamagedStoreError as error:
        if closing and "checksum" in str(error):
            raise TornByDuckDBError from error
        raise


class TornByDuckDBError(Exception):
    """At closing DuckDB writes a block of 256 KB over itself, and no half of that can be read."""


def opened(folder: Path) -> Memory:
    """Open a store with the embedder that it has, or will have."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return Memory.open(folder)
        except LexicalOnlyWarning:
            return Memory.open(folder, embedder=embedder())


def failures(recorded: list[Change], most: int, every: int, left: Path) -> Counter[str]:
    """Try so many of the states that a loss of power may leave, and count what is wrong."""
    said = acknowledged(recorded)
    failed, torn, sound = Counter[str](), 0, Sound()
    for number, shape in enumerate(islice(states_of(recorded), 0, most * every, every), 1):
        lay_out(shape, left)
        try:
            check(left, shape, said, sound)
        except TornByDuckDBError:
            torn += 1
        except Exception as error:
            wrong = f"{type(error).__name__}: {str(error)[:200]}"
            failed[wrong] += 1
            tried(f"power loss, state {number}: {wrong}", failed[wrong], 1)
        tried(f"power loss, states ({failed.total()} wrong, {torn} torn by DuckDB)", number)
    of = f"{most:,} states of {len(recorded):,} changes"
    print(f"\npower loss: {of}: {dict(failed)}; torn by DuckDB itself: {torn}")
    return failed


@pytest.fixture
def left() -> Iterator[Path]:
    """Yield a folder in RAM where there is one: what is tried needs no disk."""
    with tempfile.TemporaryDirectory(dir=SHARED if SHARED.is_dir() else None) as name:
        yield Path(name) / "left"


@pytest.mark.requirement("B18")
def test_what_was_acknowledged_outlives_the_loss_of_power(
    recorded: list[Change], left: Path
) -> None:
    assert failures(recorded, MOST, EVERY, left) == Counter()


def test_without_syncs_the_same_states_lose_what_was_acknowledged(
    recorded: list[Change], left: Path
) -> None:
    lazy = [change for change in recorded if change.kind != "s"]
    assert failures(lazy, 60, 30, left)
