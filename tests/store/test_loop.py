"""The loop on a durable record: killed in the middle, it goes on as if nothing had happened."""

import hashlib
import os
import random
import signal
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from cvx.learn.episode_recorder import OpenEpisode
from cvx.learn.loop import ActiveMemory
from cvx.memory import Memory
from cvx.store import failpoints
from cvx.types import Cue
from tests.store.processes import CONTEXT, embedder

ROUNDS = 14
PLACES = ("sink", "fridge", "stove", "table", "shelf")


def play(loop: ActiveMemory, number: int) -> None:
    """One episode whose course depends on nothing but its number and on what is remembered."""
    rng = random.Random(number)
    goal = f"put the {rng.choice(PLACES)} in order"
    run = loop.begin(goal, rng.choice(["clean", "heat"]))
    for _ in range(3):
        decision = loop.recall(Cue(goal=goal, step=f"at the {rng.choice(PLACES)}"))
        advised = [hit.action for hit in decision.hits if hit.action]
        action = advised[0] if advised and rng.random() < 0.7 else f"go to {rng.choice(PLACES)}"
        loop.act(decision, action)
    loop.close(run, float(rng.random() < 0.5))


def state(memory: Memory) -> dict[str, object]:
    """Everything that the record knows, without the times of recording."""
    record = memory.record
    return {
        "episodes": [(e.episode_id, e.entity_id, e.reward, e.actions) for e in record.episodes()],
        "events": [(e.event_id, e.node, e.text, e.reward, e.tags, e.kind) for e in record.events()],
        "links": [(e.from_node, e.to_node, e.kind, e.weight) for e in record.links()],
        "usage": record.usage(),
        "decays": sorted(record.decays()),
        # Numbers of decisions are reserved by the block: a death leaves the rest of one unused.
        "decisions": [
            (d["episode"], d["action"], d["followed"], d["outcome"]) for d in record.decisions()
        ],
        "weights": record.state("weights"),
    }


def play_on(folder: str, acks: Connection) -> None:
    memory = Memory.open(folder, embedder=embedder())
    # Steps are counted: no clock has a part in the course.
    loop = memory.learning.loop(mdp=None, clock=None)
    for number in range(len(loop.episodes), ROUNDS):
        acks.send(number)
        play(loop, number)
    memory.close()
    acks.send("done")


@pytest.fixture(scope="module")
def unbroken() -> dict[str, object]:
    with Memory(embedder=embedder()) as memory:
        loop = memory.learning.loop(mdp=None, clock=None)
        for number in range(ROUNDS):
            play(loop, number)
        return state(memory)


@pytest.mark.requirement("V16", "X9")
@pytest.mark.parametrize("seed", range(4))
def test_a_loop_killed_again_and_again_ends_as_one_that_was_not(
    tmp_path: Path, seed: int, unbroken: dict[str, object]
) -> None:
    rng = random.Random(seed)
    folder = tmp_path / "m"
    deaths = 0
    while True:
        receive, send = CONTEXT.Pipe(duplex=False)
        player = CONTEXT.Process(target=play_on, args=(str(folder), send), daemon=True)
        player.start()
        send.close()
        # Killed while the round that it has just begun is being played and closed.
        last: object = None
        for _ in range(rng.randrange(1, 5)):
            last = receive.recv()
            if last == "done":
                break
        if last != "done":
            for _ in range(rng.randrange(2000)):
                hashlib.blake2b(b"some work instead of a sleep").digest()
            player.kill()
            deaths += 1
        player.join()
        receive.close()
        if last == "done":
            break
    assert deaths
    with Memory.open(folder, embedder=embedder()) as memory:
        assert memory.admin.check() == []
        assert state(memory) == unbroken


def lose(loop: ActiveMemory) -> OpenEpisode:
    """An episode that only has to be closed."""
    run = loop.begin("put the sink in order", "clean")
    for place in PLACES[:2]:
        decision = loop.recall(Cue(goal=run.goal, step=f"at the {place}"))
        loop.act(decision, decision.hits[0].action, decision.hits[:1])
    return run


def close_and_die(folder: str, failpoint: str) -> None:
    memory = Memory.open(folder, embedder=embedder())
    loop = memory.learning.loop(clock=None)
    for number in range(6):
        play(loop, number)
    run = lose(loop)
    failpoints._wanted = failpoint
    loop.close(run, 0.0)


@pytest.mark.requirement("V16", "X9")
@pytest.mark.parametrize(
    ("failpoint", "kept"),
    [
        ("transaction.begun", False),
        ("transaction.written", False),
        ("transaction.committed", True),
        ("tail.written", True),
    ],
)
def test_a_death_in_a_close_leaves_all_of_it_or_nothing(
    tmp_path: Path, failpoint: str, kept: bool
) -> None:
    folder = tmp_path / "m"
    player = CONTEXT.Process(target=close_and_die, args=(str(folder), failpoint), daemon=True)
    player.start()
    player.join()
    assert player.exitcode == -signal.SIGKILL
    cue = Cue(goal="put the sink in order", step="at the sink", task_type="clean")
    with (
        Memory(embedder=embedder()) as untroubled,
        Memory.open(folder, embedder=embedder()) as memory,
    ):
        twin = untroubled.learning.loop(clock=None)
        for number in range(6):
            play(twin, number)
        if kept:
            twin.close(lose(twin), 0.0)
        loop = memory.learning.loop(clock=None)
        assert state(memory) == state(untroubled)
        ours, theirs = (one.recall(cue, distinct=None, k=50) for one in (loop, twin))
        assert ours.action_scores == theirs.action_scores
        assert [(h.node, h.score, h.reward) for h in ours.hits] == [
            (h.node, h.score, h.reward) for h in theirs.hits
        ]
        mine, other = (
            {(e.from_node, e.to_node, e.kind, e.weight) for e in one.index.edges()}
            for one in (memory, untroubled)
        )
        assert mine == other


def test_an_index_built_again_gives_the_loop_the_same_nodes(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        loop = memory.learning.loop()
        for number in range(ROUNDS):
            play(loop, number)
        index = memory.index
        nodes = [event.node for event in memory.record.events() if event.node is not None]
        before = [(index.step(n), index.tags(n), index.recallable(n)) for n in nodes]
        edges = [(e.from_node, e.to_node, e.kind, e.weight) for e in index.edges()]
        memory._shared.store.replica.rebuild()
        assert [(index.step(n), index.tags(n), index.recallable(n)) for n in nodes] == before
        again = [(e.from_node, e.to_node, e.kind, e.weight) for e in index.edges()]
        assert again == edges
        play(loop, ROUNDS)
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        loop = memory.learning.loop()
        assert len(loop.episodes) == ROUNDS + 1
        assert loop.mdp is not None
        assert len(loop.mdp) > 0


@pytest.mark.requirement("B9", "V16")
def test_two_loops_on_one_folder_learn_from_each_other_and_count_each_episode_once(
    tmp_path: Path,
) -> None:
    with (
        Memory.open(tmp_path / "m", embedder=embedder()) as one,
        Memory.open(tmp_path / "m", embedder=embedder()) as two,
    ):
        first, second = one.learning.loop(), two.learning.loop()
        a, b = first.begin("wash"), second.begin("dry")
        assert a.episode_id == b.episode_id
        first.act(first.recall(Cue(step="at the sink")), "open tap")
        second.act(second.recall(Cue(step="at the towel")), "take towel")
        first.close(a, 1.0)
        renumbered = second.close(b, 1.0)
        assert renumbered.episode_id != b.episode_id
        for number in range(10):
            play((first, second)[number % 2], number)
        assert [e.goal for e in one.record.episodes()][:2] == ["wash", "dry"]
        first.catch_up()
        second.catch_up()
        assert sorted(e.goal for e in first.episodes) == sorted(e.goal for e in second.episodes)
        assert len({e.episode_id for e in second.episodes}) == 12
        owners = [(e.namespace, e.entity_id) for e in second.episodes]
        assert len(set(owners)) == 12
        assert one.admin.check() == []
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        loop = memory.learning.loop()
        contexts = {c: loop.usage.count(c) for c in loop.usage} if loop.usage else {}
        assert second.usage is not None
        assert contexts == {c: second.usage.count(c) for c in contexts}
        numbers = [d["decision_id"] for d in memory.record.decisions()]
        assert len(numbers) == len(set(numbers)) == 32


@pytest.mark.requirement("V16")
def test_a_close_that_fails_leaves_index_and_record_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cvx.errors import RecordIOError
    from cvx.store import failpoints

    assert "CVX_FAILPOINT" not in os.environ
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        loop = memory.learning.loop()
        for number in range(6):
            play(loop, number)
        before = state(memory)
        run = loop.begin("put the sink in order", "clean")
        loop.act(loop.recall(Cue(step="at the sink")), "go to sink")
        with monkeypatch.context() as broken:
            broken.setattr(failpoints, "_wanted", "transaction.written:error")
            broken.setattr(failpoints, "_reached", {})
            with pytest.raises(RecordIOError):
                loop.close(run, 0.0)
        assert state(memory) == before
        closed = loop.close(run, 0.0)
        new = memory.add("a note that was made afterwards")
        assert memory.get(new).node not in {step.node for step in closed.steps}
        index = memory.index
        stored = {e.node: e.reward for e in memory.record.events()}
        for node, reward in stored.items():
            assert node is not None
            if reward is None:
                assert index.reward(node) is None
            else:
                assert index.reward(node) == pytest.approx(reward)
        vectors = [index.vector(node) for node in stored if node is not None]
        assert len(np.stack([v for v in vectors if v is not None])) == len(stored)
