"""Erased is erased: no byte of it in any file."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cvx.embed import CachedEmbedder, LexicalEmbedder
from cvx.errors import UnknownEventError
from cvx.memory import Memory
from cvx.memory.checking import check
from cvx.scoring import UsageTracker
from cvx.store.erase import Erased
from cvx.types import Cue, Decision
from tests.store.processes import consistent, embedder

SECRET = "xylophone zanzibar quixotic"


def files_with(folder: Path, needle: bytes) -> list[str]:
    return [p.name for p in folder.rglob("*") if p.is_file() and needle in p.read_bytes()]


def test_an_erase_of_nothing_writes_nothing(tmp_path: Path) -> None:
    cached = CachedEmbedder(embedder(), tmp_path / "vectors.sqlite")
    with Memory.open(tmp_path / "m", cached) as memory:
        memory.add("a mug")
        memory.snapshot()
        before = memory.record.tail(), inodes(tmp_path)
        assert memory.erase([]) == Erased((), True)
        assert (memory.record.tail(), inodes(tmp_path)) == before


def inodes(folder: Path) -> dict[Path, tuple[int, int]]:
    """Which files there are; one that is written anew is another, or of another time."""
    found = ((path, path.stat()) for path in folder.rglob("*") if path.is_file())
    return {path: (stat.st_ino, stat.st_mtime_ns) for path, stat in found}


@pytest.mark.requirement("B8")
def test_nothing_of_an_erased_event_is_left_in_any_file(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    vector = np.arange(1, 17, dtype=np.float32) * np.float32(0.12345)
    alias = embedder().embed(["kaleidoscope"])[0]
    with Memory.open(folder, embedder()) as memory:
        for number in range(30):
            memory.add(f"ordinary text {number}")
        secret = memory.add(
            SECRET, vector=vector, aliases=["kaleidoscope"], metadata={"pin": "8731-4455"}
        )
        memory.link(1, secret, "caused", why="because of the walrus")
        memory.update(secret, metadata={"pin": "9999-0000"}, reward=0.5)
        assert memory.recall(SECRET, 1)[0].similarity < 1
        memory.snapshot()
        for needle in (b"zanzibar", vector.tobytes(), alias.tobytes(), b"8731-4455", b"walrus"):
            assert files_with(folder, needle)
        done = memory.erase([secret])
        assert done.complete
        for needle in (
            b"xylophone",
            b"zanzibar",
            b"quixotic",
            b"kaleidoscope",
            vector.tobytes(),
            alias.tobytes(),
            b"8731-4455",
            b"9999-0000",
            b"walrus",
        ):
            assert files_with(folder, needle) == []
        assert memory.recall(SECRET, 40, sources=["lexical"]) == []
        assert len(memory) == 30
        assert memory.damage() == []
        with pytest.raises(UnknownEventError):
            memory.get(secret)
        again = memory.add("the next one")
        assert again != secret
        assert memory.get(again).node == 32
    assert files_with(folder, vector.tobytes()) == []
    consistent(folder)


@pytest.mark.requirement("B8")
def test_decisions_that_recalled_an_erased_step_forget_it(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    with Memory.open(folder, embedder()) as memory:
        loop = memory.loop()
        run = loop.begin(f"find the {SECRET}", "find")
        loop.act(loop.recall(Cue(step="in the zanzibar room")), "take xylophone")
        first = loop.close(run, 1.0)
        run = loop.begin("an ordinary goal", "find")
        decision = loop.recall(Cue(step="in a room"))
        loop.act(decision, "take it", decision.hits, rendered="take xylophone")
        loop.close(run, 0.0)
        (secret,) = (e.event_id for e in memory.record.events() if e.episode_id == first.episode_id)
        assert secret is not None
        memory.erase(secret)
        for needle in (b"zanzibar", b"xylophone", b"quixotic"):
            assert files_with(folder, needle) == []
        (left,) = memory.record.decisions()
        assert (left["hits"], left["followed"], left["rendered"]) == ([], [], "")
        assert [e.goal for e in memory.record.episodes()] == ["an ordinary goal"]
        assert memory.damage() == []
        assert len(memory.loop().episodes) == 1


@pytest.mark.requirement("B8")
def test_a_decision_forgets_an_erased_step_that_it_showed_as_what_came_next(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "m"
    steps = [("a door", "open door"), ("a table", "say swordfish"), ("a hall", "leave")]
    with Memory.open(folder, embedder()) as memory:
        loop = memory.loop(distinct=None, k=1)
        shown = loop.add_demonstration("get in", steps, "enter")
        loop.add_demonstration("get out", [("a window", "jump")], "enter")
        for seen in ("a door", "a window"):
            run = loop.begin("get in again", "enter")
            decision = loop.recall(Cue(step=seen))
            loop.act(decision, "knock", rendered=loop.render(decision))
            loop.close(run, 0.0)
        assert files_with(folder, b"swordfish")
        memory.erase(
            event.event_id or 0
            for event in memory.record.events()
            if event.node == shown.steps[1].node
        )
        assert files_with(folder, b"swordfish") == []
        door, window = memory.record.decisions()
        assert ([hit[0] for hit in door["hits"]], door["rendered"]) == ([shown.steps[0].node], "")
        assert "jump" in window["rendered"]
        assert memory.damage() == []


@pytest.mark.requirement("B8")
def test_counts_of_use_that_quote_an_erased_event_go_unless_another_says_the_same(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "m"
    words = ["say swordfish", "open door"]
    with Memory.open(folder, embedder()) as memory:
        loop = memory.loop(distinct=None, usage_key=lambda hit, _: ("moment", f"{hit.action}, go"))
        first, _ = (
            loop.add_demonstration("get in", [("a door", action) for action in actions], "enter")
            for actions in (words, ["open door"])
        )
        run = loop.begin("get in again", "enter")
        loop.act(loop.recall(Cue(step="a door")), "knock")
        loop.close(run, 1.0)
        nodes = {step.node for step in first.steps}
        memory.erase(e.event_id or 0 for e in memory.record.events() if e.node in nodes)
        assert files_with(folder, b"swordfish") == []
        quoting = [context for context, *_ in memory.record.usage() if "moment" in context]
        assert quoting == ['["moment","open door, go"]']
        assert memory.damage() == []


@pytest.mark.requirement("B8")
def test_what_was_noted_of_a_decision_and_replaced_forgets_an_erased_event_too(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "m"
    with Memory.open(folder, embedder()) as memory:
        secret = memory.add(SECRET)
        (hit,) = memory.recall(SECRET, 1)
        asked = Decision(memory.record.take_decision_number(), Cue(text="what?"), (hit,))
        for rendered in (SECRET, "seen"):
            with memory.record.transaction() as write:
                write.set_decision(replace(asked, rendered=rendered), {"shown": SECRET})
        with memory.record.transaction() as write:
            write.touch({secret: 5})
            write.touch({secret: 9})
        assert files_with(folder, b"zanzibar")
        memory.erase(secret)
        assert files_with(folder, b"zanzibar") == []
        assert [d["record"] for d in memory.record.decisions()] == [{}]
        assert memory.record.used([secret]) == {}
        assert memory.damage() == []


class Remembering(LexicalEmbedder):
    """The lexical embedder with a cache that can be told to forget."""

    calls = 0
    forgotten: tuple[str, ...] = ()

    def forget(self, texts: Iterable[str]) -> None:
        self.calls += 1
        self.forgotten = tuple(texts)


@pytest.mark.requirement("B8")
def test_the_cache_of_the_embedder_is_told_and_so_is_the_past() -> None:
    model = Remembering(dim=16)
    with Memory(model) as memory:
        kept = memory.add("kept")
        secret = memory.add(SECRET, aliases=["another name"])
        stamp = memory.get(secret).recorded
        assert stamp is not None
        memory.erase(secret)
        assert set(model.forgotten) == {SECRET, "another name"}
        assert model.calls == 1
        past = memory.as_of(stamp)
        assert past.events()["event_id"].to_list() == [kept]
        with pytest.raises(UnknownEventError):
            memory.erase([kept, secret])
        assert len(memory) == 1


@pytest.mark.requirement("B8")
@pytest.mark.parametrize("by", ["itself", "another"])
def test_what_was_noted_of_an_erased_event_is_not_written_later(tmp_path: Path, by: str) -> None:
    with Memory.open(tmp_path / "m", embedder()) as memory:
        secret, kept = memory.add(SECRET), memory.add("an ordinary xylophone")
        block = memory.context(SECRET, 200, k=2)
        assert {hit.event.event_id for hit in block.hits if hit.event} == {secret, kept}
        if by == "itself":
            memory.erase(secret)
        else:
            with Memory.open(tmp_path / "m", embedder()) as other:
                other.erase(secret)
    report = check(tmp_path / "m")
    assert report.findings == ()
    with Memory.open(tmp_path / "m", embedder()) as memory:
        (decision,) = memory.record.decisions()
        assert [hit[0] for hit in decision["hits"]] == [memory.get(kept).node]
        assert decision["record"] == {}
        assert [context for context, *_ in memory.record.usage()] == [f'["event",{kept}]']


@pytest.mark.requirement("B8")
def test_what_an_erased_event_says_takes_away_no_count_of_anything_else(tmp_path: Path) -> None:
    contexts = [
        ("node", 9001),
        ("event", 7001),
        ("heat", 0),
        ("moment", "heat #"),
        ("plan", "x", "1"),
    ]
    with Memory.open(tmp_path / "m", embedder()) as memory:
        memory.loop().add_demonstration("warm it", [("an egg", "heat egg with oven")], "heat")
        erased = [memory.add(said) for said in ("1", "node", "event", "heat", "moment")]
        memory.add("egg 1 of 2")
        tracker = UsageTracker()
        for context in contexts:
            tracker.add(context, followed=True, helped=True)
        with memory.record.transaction() as write:
            tracker.save(write)
        memory.erase(erased)
        left = {context for context, *_ in memory.record.usage()}
        assert left >= {json.dumps(context, separators=(",", ":")) for context in contexts}
