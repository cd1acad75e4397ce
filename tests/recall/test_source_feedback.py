"""A source whose advice keeps failing is left out of recall, said to be, and comes back."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cvx import Memory
from cvx.embed import LexicalEmbedder
from cvx.errors import DamagedStoreError
from cvx.learn.reputation import MOST_SOURCES, Reputation
from cvx.recall.visible_events import VisibleEvents
from cvx.scoring.feedback import FeedbackRanker

_CUE = "how do I restart the staging server?"


def _memory(path: Path | None = None) -> Memory:
    memory = (
        Memory(embedder=LexicalEmbedder())
        if path is None
        else Memory.open(path, embedder=LexicalEmbedder())
    )
    memory.add("Restart the staging server with make up in the ops folder.")
    memory.add("The staging server restarts every Friday at nine.", source="wiki")
    memory.add(
        "To restart the staging server run reset --all first.", source="forum", action="reset"
    )
    return memory


def _tell(
    memory: Memory, source: str, helped: bool, times: int, where: Mapping[str, Any] | None = None
) -> None:
    for _ in range(times):
        hits = memory.recall(_CUE, where=where)
        followed = [hit for hit in hits if hit.source == source]
        assert followed
        memory.feedback(hits, followed=followed, helped=helped)


def _sources(memory: Memory) -> list[str]:
    return sorted(hit.source for hit in memory.recall(_CUE))


@pytest.mark.requirement("B15")
def test_a_source_that_keeps_failing_is_left_out_named_and_comes_back() -> None:
    memory = _memory()
    _tell(memory, "", True, 8)
    assert _sources(memory) == ["", "forum", "wiki"]
    _tell(memory, "forum", False, 5)
    hits = memory.recall(_CUE)
    assert sorted(hit.source for hit in hits) == ["", "wiki"]
    assert "reset --all" not in memory.context(_CUE)
    told = "source 'forum' is left out: its advice helped 0 of 5 times"
    assert told in str(hits.trace)
    assert memory.admin.stats()["sources"] == {
        "": {
            "": {"helped": 8, "failed": 0, "left_out": False},
            "forum": {"helped": 0, "failed": 5, "left_out": True},
        }
    }
    named = memory.recall(_CUE, where={"source": "forum"})
    assert [hit.source for hit in named] == ["forum"]
    assert "left out" not in str(named.trace)
    _tell(memory, "forum", True, 6, where={"source": "forum"})
    assert _sources(memory) == ["", "forum", "wiki"]
    assert "left out" not in str(memory.recall(_CUE).trace)


@pytest.mark.requirement("B15")
def test_a_recall_while_a_source_is_out_is_filtered_and_lists_no_ids(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = _memory()
    for who, times in (("", 200), ("forum", 150)):
        memory.add_many(
            [
                {"text": f"The staging server of room {at} was restarted", "source": who}
                for at in range(times)
            ]
        )
    _tell(memory, "", True, 8)
    _tell(memory, "forum", False, 5, where={"source": ["forum", ""]})
    asked = list[Any]()
    plain = VisibleEvents.__init__

    def noted(self: VisibleEvents, *args: Any) -> None:
        plain(self, *args)
        asked.append(self.scope)

    monkeypatch.setattr(VisibleEvents, "__init__", noted)
    hits = memory.recall(_CUE, 40)
    assert asked[-1].wide.ids is None
    assert asked[-1].where.ids is not None
    named = memory.recall(_CUE, 40, where={"source": ["", "wiki"]})
    assert [hit.id for hit in hits] == [hit.id for hit in named]
    assert len(hits) == 40
    assert "forum" not in {hit.source for hit in hits}
    # Where most is left out, the rest is listed: the index would find little else.
    memory.add_many([{"text": f"Restart staging {at}", "source": "forum"} for at in range(60)])
    memory.recall(_CUE)
    assert asked[-1].wide.ids is not None


def test_it_holds_for_the_namespace_alone_survives_and_can_be_reset(tmp_path: Path) -> None:
    with _memory(tmp_path) as memory:
        memory.add("The staging server of Ana restarts by hand.", namespace="ana")
        _tell(memory, "", True, 8)
        past = memory.add("Nobody restarted anything today.").recorded
        assert past is not None
        _tell(memory, "forum", False, 5)
        assert "forum" not in _sources(memory)
    with Memory.open(tmp_path, embedder=LexicalEmbedder()) as memory:
        memory.add("Ana restarts the staging server with care.", namespace="ana", source="forum")
        assert "forum" not in _sources(memory)
        assert "forum" in [hit.source for hit in memory.within("ana").recall(_CUE)]
        assert "forum" in [hit.source for hit in memory.as_of(past).recall(_CUE)]
        memory.learning.reset("recall")
        assert "forum" not in _sources(memory)
        memory.learning.reset("sources")
        assert "forum" in _sources(memory)
        assert memory.admin.stats()["sources"] == {}


def test_nothing_of_a_source_stays_when_it_is_erased() -> None:
    memory = _memory()
    _tell(memory, "", True, 8)
    _tell(memory, "forum", False, 5)
    memory.erase(where={"source": "forum"})
    assert "forum" not in str(memory.admin.stats()["sources"])
    assert "forum" not in str(memory.recall(_CUE).trace)


@pytest.mark.parametrize(
    "odd",
    [
        {"x": 1},
        {"cases": {"forum": [0, "a"]}},
        {"cases": {"forum": [0, -9]}},
        {"cases": {"forum": 3}},
        {"cases": {"forum": [1e308, 1]}},
        {"found_false": [1, {}]},
    ],
)
@pytest.mark.parametrize("what", ["sources", "recall"])
def test_a_state_that_cannot_be_read_is_named_and_reset(what: str, odd: dict[str, object]) -> None:
    memory = _memory()
    with memory.record.transaction() as write:
        write.set_state(f"{what}:", odd)
    with pytest.raises(DamagedStoreError, match=rf"the state '{what}:' cannot be read"):
        memory.recall(_CUE)
    memory.learning.reset(what)
    assert len(memory.recall(_CUE)) == 3


@pytest.mark.parametrize(
    ("name", "odd"),
    [
        ("shipped", None),
        ("weights", ["a", "b"]),
        ("weights", [1.0]),
        ("precision", [[1.0, 0.0], [0.0, -1.0]]),
        ("precision", [1.0, 1.0]),
        ("waiting", [5]),
        ("waiting", [[["a"]]]),
        ("judged", [[10**400, 0]]),
    ],
)
def test_what_feedback_taught_is_named_where_one_field_cannot_be_read(name: str, odd: Any) -> None:
    memory = _memory()
    told = FeedbackRanker.beside({"one": 2.0, "two": 1.0}).to_dict()
    with memory.record.transaction() as write:
        write.set_state("recall:", {**told, name: odd})
    with pytest.raises(DamagedStoreError, match="the state 'recall:' cannot be read"):
        memory.recall(_CUE)


def test_advice_that_fails_in_episodes_leaves_its_source_out_of_recall() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    doors = ("red door", "blue door", "green door", "white door")

    def play(seen: str, action: str, reward: float, source: str = "") -> None:
        episode = memory.episode("get out", source=source)
        episode.act(action, reward=reward, observation=seen)
        episode.end()

    for door in doors * 3:
        play(door, "push", 0.5)
    for door in doors:
        play(door, "sign the paper", 100.0, "web")
    memory.add("At the red door sign the paper.", source="web")
    cue = "what to do at the red door?"
    assert "web" in [hit.source for hit in memory.recall(cue)]
    play("red door", "sign the paper", 0.0)
    play("blue door", "sign the paper", 0.0)
    hits = memory.recall(cue)
    assert hits
    assert "web" not in [hit.source for hit in hits]
    assert "source 'web' is left out: others found otherwise in episodes" in str(hits.trace)
    memory.learning.reset("sources")
    assert "web" in [hit.source for hit in memory.recall(cue)]
    play("green door", "push", 0.5)
    assert "web" in [hit.source for hit in memory.recall(cue)]


def test_what_is_followed_in_an_episode_counts_for_its_source() -> None:
    memory = _memory()
    _tell(memory, "", True, 8)
    for _ in range(5):
        with memory.episode("restart staging") as episode:
            assert "forum" in [hit.source for hit in episode.recall(_CUE)]
            episode.act("reset", observation="a shell")
            episode.end(0.0)
    assert "forum" not in _sources(memory)


@pytest.mark.requirement("B15")
def test_whoever_controls_the_feedback_of_one_source_silences_no_other() -> None:
    """Neither by failures beside others, nor by praise, nor by many names of its own."""
    memory = _memory()
    _tell(memory, "wiki", True, 4)
    _tell(memory, "wiki", False, 3)
    for at in range(60):
        hits = memory.recall(_CUE)
        both = [hit for hit in hits if hit.source in ("wiki", "forum")]
        planted = [hit for hit in hits if hit.source == "forum"]
        memory.feedback(hits, followed=both if at % 2 else planted, helped=not at % 2)
    assert _sources(memory) == ["", "forum", "wiki"]
    known = memory.admin.stats()["sources"][""]
    assert known["wiki"] == {"helped": 4, "failed": 3, "left_out": False}


def _simulated(seed: int, chance: float, own: float, times: int = 60) -> int | None:
    """After how many cases a source of such advice is left out, beside memories of one's own.

    It is looked at after every fourth.
    """
    draw, known = random.Random(seed), Reputation()
    for at in range(times):
        known.count({"web"}, helped=draw.random() < chance)
        known.count({""}, helped=draw.random() < own)
        if at % 4 == 3 and "web" in known.left_out():
            return at + 1
    return None


def test_an_honest_source_is_hardly_ever_left_out_and_a_false_one_soon() -> None:
    for chance in (0.8, 0.6, 0.4, 0.2):
        out = [_simulated(seed, chance, chance) is not None for seed in range(100)]
        assert sum(out) <= 0.02 * len(out)
    out_after = [_simulated(seed, 0.1, 0.7) or 99 for seed in range(50)]
    assert sum(after <= 20 for after in out_after) >= 0.9 * len(out_after)
    assert max(out_after) <= 60


@pytest.mark.requirement("B15")
def test_the_cases_of_a_thousand_sources_are_kept_those_left_out_first() -> None:
    known = Reputation()
    for _ in range(8):
        known.count([""], helped=True)
    for _ in range(6):
        known.count(["forum"], helped=False)
    for number in range(3 * MOST_SOURCES):
        known.count([f"page {number}"], helped=True)
    assert len(known.cases) == MOST_SOURCES
    assert [*known.left_out()] == ["forum"]
    assert known.cases[""] == [8, 0]
    assert f"page {3 * MOST_SOURCES - 1}" in known.cases
    again = Reputation.from_dict(json.loads(json.dumps(known.to_dict())))
    again.count(["one more"], helped=False)
    assert [*again.cases][-2:] == [f"page {3 * MOST_SOURCES - 1}", "one more"]
    assert len(json.dumps(again.to_dict())) < 50 * MOST_SOURCES
