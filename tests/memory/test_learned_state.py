"""What was learned is kept in a file: opened again, a memory advises as if it had learned anew."""

from __future__ import annotations

import hashlib
import json
import math
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Collection
from concurrent import futures
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from cvx.learn import model_sync
from cvx.learn.region_mdp.counts import ReaderCounts
from cvx.memory import Memory
from cvx.memory import namespace_advisors as module
from cvx.memory.episode import RunningEpisode
from cvx.store import learned_state
from cvx.store.learned_state import _line
from cvx.types import Episode

WAYS = ["go left", "go right", "wait"]
SECRET = "the amber room"


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save at every close, however little was learned."""
    monkeypatch.setattr(module.NamespaceAdvisor.save, "__kwdefaults__", {"most": 1, "share": 0.0})


def _text(episode: RunningEpisode, number: int) -> float:
    draw = random.Random(number)
    at = 0
    for _ in range(6):
        seen = SECRET if at == 2 else f"room {at} of the {draw.choice(['old', 'new'])} house"
        action = episode.advise(seen, WAYS).choose().action
        episode.act(action)
        at += {"go left": -1, "go right": 1, "wait": 0}[str(action)]
        if abs(at) == 3:
            break
    return float(at == 3)


def _numbers(episode: RunningEpisode, number: int) -> float:
    draw = np.random.default_rng(number)
    at = float(draw.uniform(-1, 1))
    for _ in range(8):
        action = episode.advise([at, 1.0], [-1, 1]).choose().action
        episode.act(action, reward=-abs(at))
        at += 0.3 * float(str(action)) + float(draw.normal(0, 0.01))
    return 0.0


def _cells(episode: RunningEpisode, number: int) -> float:
    at = number % 3
    for _ in range(4):
        action = episode.advise([at, 0.5], ["up", "down"]).choose().action
        episode.act(action, reward=float(action == "up"))
        at = (at + 1) % 3
    return 0.0


KINDS: dict[str, tuple[Callable[[RunningEpisode, int], float], bool]] = {
    "text": (_text, True), "numbers": (_numbers, False), "cells": (_cells, False),
}  # fmt: skip


def _play(memory: Memory, first: int, last: int, *kinds: str) -> None:
    for number in range(first, last):
        for kind in kinds or KINDS:
            play, told = KINDS[kind]
            goal = f"{kind} goal {number % 2 if number > 6 else 0}"
            source = "a stranger" if number % 5 == 4 else ""
            with memory.episode(goal, task=kind, source=source) as episode:
                won = play(episode, number)
                if told:
                    episode.end(won)
                else:
                    episode.end(observation="over" if kind == "cells" else None)


def _told(folder: Path, *, anew: bool = False) -> list[str]:
    """Return what a memory advises when it is opened, everything that can be seen of it."""
    told = []
    # What chance decides hangs on the numbers of episodes: whatever is compared begins the same.
    with TemporaryDirectory() as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        if anew:
            for path in _files(Path(copy)):
                path.unlink()
        memory = Memory.open(copy, embedder="lexical")
        for kind, asked in (
            ("text", ["room 0 of the old house", SECRET, "a room that nobody saw"]),
            ("numbers", [[0.25, 1.0], [-0.6, 1.0]]),
            ("cells", [[0, 0.5], [2, 0.5]]),
        ):
            with memory.episode(f"{kind} goal 1", task=kind) as episode:
                for one in asked:
                    advice = episode.advise(one, [-1, 1] if kind == "numbers" else [*WAYS, "up"])
                    told += [repr(option.value) + repr(option) for option in advice]
                    told += [str(advice), repr(advice.chances), repr(advice.choose().action)]
                    told += [repr([hit.event and hit.event.id for hit in advice.best.hits])]
                episode.discard()
        memory.close()
    return told


def _files(folder: Path) -> list[Path]:
    return sorted((folder / "index").glob("learned-*"))


def _anew(folder: Path) -> list[str]:
    """Return the same where nothing is kept: the naive twin learns from the record."""
    return _told(folder, anew=True)


def test_a_memory_that_is_opened_again_advises_as_one_that_learned_anew(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="lexical") as memory:
        _play(memory, 0, 30)
    (path,) = _files(tmp_path)
    kept = _told(tmp_path)
    assert path.stat().st_mode & 0o077 == 0
    assert kept == _anew(tmp_path)


def test_it_goes_on_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.open(tmp_path, embedder="lexical") as memory:
        _play(memory, 0, 20)
    monkeypatch.setattr(
        module.NamespaceAdvisor.save, "__kwdefaults__", {"most": 10**9, "share": 0.0}
    )
    before = [path.read_bytes() for path in _files(tmp_path)]
    with Memory.open(tmp_path, embedder="lexical") as memory:
        _play(memory, 20, 32)
    assert before == [path.read_bytes() for path in _files(tmp_path)] != []
    assert _told(tmp_path) == _anew(tmp_path)


def test_it_reads_nothing_that_it_has_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(tmp_path, embedder="lexical") as memory:
        _play(memory, 0, 10)
    learned: list[object] = []
    learn = module.NamespaceAdvisor._learn

    def counted(self: module.NamespaceAdvisor, episode: object) -> None:
        learned.append(episode)
        learn(self, episode)  # type: ignore[arg-type]

    monkeypatch.setattr(module.NamespaceAdvisor, "_learn", counted)
    _told(tmp_path)
    assert learned == []
    _anew(tmp_path)
    assert len(learned) == 30


def test_what_was_erased_or_put_away_is_not_known_any_more(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="lexical") as memory:
        _play(memory, 0, 20)
    assert any(SECRET.encode() in path.read_bytes() for path in _files(tmp_path))
    with Memory.open(tmp_path, embedder="lexical") as memory:
        memory.forget([one for one in memory.events() if one.text == "room 1 of the new house"])
    assert _told(tmp_path) == _anew(tmp_path)
    with Memory.open(tmp_path, embedder="lexical") as memory:
        memory.admin.quarantine(source="a stranger")
    assert _told(tmp_path) == _anew(tmp_path)
    with Memory.open(tmp_path, embedder="lexical") as memory:
        memory.admin.release(source="a stranger")
    assert _told(tmp_path) == _anew(tmp_path)
    with (
        Memory.open(tmp_path, embedder="lexical") as memory,
        memory.episode("text goal 1", task="text") as episode,
    ):
        episode.advise(SECRET, WAYS)
        episode.discard()
        memory.erase([one for one in memory.events() if one.text == SECRET])
        assert _files(tmp_path) == []
    left = [one.name for one in tmp_path.rglob("*.*") if SECRET.encode() in one.read_bytes()]
    assert left == []
    assert _told(tmp_path) == _anew(tmp_path)


def test_an_erased_text_is_not_written_back_by_another_process(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="lexical") as memory:
        _play(memory, 0, 10, "text")
        code = (
            "import sys; from cvx import Memory\n"
            "with Memory.open(sys.argv[1], embedder='lexical') as memory:\n"
            f"    memory.erase([one for one in memory.events() if one.text == {SECRET!r}])\n"
        )
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert not any(SECRET.encode() in path.read_bytes() for path in _files(tmp_path))
    assert _told(tmp_path) == _anew(tmp_path)


def test_two_that_write_at_once_both_teach(tmp_path: Path) -> None:
    with (
        Memory.open(tmp_path, embedder="lexical") as memory,
        Memory.open(tmp_path, embedder="lexical") as other,
    ):
        _play(memory, 0, 8)
        _play(other, 8, 16)
        _play(memory, 16, 24)
    assert _told(tmp_path) == _anew(tmp_path)


@pytest.mark.parametrize("place", range(0, 1000, 37))
def test_a_damaged_file_is_passed_over(tmp_path: Path, place: int) -> None:
    with Memory.open(tmp_path, embedder="lexical") as memory:
        _play(memory, 0, 4, "text")
    (path,) = _files(tmp_path)
    raw = bytearray(path.read_bytes())
    raw[place * len(raw) // 1000] ^= 0x11
    path.write_bytes(raw[: len(raw) - place % 2])
    assert _told(tmp_path) == _anew(tmp_path)


@pytest.mark.parametrize("name", ["advisor", "precedents", "read", "steps", "sizes", "returns"])
def test_a_file_with_right_checksums_and_other_content_is_passed_over(
    tmp_path: Path, name: str
) -> None:
    with Memory.open(tmp_path, embedder="lexical") as memory:
        _play(memory, 0, 4, "text")
    (path,) = _files(tmp_path)
    whole = path.read_bytes()
    head, signed, _ = whole.split(b"\n", 2)
    header = json.loads(head)
    raw = whole[_line(len(head) + len(signed) + 2) :]
    state = json.loads(raw[: header["body"]])
    state[name] = "nothing that was written"
    body = json.dumps(state).encode()
    arrays = raw[_line(header["body"]) :]
    shift = _line(len(body)) - _line(header["body"])
    digest = hashlib.sha256(body)
    for kind, shape, start, _ in header["arrays"]:
        digest.update(raw[start : start + np.dtype(kind).itemsize * math.prod(shape)])
    header["arrays"] = [
        [k, shape, start + shift, room] for k, shape, start, room in header["arrays"]
    ]
    header["body"], header["size"] = len(body), _line(len(body)) + len(arrays)
    header["digest"] = digest.hexdigest()
    head, key = json.dumps(header).encode(), learned_state._key()
    assert key is not None
    lines = b"%b\n%b\n" % (head, learned_state._signed(key, head))
    padded = [one.ljust(_line(len(one)), b"\0") for one in (lines, body)]
    path.write_bytes(b"".join([*padded, arrays]))
    assert _told(tmp_path) == _anew(tmp_path)


def test_what_another_user_wrote_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: list[object] = []
    learn = module.NamespaceAdvisor._learn

    def counted(self: module.NamespaceAdvisor, episode: object) -> None:
        learned.append(episode)
        learn(self, episode)  # type: ignore[arg-type]

    store = tmp_path / "store"
    with Memory.open(store, embedder="lexical") as memory:
        _play(memory, 0, 4, "text")
    monkeypatch.setattr(module.NamespaceAdvisor, "_learn", counted)
    told = _told(store)
    assert learned == []
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    assert _told(store) == told
    assert len(learned) == 4
    # One who can keep no key keeps nothing, and is told the same.
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert _told(store) == told
    assert len(learned) == 8


def test_learning_that_was_broken_off_is_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(tmp_path, embedder="lexical") as memory:
        _play(memory, 0, 12, "text")
    for path in _files(tmp_path):
        path.unlink()
    learned: list[object] = []
    learn = module.NamespaceAdvisor._learn

    def broken(self: module.NamespaceAdvisor, episode: object) -> None:
        learned.append(episode)
        if len(learned) == 5:
            raise KeyboardInterrupt
        learn(self, episode)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(module.NamespaceAdvisor, "_learn", broken)
        with pytest.raises(KeyboardInterrupt), Memory.open(tmp_path, embedder="lexical") as memory:
            memory.episode("text goal 1", task="text")
    assert _told(tmp_path) == _anew(tmp_path)


def test_another_learner_and_another_store_learn_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        with Memory.open(tmp_path / name, embedder="lexical") as memory:
            _play(memory, 0, 4 if name == "one" else 9, "text")
    (mine,), (others,) = _files(tmp_path / "one"), _files(tmp_path / "two")
    mine.write_bytes(others.read_bytes())
    told = _told(tmp_path / "one")
    assert told == _anew(tmp_path / "one")
    _told(tmp_path / "one")
    learned: list[object] = []
    learn = module.NamespaceAdvisor._learn

    def counted(self: module.NamespaceAdvisor, episode: object) -> None:
        learned.append(episode)
        learn(self, episode)  # type: ignore[arg-type]

    monkeypatch.setattr(module.NamespaceAdvisor, "_learn", counted)
    monkeypatch.setattr(module, "_learner", lambda: "another")
    assert _told(tmp_path / "one") == told
    assert len(learned) == 4


def test_a_process_that_is_killed_leaves_what_was_ended(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from tests.memory import test_learned_state as tests\n"
        "from cvx.memory import Memory, namespace_advisors\n"
        "namespace_advisors.NamespaceAdvisor.save.__kwdefaults__.update(most=20, share=0.1)\n"
        "memory = Memory.open(sys.argv[1], embedder='lexical')\n"
        "tests._play(memory, 0, 17, 'text')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    root = str(Path(__file__).parents[2])
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False, cwd=root)
    with Memory.open(tmp_path, embedder="lexical") as memory:
        assert len(memory.frames.episodes()) == 17
    assert _told(tmp_path) == _anew(tmp_path)


def test_what_was_learned_anew_is_saved_before_the_first_episode_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(tmp_path, embedder="lexical") as memory:
        _play(memory, 0, 4, "text")
    for path in _files(tmp_path):
        path.unlink()
    monkeypatch.setattr(module, "_MANY", 1)
    with Memory.open(tmp_path, embedder="lexical") as memory:
        episode = memory.episode("text goal 1", task="text")
        assert len(_files(tmp_path)) == 1
        episode.discard()


def _regions(memory: Memory) -> list[object]:
    mdp = memory.learning.mdp
    assert mdp is not None
    told: list[object] = [mdp.to_dict(), len(mdp)]
    for region in sorted({region for one in mdp.trajectories for region in one.regions}):
        told += [mdp.best_action(region), mdp.strategy_for(region), mdp.estimate(region)]
    return [*told, mdp.moves("text"), [*mdp.frames("text").regions.iter_rows()]]


def test_the_region_model_is_kept_too_and_counts_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SOME", 1)
    with Memory.open(tmp_path, embedder="lexical") as memory:
        _play(memory, 0, 20, "text")
        assert memory.learning.mdp
    (kept,) = [path for path in _files(tmp_path) if b'"asker":["regions"]' in path.read_bytes()]
    monkeypatch.setattr(module, "_SOME", 10**9)
    with Memory.open(tmp_path, embedder="lexical") as memory:
        _play(memory, 20, 22, "text")
    counted: list[object] = []
    count = ReaderCounts.count

    def noted(self: ReaderCounts, *about: object) -> None:
        counted.append(about)
        count(self, *about)  # type: ignore[arg-type]

    monkeypatch.setattr(ReaderCounts, "count", noted)
    with Memory.open(tmp_path, embedder="lexical") as memory:
        found = _regions(memory)
        assert len(counted) == 2
    kept.unlink()
    with Memory.open(tmp_path, embedder="lexical") as memory:
        assert _regions(memory) == found
        assert len(counted) == 2 + 22


def test_regions_are_learned_anew_where_a_step_was_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SOME", 1)
    with Memory.open(tmp_path, embedder="lexical") as memory:
        _play(memory, 0, 20, "text")
        before = _regions(memory)
    monkeypatch.setattr(module, "_SOME", 10**9)
    with Memory.open(tmp_path, embedder="lexical") as memory:
        memory.forget([one for one in memory.events() if one.text == SECRET])
    with Memory.open(tmp_path, embedder="lexical") as memory:
        found = _regions(memory)
    for path in _files(tmp_path):
        path.unlink()
    with Memory.open(tmp_path, embedder="lexical") as memory:
        assert found == _regions(memory) != before


def test_a_failure_after_opening_waits_for_a_slice_of_the_regions_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(tmp_path, embedder="lexical") as memory:
        _play(memory, 0, 40, "text")
        secret = next(one for one in memory.events() if one.text == SECRET)
    for path in _files(tmp_path):
        path.unlink()
    monkeypatch.setattr(model_sync, "_SLICE", 12)
    counted: list[object] = []
    count = ReaderCounts.count

    def noted(self: ReaderCounts, *args: Any) -> None:
        counted.append(args)
        count(self, *args)

    monkeypatch.setattr(ReaderCounts, "count", noted)
    with Memory.open(tmp_path, embedder="lexical") as memory:
        for ended in range(3):
            with memory.episode("text goal 1", task="text") as episode:
                for _ in range(3):
                    advice = episode.advise("room 0 of the old house", WAYS)
                    tried = next(option for option in advice if option.hits)
                    episode.act(tried.action, followed=True)
                assert not counted or ended
                episode.end(0.0)
            # A dozen steps in which advice is judged at first, and a dozen an end.
            assert 4 <= len(counted) <= 12 * (2 + ended)
        memory.forget(secret)
        assert len(counted) < 40
        sliced = _on_these_regions(memory)
    with Memory.open(tmp_path, embedder="lexical") as memory:
        assert _on_these_regions(memory) == sliced


def test_a_thread_waits_for_the_one_that_begins_to_learn_the_regions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(tmp_path, embedder="lexical") as memory:
        _play(memory, 0, 12, "text")
    begun, go_on = threading.Event(), threading.Event()
    unkept = model_sync.LearnedModels._unkept

    def slow(self: model_sync.LearnedModels, *args: Any) -> list[int]:
        found = unkept(self, *args)
        begun.set()
        assert go_on.wait(60)
        return found

    monkeypatch.setattr(model_sync.LearnedModels, "_unkept", slow)
    with Memory.open(tmp_path, embedder="lexical") as memory:
        loop = memory.learning.active
        with futures.ThreadPoolExecutor(2) as pool:
            first = pool.submit(lambda: len(loop.mdp or ()))
            assert begun.wait(60)
            second = pool.submit(lambda: len(loop.mdp or ()))
            futures.wait([second], 0.2)
            go_on.set()
            assert (first.result(60), second.result(60)) == (12, 12)


def test_waiting_episodes_are_read_several_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(tmp_path, embedder="lexical") as memory:
        _play(memory, 0, 24, "text")
    for path in _files(tmp_path):
        path.unlink()
    asked: list[int] = []
    read = model_sync.LearnedModels._read_episodes

    def noted(self: model_sync.LearnedModels, numbers: Collection[int]) -> list[Episode]:
        asked.append(len(numbers))
        return read(self, numbers)

    monkeypatch.setattr(model_sync.LearnedModels, "_read_episodes", noted)
    with Memory.open(tmp_path, embedder="lexical") as memory:
        assert len(memory.learning.active.mdp or ()) == 24
    assert asked == [8, 8, 8]


def _on_these_regions(memory: Memory) -> list[object]:
    mdp = memory.learning.mdp
    assert mdp is not None
    # Nothing waits to be placed in the regions of now.
    mdp.relearn()
    return _regions(memory)


def _valued(memory: Memory) -> list[str]:
    """Return what a memory advises, without what hangs on the number of the episode that asks."""
    with memory.episode("text goal 1", task="text") as episode:
        told = []
        for seen in ("room 0 of the old house", SECRET, "room 1 of the blue house"):
            told += [repr(one) + repr(one.value) for one in episode.advise(seen, WAYS)]
        episode.discard()
    return told


def _learned_anew(folder: Path) -> list[str]:
    for path in _files(folder):
        path.unlink()
    with Memory.open(folder, embedder="lexical") as memory:
        return _valued(memory)


def test_a_step_that_was_edited_teaches_what_it_says_now(tmp_path: Path) -> None:
    def valued(memory: Memory) -> list[str]:
        with memory.episode("cells goal 1", task="cells") as episode:
            told = [repr(one) + repr(one.value) for one in episode.advise([0, 0.5], ["up", "down"])]
            episode.discard()
        return told

    with Memory.open(tmp_path, embedder="lexical") as memory:
        _play(memory, 0, 20, "cells")
        before = valued(memory)
        for step in (step for episode in memory.record.episodes() for step in episode.steps):
            if "reward" in step.metadata:
                memory.update(step.id, metadata={**step.metadata, "reward": 0.25})
        found = valued(memory)
    assert found != before
    for anew in (False, True):
        for path in _files(tmp_path) if anew else ():
            path.unlink()
        with Memory.open(tmp_path, embedder="lexical") as memory:
            assert valued(memory) == found


def test_episodes_that_overlap_are_learned_in_the_order_in_which_they_ended(
    tmp_path: Path,
) -> None:
    with (
        Memory.open(tmp_path, embedder="lexical") as memory,
        Memory.open(tmp_path, embedder="lexical") as other,
    ):
        _play(memory, 0, 6, "text")
        for number in range(6, 20):
            first = memory.episode(f"text goal {number % 3}", task="text")
            second = memory.episode(f"text goal {number % 2}", task="text")
            later = _text(first, number), _text(second, number + 100)
            second.end(later[1])
            first.end(later[0])
        found = _valued(memory)
        assert _valued(other) == found
    with Memory.open(tmp_path, embedder="lexical") as memory:
        assert _valued(memory) == found
    assert _learned_anew(tmp_path) == found
