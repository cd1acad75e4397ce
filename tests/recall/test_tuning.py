"""How a memory recalls is a setting of its store, and outlives the process that chose it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cvx.errors import InvalidInputError, PipelineNotKeptWarning
from cvx.memory import Memory
from cvx.recall import Floor, Pipeline, Weighting, by_rank
from cvx.recall.context import Serving
from cvx.recall.floor import Answerable, RescaledFloor
from cvx.recall.presets import composite, default_pipeline, posterior, stream, with_recency
from cvx.recall.sources import Dense, Graph
from cvx.scoring.formulas import Decay
from cvx.scoring.off_policy import PlackettLuce
from cvx.types import Cue, Hit
from tests.recall.rooms import Axes, at, axis

FLOOR = Answerable((1.0, 1.0, 1.0, 1.0), -99.0, 0.5)
DAY = 86_400_000_000
PIPELINES: dict[str, Callable[[], Pipeline]] = {
    "composite": lambda: composite((0.3, 0.1, 0.6), floor=0.2),
    "stream": stream,
    "posterior": lambda: posterior(level=0, log_product=True),
    "attentive": lambda: default_pipeline({"dense": 2.0, "bm25": 2.0}),
    "plain": lambda: Pipeline(
        sources={"dense": Dense(7), "graph": Graph({"caused": 0.5}), "recent": None},
        fusion=by_rank(constant=20.0),
        weighting=Weighting({"dense": 1.0, "recent": 0.5}, trust=False),
        floor=Floor(similarity=None, score=-1.0),
        timeout_s=60.0,
        serving=Serving(sampling=PlackettLuce(3), refresh="used"),
    ),
    "recency": lambda: with_recency(stream(), Decay.of_half_life(50), 0.5),
}


def opened(tmp_path: Path) -> Memory:
    return Memory.open(tmp_path / "m", embedder=Axes())


def told(memory: Memory) -> list[tuple[object, ...]]:
    """What a recall says of three events."""
    cue = Cue(text="x one", vector=axis("x"), timestamp=14 * DAY)
    plan = memory.learning.pipeline
    plan = replace(plan, serving=replace(plan.serving, refresh="never"))
    return [(hit.node, hit.score, hit.factors) for hit in memory.recall(cue, 3, pipeline=plan)]


@pytest.mark.requirement("R6")
@pytest.mark.parametrize("name", PIPELINES)
def test_the_pipeline_that_was_set_is_that_of_the_store_opened_again(
    tmp_path: Path, name: str
) -> None:
    with opened(tmp_path) as memory:
        for n in range(3):
            memory.add(f"x {n}", vector=at(0.9 - n / 5), timestamp=n * DAY, salience=n / 2)
        memory.link(1, 3)
        default = told(memory)
        memory.learning.pipeline = made = PIPELINES[name]()
        expected = told(memory)
        assert expected != default
    with opened(tmp_path) as memory:
        kept = memory.learning.pipeline
        plain = ("reach", "follow", "weighting", "floor", "timeout_s", "serving", "reader")
        assert [getattr(kept, part) for part in plain] == [getattr(made, part) for part in plain]
        assert dict(kept.sources) == dict(made.sources)
        assert told(memory) == expected


@pytest.mark.requirement("R6")
def test_what_one_process_sets_or_tunes_another_recalls_with_at_once(tmp_path: Path) -> None:
    mine, other = opened(tmp_path), opened(tmp_path)
    before = other.learning.pipeline
    mine.learning.pipeline = replace(before, timeout_s=60.0)
    assert other.learning.pipeline.timeout_s == 60.0
    other.learning.recall_with({"dense": 2.0, "bm25": 2.0})
    assert dict(mine.learning.pipeline.weighting.weights) == {"dense": 0.5, "bm25": 0.5}
    mine.learning.recall_with()
    assert other.learning.pipeline.weighting == before.weighting
    mine.close()
    other.close()


def test_a_floor_is_kept_for_the_embedder_it_was_calibrated_with(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.learning.pipeline = default_pipeline(answerable=FLOOR)
        assert memory.learning.pipeline.floor.answerable == FLOOR
    with opened(tmp_path) as memory:
        assert memory.learning.pipeline.floor.answerable == FLOOR
        with memory.record.transaction() as write:
            write.set_meta("embedder", "another")
            write.journal("erase", [])  # As a move to another embedder does.
        renewed = memory.learning.pipeline
        assert renewed.floor.answerable == RescaledFloor()


def mine(*given: object) -> list[Hit]:
    return []


@pytest.mark.parametrize(
    ("part", "named"),
    [
        ({"reader": mine}, "reader"),
        ({"sources": {"mine": mine}}, r"sources\['mine'\]"),
        ({"signals": (mine,)}, r"signals\[0\]"),
        ({"timeout_s": float("nan")}, "timeout_s"),
    ],
)
def test_a_part_that_no_store_can_keep_is_said_and_holds_until_closed(
    tmp_path: Path, part: dict[str, object], named: str
) -> None:
    own = replace(composite(), **part)  # type: ignore[arg-type]
    with opened(tmp_path) as memory:
        memory.learning.pipeline = stream()
        with pytest.warns(PipelineNotKeptWarning, match=named):
            memory.learning.pipeline = own
        assert memory.learning.pipeline is own
    with opened(tmp_path) as memory:
        assert memory.learning.pipeline.weighting == stream().weighting
    # In RAM, and where nothing is written, it was never to be kept.
    with Memory(embedder=Axes()) as memory:
        memory.learning.pipeline = own
    with Memory.open(tmp_path / "m", embedder=Axes(), read_only=True) as memory:
        memory.learning.pipeline = composite()
        assert memory.learning.pipeline.weighting == composite().weighting
    with opened(tmp_path) as memory:
        assert memory.learning.pipeline.weighting == stream().weighting


@pytest.mark.parametrize(
    "stored",
    [
        {"name": "system", "with": {}},
        {"name": "Dense", "with": {"pool": 3}},
        {"name": "Pipeline", "with": {"unheard_of": 1}},
        {"name": "Weighting"},
        [1, 2],
    ],
)
def test_a_pipeline_that_cannot_be_read_is_refused_by_name_and_can_be_replaced(
    tmp_path: Path, stored: object
) -> None:
    with opened(tmp_path) as memory:
        memory.add("x one")
        with memory.record.transaction() as write:
            write.set_state("recall", {"pipeline": json.loads(json.dumps(stored)), "embedder": ""})
        with pytest.raises(InvalidInputError, match=r"set memory\.learning\.pipeline, or tune"):
            memory.recall("x")
        memory.learning.recall_with()
        assert len(memory.recall("x")) == 1
