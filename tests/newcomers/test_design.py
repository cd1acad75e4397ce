"""Every line of the public surface, written as a user would write it from its description."""

import asyncio
import inspect
import json
import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cvx
from cvx.errors import (
    CvxError,
    EpisodeEndedError,
    InvalidInputError,
    MissingExtraError,
    NamespaceError,
    NotLoggedError,
    ReadOnlyError,
    SettingsMismatchError,
    StaleRegionsError,
    StoreError,
    UnknownError,
)

pytestmark = pytest.mark.requirement("B20")
NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def keywords(verb: object) -> set[str]:
    parameters = inspect.signature(verb).parameters  # type: ignore[arg-type]
    return {name for name, one in parameters.items() if one.kind is one.KEYWORD_ONLY}


def test_opening_takes_what_the_store_keeps(tmp_path: Path) -> None:
    assert keywords(cvx.Memory.open) == {
        "embedder", "dim", "metric", "clock", "preset", "tokenizer", "seed", "create", "read_only",
    }  # fmt: skip
    with pytest.raises(StoreError):
        cvx.Memory.open(tmp_path / "none", embedder="lexical", create=False)
    with cvx.Memory.open(
        tmp_path, embedder="lexical", metric="cosine", clock="turns", preset="tcmf", seed=3
    ) as memory:
        memory.add("hello")
    with cvx.Memory.open(tmp_path, read_only=True) as reader, pytest.raises(ReadOnlyError):
        reader.add("no")
    for other in ({"clock": "utc"}, {"preset": "default"}, {"metric": "l2"}, {"dim": 3}):
        with pytest.raises(SettingsMismatchError):
            cvx.Memory.open(tmp_path, **other)
    own = cvx.Memory(dim=2)
    own.add("here", vector=np.array([0.0, 1.0], dtype=np.float32))
    assert (own.metric, own.recall(np.array([0.0, 1.0]))[0].text) == ("l2", "here")


def test_writing_updating_linking_forgetting_and_erasing() -> None:
    memory = cvx.Memory(embedder="lexical")
    home = memory.add(
        "Ana lives in Lyon", entity="ana", timestamp=NOON, kind="fact", tags=["home"],
        metadata={"topic": "home", "turn": 5}, key="home", aliases=["Ana's town"], reward=0.5,
        source="chat", trust=0.8, salience=0.9, visibility="public", namespace="ana",
    )  # fmt: skip
    moved = memory.add("Ana lives in Porto", key="home", source="chat", namespace="ana")
    assert (moved.id, moved.version, moved.history[0].text) == (home.id, 2, "Ana lives in Lyon")
    changed = memory.update(
        moved, text="Ana lives in Faro", tags=["town"], metadata={"turn": None}, salience=0.1,
        trust=0.9, state="active", namespace="ana",
    )  # fmt: skip
    assert (changed.tags, dict(changed.metadata)) == (("town",), {"topic": "home"})
    ids = memory.add_many(
        [
            cvx.Event("a storm", timestamp=NOON),
            {"text": "a flood", "timestamp": NOON + timedelta(hours=1)},
            cvx.Episode("dry the cellar", reward=1.0, steps=(cvx.Event("wet", action="pump"),)),
        ],
        namespace="log",
    )
    assert ids.dtype == np.int64
    storm, flood, _ = ids
    edge = memory.link(storm, flood, "caused", why="the river rose", weight=0.9, namespace="log")
    told = (edge.cause, edge.effect, edge.kind, edge.weight, edge.why, edge.state, edge.evidence)
    assert told == (storm, flood, "caused", 0.9, "the river rose", "stated", "")
    assert edge.probability is None
    assert memory.forget(where={"kind": "fact"}, namespace="ana", dry_run=True) == [home.id]
    assert memory.forget(changed) == [home.id]
    assert memory.update(home.id, state="active").state == "active"
    assert memory.erase(where={"kind": "fact"}, namespace="ana") == [home.id]
    for nothing in (memory.forget, memory.erase):
        with pytest.raises(InvalidInputError):
            nothing()
    with pytest.raises(UnknownError):
        memory.get(home)


def test_filters_narrow_every_read() -> None:
    memory = cvx.Memory(embedder="lexical")
    for turn in range(8):
        memory.add(
            f"the drain was seen {turn} times", entity="ana" if turn % 2 else "bo",
            timestamp=NOON + timedelta(days=turn), kind="note", tags=["a", "b"][: turn % 3],
            metadata={"turn": turn}, reward=turn / 10, trust=turn / 10, source="web",
        )  # fmt: skip
    where = cvx.Filter(
        kind="note", tags=["a"], entities=["ana", "bo"], source=["web"],
        metadata={"turn": {"gte": 2, "lt": 7, "ne": 4}}, since=NOON + timedelta(days=1),
        until=NOON + timedelta(days=7), ids=[2, 3, 6], namespaces="", min_reward=0.1,
        max_reward=0.9, min_trust=0.1, outcome="any",
    )  # fmt: skip
    assert [event.id for event in memory.events(where)] == [3, 6]
    either: list[dict[str, Any]] = [{"ids": 1}, {"metadata": {"turn": {"in": [3], "exists": True}}}]
    newest = memory.events(either, newest=True, limit=5, namespace="")
    assert [event.id for event in newest] == [4, 1]
    assert {hit.id for hit in memory.recall("the drain", 10, where=either)} == {1, 4}
    assert len(memory.frames.events(where)) == 2


def test_recall_context_feedback_and_what_comes_back() -> None:
    memory = cvx.Memory(embedder="lexical")
    key = memory.add("the spare key is under the green pot", entity="ana", key="key")
    memory.add("the party was on Friday")
    assert memory.get(key="key") == memory.get(key) == key
    cue = cvx.Cue(
        "where is the key?", goal="get in", step="at the door", questions=("is it locked?",),
        entity="ana", timestamp=NOON,
    )  # fmt: skip
    hits = memory.recall(cue, 3, where=None, min_relevance=0.0, preset="default", namespace="")
    hit = hits[0]
    assert hit.event == key
    assert (hit["score"], hit["node_id"], hit.text) == (hit.score, hit.node_id, key.text)
    assert 0.0 <= (hit.relevance or 0.0) <= 1.0
    assert "score" in hit.explain()
    assert json.loads(json.dumps(dict(hit)))["text"] == key.text
    assert {"distance", "factors", "path", "relevance"} <= {*dict(hit)}
    assert pickle.loads(pickle.dumps(hits)) == hits
    assert isinstance(hits.decision, int)
    assert hits.trace.candidates >= len(hits)
    silent = memory.recall("quantum zebras of Betelgeuse")
    assert (silent == [] and silent.nearest != []) or silent[0].score < hit.score
    block = memory.context(
        "the key", 300, k=2, where=None, min_relevance=None, preset=None, namespace=""
    )
    assert isinstance(block, str)
    assert key.text in block
    assert block.hits[0].event == key
    assert 0 < block.used_tokens <= 300
    memory.feedback(block, helped=[key], outcome=1.0, namespace="")
    memory.feedback(hits.decision, helped=True, outcome=0.9)
    assert memory.learning.attribution(block).outcome == 1.0
    for name in (
        "id", "text", "entity", "timestamp", "recorded", "kind", "tags", "metadata", "key",
        "version", "history", "source", "trust", "salience", "reward", "namespace", "state",
    ):  # fmt: skip
        assert hasattr(key, name)


def test_causes_stories_and_their_states(tmp_path: Path) -> None:
    memory = cvx.Memory(embedder="lexical")
    rain = memory.add("It rained all night.", timestamp=NOON)
    flood = memory.add("The cellar flooded.", timestamp=NOON + timedelta(hours=2))
    mould = memory.add("Mould grew in the cellar.", timestamp=NOON + timedelta(days=9))
    memory.link(rain, flood, why="the drain is too small")
    proposed = memory.causes.propose(mould, 5, judge=None, draw=None)
    assert all(edge.state == "candidate" for edge in proposed)
    candidate = proposed[0] if proposed else memory.causes.observe(flood, mould, supports=3)
    assert memory.causes.confirm(candidate, why="seen").state == "confirmed"
    assert memory.causes.reject(candidate, why="no").state == "rejected"
    assert memory.causes.pending("rejected")
    story = memory.why("the flooded cellar", max_depth=6, namespace="")
    assert (story.of, [*story]) == (flood, [rain])
    assert story.edges[0].why in str(story)
    story.draw(tmp_path / "story.png")
    assert story.frame().height > 0
    assert next(iter(memory.consequences(rain))) == flood
    assert memory.causes.story(flood, before=5, after=2)
    memory.causes.reflect()
    assert rain.id in memory.causes.graph()


def test_namespaces_the_past_and_the_clock() -> None:
    memory = cvx.Memory(embedder="lexical")
    ana, bo = memory.within("ana"), memory.within("bo", also=["ana"])
    secret = ana.add("the code is 1234")
    shared = ana.add("the door is green", visibility="shared")
    assert [hit.id for hit in bo.recall("the door or the code")] == [shared.id]
    with pytest.raises(NamespaceError):
        ana.recall("door", namespace="bo")
    with pytest.raises(NamespaceError):
        _ = ana.admin
    with pytest.raises(UnknownError):
        bo.get(secret)
    past = memory.as_of(secret.recorded)  # type: ignore[arg-type]
    assert len(past) == 1
    with pytest.raises(ReadOnlyError):
        past.add("late")
    assert len(memory.as_of(datetime.now(UTC))) == 2


def test_episodes_advice_and_learning() -> None:
    memory = cvx.Memory(embedder="lexical")
    for way in ("left", "right", "right"):
        with memory.episode(
            "find the hat", task="hats", entity="ana", kind="experience", source="game", trust=0.9,
            visibility="private", namespace="",
        ) as episode:  # fmt: skip
            advice = episode.advise("a hall", ["left", "right"], k=3, budget_tokens=500)
            event = episode.act(
                way, reward=0.0, observation="a hall", followed=way == "right", timestamp=None
            )
            assert event.action == way
            assert isinstance(episode.context("the hat", 200), str)
            assert isinstance(episode.recall("the hat", 5), list)
            episode.end(1.0 if way == "right" else 0.0)
    with pytest.raises(EpisodeEndedError):
        episode.act("left")
    run = memory.episode("find the hat", task="hats")
    advice = run.advise("a hall")
    assert (advice.best.action, advice.unit, advice.known) == ("right", "P(success)", True)
    assert advice.best.low <= advice.best.value <= advice.best.high
    assert advice.choose(explore=False) == advice.best
    assert "right" in str(advice)
    assert isinstance(advice.decision, int)
    with pytest.raises(InvalidInputError):
        run.advise("a hall", [])
    run.discard()
    assert memory.learning.calibration("advice") is not None
    assert memory.learning.mdp is not None
    assert memory.learning.usage is not None
    assert memory.learning.decay is not None or memory.learning.decay is None
    memory.learning.reset("recall")
    with pytest.raises(NotLoggedError):
        memory.learning.off_policy({"dense": 1.0})
    memory.learning.sampling = 0.2
    assert memory.learning.sampling == 0.2


def test_the_store_is_looked_after(tmp_path: Path) -> None:
    memory = cvx.Memory.open(tmp_path / "m", embedder="lexical")
    with memory.admin.transaction():
        memory.add_many([{"text": f"line {n}", "source": "web"} for n in range(5)])
    assert memory.admin.quarantine(source="web", where={"ids": [1, 2]}, dry_run=False) == [1, 2]
    assert memory.admin.release(where={"ids": 1}) == [1]
    assert memory.admin.trust("web", 0.5)
    assert memory.admin.roll_back("web")
    assert memory.admin.stats()["events"] == 5
    assert memory.admin.check() == []
    memory.admin.compact()
    assert memory.admin.snapshot()
    memory.admin.budget(events=3, dry_run=True)
    memory.admin.export(tmp_path / "all.jsonl")
    other = cvx.Memory(embedder="lexical")
    other.admin.import_(tmp_path / "all.jsonl")
    assert len(other.frames.events(state=None)) == 5
    assert other.admin.reembed(cvx.LexicalEmbedder(32)) == 5
    for frame in (memory.frames.links(), memory.frames.episodes(), memory.frames.decisions()):
        assert frame.height == 0
    memory.close()


def test_the_same_verbs_can_be_awaited() -> None:
    async def program() -> str:
        with cvx.Memory(embedder="lexical") as memory:
            await memory.aio.add("the spare key is under the green pot")
            hits = await memory.aio.recall("where is the key?")
            return str(hits[0].text)

    assert asyncio.run(program()).startswith("the spare key")
    verbs = {name for name in dir(cvx.Memory) if not name.startswith("_")}
    assert {"within", "as_of", "record", "index"} <= verbs


def test_errors_are_python_s_own_too() -> None:
    for error, plain in {
        InvalidInputError: ValueError, UnknownError: KeyError, NamespaceError: PermissionError,
        SettingsMismatchError: ValueError, StoreError: OSError, ReadOnlyError: RuntimeError,
        EpisodeEndedError: RuntimeError, NotLoggedError: RuntimeError,
        StaleRegionsError: RuntimeError, MissingExtraError: ImportError,
    }.items():  # fmt: skip
        assert issubclass(error, plain)
        assert issubclass(error, CvxError)
