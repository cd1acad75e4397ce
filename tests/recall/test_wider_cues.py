"""Widened cues: synonyms, scene, mood, recency, and the situation before a turn."""

from dataclasses import replace

import pytest

from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError
from cvx.memory import Memory
from cvx.memory.situation import Situation, situation_context
from cvx.recall.presets import with_mood, with_recency, with_scene, with_synonyms
from cvx.scoring.formulas import Decay
from cvx.types import Cue, Hit
from tests.recall.rooms import BY_SIMILARITY, EVERYTHING, at, axis, room


def texts(hits: list[Hit]) -> list[str]:
    return [hit.event.text for hit in hits if hit.event]


@pytest.mark.requirement("W21")
def test_synonyms_of_a_table_are_looked_for_too() -> None:
    memory = room()
    memory.add("y the automobile is red")
    cue = Cue(text="where is the car", vector=axis("x"))
    assert memory.recall(cue) == []
    wide = with_synonyms(memory.learning.pipeline, {"car": ["automobile", "vehicle"]})
    assert texts(memory.recall(cue, pipeline=wide)) == ["y the automobile is red"]
    # By the plain lexical source as well.
    plain = with_synonyms(BY_SIMILARITY, {"car": ["automobile"]})
    plain = replace(plain.looking_in(["lexical"]), floor=EVERYTHING)
    assert texts(memory.recall(cue, pipeline=plain)) == ["y the automobile is red"]


@pytest.mark.requirement("W21")
def test_the_scene_is_embedded_with_the_cue() -> None:
    asked: list[str] = []

    class Listening:
        def embed(self, texts: list[str]) -> object:
            asked.extend(texts)
            return [at(0.5)] * len(texts)

        def info(self) -> dict[str, object]:
            return {"id": "axes", "dim": 4, "semantic": False}

    memory = Memory(embedder=Listening())  # type: ignore[arg-type]
    asked.clear()
    memory.recall("who did it", pipeline=with_scene(BY_SIMILARITY, "a dark cellar"))
    assert asked == ["who did it\na dark cellar"]


@pytest.mark.requirement("W21")
def test_time_can_be_made_to_count_more() -> None:
    memory = room()
    memory.add("x old", vector=at(0.9), timestamp=0)
    memory.add("x new", vector=at(0.8), timestamp=100)
    cue = Cue(text="x", timestamp=100)
    assert texts(memory.recall(cue, pipeline=BY_SIMILARITY)) == ["x old", "x new"]
    lately = with_recency(BY_SIMILARITY, Decay.of_half_life(50), 0.5)
    first, second = memory.recall(cue, pipeline=lately)
    # 0.8 + 0.5 * 1 and 0.9 + 0.5 * 0.25
    assert [first.score, second.score] == pytest.approx([1.3, 1.025], abs=1e-6)


@pytest.mark.requirement("W21")
def test_a_mood_primes_what_is_told_in_its_words() -> None:
    memory = room()
    memory.add("x plain", vector=at(0.9))
    memory.add("x a gloomy and bitter evening", vector=at(0.8))
    sad = with_mood(BY_SIMILARITY, ["gloomy", "bitter", "tears", "grief"], 1.0)
    first, _ = memory.recall("x", pipeline=sad)
    assert first.score == pytest.approx(0.8 + 2 / 4, abs=1e-6)
    assert [f.name for f in first.factors] == ["similarity", "mood"]
    with pytest.raises(InvalidInputError, match="mood is empty"):
        with_mood(BY_SIMILARITY, [], 1.0)


@pytest.mark.requirement("W22")
def test_a_prelude_says_who_is_there_where_it_is_what_for_and_what_mattered() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    memory.add("Ann is the host of the dinner")
    memory.add("Bob mends clocks")
    memory.add("the kitchen is small and warm")
    memory.add("the vault needs two keys")
    quarrel = memory.add("a quarrel nobody forgets", salience=0.9).id
    memory.add("a spoon fell", salience=0.1)
    situation = Situation(("Ann", "Bob"), "the kitchen", ("open the vault",), turn=4)
    block = situation_context(memory, situation, 400)
    said = block
    for part in ("Ann is the host", "Bob mends", "kitchen is small", "vault needs", "a quarrel"):
        assert part in said
    assert "a spoon fell" not in said
    assert block.used_tokens <= 400
    names = [source.name for source in block.trace.sources]
    assert names == ["character Ann", "character Bob", "location", "goal 1", "lately"]
    assert memory.learning.attribution(block).turn == 4
    assert quarrel in memory.learning.attribution(block).shown
    assert situation_context(memory, situation, 20).used_tokens <= 20


@pytest.mark.requirement("W22")
def test_a_situation_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="the situation is empty"):
        situation_context(room(), Situation())
    with pytest.raises(InvalidInputError, match="each is 0"):
        situation_context(room(), Situation(location="here"), each=0)
