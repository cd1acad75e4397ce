"""The loop beside events that were added, put away, or have aliases."""

from collections.abc import Sequence

import numpy as np
import pytest

from cvx.active import ActiveMemory
from cvx.decay import BlindDecay
from cvx.embed import LexicalEmbedder
from cvx.memory import Memory
from cvx.types import Cue, Vector
from tests.store.facade import memory
from tests.store.processes import embedder

__all__ = ["memory"]


def play(loop: ActiveMemory, step: str, reward: float) -> None:
    run = loop.begin("put the cup away", "clean")
    loop.act(loop.recall(Cue(step=step)), f"go to {step}")
    loop.close(run, reward)


@pytest.mark.requirement("B3", "V17")
@pytest.mark.parametrize("outcome", ["success", "failure"])
def test_what_was_put_away_is_not_advice_of_either_kind(memory: Memory, outcome: str) -> None:
    loop = memory.loop(distinct=None)
    for place in ("sink", "shelf", "stove"):
        play(loop, place, float(outcome == "success"))
    asked = Cue(goal="put the cup away", step="sink")

    def found() -> list[str | None]:
        hits = loop.recall(asked, k=2, outcome=outcome).hits  # type: ignore[arg-type]
        return [hit.action for hit in hits]

    assert found()[0] == "go to sink"
    (sink,) = (e.event_id for e in memory.record.events() if e.action == "go to sink")
    assert sink is not None
    memory.forget(sink)
    assert sorted(map(str, found())) == ["go to shelf", "go to stove"]
    memory.restore(sink)
    assert found()[0] == "go to sink"


@pytest.mark.requirement("V17", "W25")
def test_decay_reaches_an_event_by_whichever_of_its_names_it_was_recalled(memory: Memory) -> None:
    event = memory.add("polish the brass", reward=1.0, action="polish", aliases=["shine the metal"])
    loop = memory.loop(decay=BlindDecay(0.5), mdp=None, distinct=None)
    run = loop.begin("shine the metal")
    decision = loop.recall(Cue(text="shine the metal"), k=1)
    assert decision.hits[0].node == 1, "the alias, not the event's own node"
    loop.act(decision, "polish")
    loop.close(run, 0.0)
    assert memory.get(event).reward == 0.5
    index = memory.index
    assert [index.reward(node) for node in (0, 1)] == [0.5, 0.5]
    loop.reset_decay()
    assert memory.get(event).reward == 1.0
    assert [memory.index.reward(node) for node in (0, 1)] == [1.0, 1.0]


class Asking(LexicalEmbedder):
    """Tells questions from documents."""

    asked: tuple[str, ...] = ()

    def embed_query(self, text: str) -> Vector:
        self.asked += (text,)
        row: Vector = np.asarray(self.embed([text])[0])
        return row


@pytest.mark.requirement("W3")
def test_cues_are_embedded_as_questions_and_steps_as_documents() -> None:
    model = Asking(dim=16)
    documents: list[str] = []
    embed = model.embed

    def noted(texts: Sequence[str]) -> Vector:
        documents.extend(texts)
        return embed(texts)

    loop = ActiveMemory(Memory(embedder()).index, model)
    model.embed = noted  # type: ignore[method-assign]
    run = loop.begin("wash the cup")
    loop.recall(Cue(step="at the sink"))
    loop.step(run, "a towel", "take towel")
    assert model.asked == ("wash the cup at the sink",)
    assert documents == ["wash the cup at the sink", "a towel"]
