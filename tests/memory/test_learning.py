"""What a memory has learned, read and judged through ``memory.learning``."""

from pathlib import Path

import pytest

from cvx import LexicalEmbedder, Memory
from cvx.errors import InvalidInputError, NotLoggedError
from cvx.learn.loop import ActiveMemory
from cvx.learn.model_sync import TakenBackError

pytestmark = pytest.mark.requirement("B20")


def decided(memory: Memory, times: int) -> None:
    for number in range(times):
        context = memory.context(f"where is the key of room {number}?", 100)
        assert context.decision is not None
        memory.feedback(context.decision, outcome=float(number % 2))


def filled(memory: Memory) -> Memory:
    for number in range(6):
        memory.add(f"the key of room {number} hangs on hook {number}")
    return memory


def test_other_weights_are_judged_by_what_was_sampled() -> None:
    memory = filled(Memory(embedder=LexicalEmbedder(64)))
    assert memory.learning.sampling == 0.0
    memory.learning.sampling = 0.5
    assert memory.learning.sampling == 0.5
    decided(memory, 8)
    found = memory.learning.off_policy({"dense": 1.0, "coverage_pair": 0.5})
    assert 0.0 <= found.value <= 1.0
    assert found.low <= found.value <= found.high
    with pytest.raises(InvalidInputError, match=r"\['similarity'\]: give some of .*dense"):
        memory.learning.off_policy({"similarity": 1.0})


def test_what_was_not_sampled_cannot_be_judged() -> None:
    memory = filled(Memory(embedder=LexicalEmbedder(64)))
    decided(memory, 4)
    with pytest.raises(NotLoggedError, match=r"0 contexts.*dense.*set memory.learning.samp"):
        memory.learning.off_policy({"dense": 1.0})
    for weights in ({}, {"unheard_of": 1.0}):
        with pytest.raises(NotLoggedError, match="0 contexts"):
            memory.learning.off_policy(weights)


@pytest.mark.parametrize("wrong", [-1, float("nan"), "hot", None, True])
def test_a_temperature_that_is_none_is_refused(wrong: object) -> None:
    memory = Memory(embedder=LexicalEmbedder(64))
    with pytest.raises(InvalidInputError, match="sampling is"):
        memory.learning.sampling = wrong  # type: ignore[assignment]
    with pytest.raises(InvalidInputError, match="weights"):
        memory.learning.off_policy({"dense": "much" if wrong == -1 else wrong})  # type: ignore[dict-item]


def test_sampling_is_kept_with_the_store_and_ends_with_zero(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=LexicalEmbedder(64)) as memory:
        memory.learning.sampling = 0.25
    with Memory.open(tmp_path / "m") as again:
        assert again.learning.sampling == 0.25
        again.learning.sampling = 0
        assert again.learning.sampling == 0.0


def test_what_episodes_taught_is_there_to_be_read() -> None:
    memory = Memory(embedder=LexicalEmbedder(64))
    with memory.episode("find the hat", task="hats") as episode:
        episode.act("left", observation="a hall")
        episode.end(1.0)
    learning = memory.learning
    assert learning.mdp is learning.active.mdp
    assert learning.usage is learning.active.usage
    assert learning.decay is learning.active.decay


def test_the_region_model_is_read_though_another_thread_takes_a_block_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    catch_up, left = ActiveMemory.catch_up, [TakenBackError("taken back meanwhile")]

    def late(self: ActiveMemory) -> None:
        if left:
            raise left.pop()
        catch_up(self)

    with Memory(embedder="lexical") as memory:
        with memory.episode("find the key", task="find") as episode:
            episode.advise("a locked door", ["look", "wait"])
            episode.act("look")
            episode.end(1.0)
        monkeypatch.setattr(ActiveMemory, "catch_up", late)
        assert len(memory.learning.mdp or ()) == 1
        assert not left
