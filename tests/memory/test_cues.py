"""What a cue may name beside words, and the presets that a recall may go by."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cvx import Cue, Edge, LexicalEmbedder, Memory
from cvx.errors import (
    InvalidInputError,
    InvalidVectorError,
    NamespaceError,
    SettingsMismatchError,
    UnknownError,
)
from cvx.memory.settings import PRESETS

pytestmark = pytest.mark.requirement("B20")


def flooded() -> Memory:
    memory = Memory(embedder=LexicalEmbedder())
    rain = memory.add("It rained all night.", entity="sky", salience=0.9)
    memory.add("The garden party was a success.", entity="ana", salience=0.9)
    drain = memory.add("Leaves blocked the drain.", entity="bo", salience=0.9)
    flood = memory.add("The cellar is under water.", entity="ana", salience=0.9)
    memory.add("The cellar walls are damp.", entity="bo", salience=0.9)
    memory.link(rain, drain, weight=0.5, why="leaves were washed down")
    memory.link(drain, flood, why="the water had nowhere to go")
    memory.link(5, flood, "irrelevant")
    return memory


@pytest.mark.parametrize("preset", [None, *PRESETS])
def test_what_led_to_the_event_of_a_cue_comes_first_and_it_itself_does_not(
    preset: str | None,
) -> None:
    memory = flooded()
    for cue in (Cue(event=4), Cue("the cellar", event=memory.get(4))):
        hits = memory.recall(cue, preset=preset)
        assert [hit.id for hit in hits][:2] == [3, 1]
        assert 4 not in [hit.id for hit in hits]
        assert hits[1].path == (
            Edge(3, 4, why="the water had nowhere to go", recorded=hits[1].path[0].recorded),
            Edge(1, 3, "caused", 0.5, "leaves were washed down", recorded=hits[1].path[1].recorded),
        )
        assert "walked 3 -caused 1.00-> 4" in hits[0].explain()
    assert "Leaves blocked the drain." in memory.context(Cue(event=4), preset=preset)


def test_a_hit_with_a_path_is_what_json_can_hold() -> None:
    memory = flooded()
    hit = memory.recall(Cue(event=4))[1]
    told = json.loads(json.dumps(dict(hit)))
    assert [(edge["cause"], edge["effect"]) for edge in told["path"]] == [(3, 4), (1, 3)]
    assert hit.path[0]["why"] == told["path"][0]["why"] == "the water had nowhere to go"
    with pytest.raises(KeyError, match="an edge has no 'colour'"):
        _ = hit.path[0]["colour"]


def test_causes_alone_can_be_asked_for() -> None:
    memory = flooded()
    hits = memory.recall(Cue(event=4), sources=["causes"])
    assert [hit.id for hit in hits] == [3, 1]
    assert memory.recall(Cue(event=1), sources=["causes"]) == []


def test_a_cause_is_found_though_it_has_no_vector_in_common_with_its_effect() -> None:
    memory = Memory(dim=2, metric="cosine")
    memory.add("a", vector=[1.0, 0.0])  # type: ignore[arg-type]
    memory.add("b", vector=[-1.0, 0.0])  # type: ignore[arg-type]
    memory.link(1, 2)
    assert [hit.id for hit in memory.recall(Cue(event=2))] == [1]


def test_nobody_is_told_the_causes_of_what_they_may_not_see() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    cause = memory.add("a secret", namespace="bob")
    effect = memory.add("a leak", namespace="bob", visibility="public")
    memory.link(cause, effect)
    with pytest.raises(UnknownError, match="no event 1"):
        memory.within("ana").recall(Cue(event=cause))
    assert memory.within("ana").recall(Cue(event=effect), sources=["causes"]) == []
    assert [hit.id for hit in memory.recall(Cue(event=effect), namespace="bob")] == [1]
    with pytest.raises(NamespaceError):
        memory.within("ana").recall(Cue(event=effect), namespace="bob")
    with pytest.raises(UnknownError, match="no event 99"):
        memory.recall(Cue(event=99))
    with pytest.raises(InvalidInputError, match=r"cue\.event is 'the flood'"):
        memory.recall(Cue(event="the flood"))  # type: ignore[arg-type]


def test_the_entity_of_a_cue_counts_as_if_the_words_named_it() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    for n in range(6):
        for who in ("ana", "bo"):
            memory.add(f"sold the horse number {n}", entity=who)
    for who in ("ana", "bo"):
        hits = memory.recall(Cue("who sold a horse?", entity=who), 4)
        assert {hit.entity for hit in hits} == {who}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_kept_with_a_store_and_holds_for_one_recall(
    preset: str, tmp_path: Path
) -> None:
    with Memory.open(tmp_path, embedder=LexicalEmbedder(), preset=preset) as made:
        made.add("the spare key is under the green pot", salience=0.8)
        told = made.recall("where is the spare key?")
        assert told[0].text.startswith("the spare key")
    with Memory.open(tmp_path, embedder=LexicalEmbedder()) as again:
        hit = again.recall("where is the spare key?")[0]
        assert [factor.name for factor in hit.factors] == [one.name for one in told[0].factors]
        once = again.recall("where is the spare key?", preset="default")
        if preset != "default":
            assert [one.name for one in once[0].factors] != [one.name for one in hit.factors]
    other = next(one for one in PRESETS if one != preset)
    with pytest.raises(SettingsMismatchError):
        Memory.open(tmp_path, embedder=LexicalEmbedder(), preset=other)


def test_a_preset_is_one_of_those_and_stands_alone() -> None:
    memory = flooded()
    with pytest.raises(InvalidInputError, match="preset is 'best': give 'default' or"):
        memory.recall("rain", preset="best")
    with pytest.raises(InvalidInputError, match="give one"):
        memory.recall("rain", preset="tcmf", pipeline=memory.learning.pipeline)


def test_ids_are_no_cue() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    ids = memory.add_many(["one", "two", "three"])
    cues: tuple[Any, ...] = (ids, ids.tolist(), Cue(vector=ids.astype(np.float32)))
    for cue in cues:
        with pytest.raises(InvalidVectorError, match=r"3 numbers, this memory's have 512.*no cue"):
            memory.recall(cue)
        with pytest.raises(InvalidVectorError, match="ids are no cue"):
            memory.context(cue)
