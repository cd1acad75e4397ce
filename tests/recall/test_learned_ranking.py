"""Recall that learns from feedback, and does not from feedback that misleads."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError
from cvx.memory import Memory
from cvx.memory.settings import NAME
from cvx.recall.trace import Hits
from cvx.scoring.feedback import EVERY, FeedbackRanker

TOPICS = (
    *("kite", "boat", "horse", "clock", "lamp", "piano", "bridge", "garden", "mirror", "ladder"),
    *("bottle", "candle", "window", "basket", "hammer", "pillow", "ribbon", "saddle", "teapot"),
    *("violin", "wagon", "anchor", "barrel", "feather"),
)

STATE = f"{NAME}:"


def filled(memory: Memory) -> Memory:
    """Of each topic a statement and a question; the shipped weights put the statement first."""
    for number, topic in enumerate(TOPICS):
        memory.add(f"The {topic} belongs to my sister now.", timestamp=10 * number + 1)
        memory.add(f"The {topic} belongs to my sister now, no?", timestamp=10 * number + 2)
    return memory


def asks(hits: Hits) -> Iterable[int]:
    return [
        hit.id for hit in hits if "?" in hit.text and hits.trace.cue.split()[-1][:-1] in hit.text
    ]


def says(hits: Hits) -> Iterable[int]:
    return [hit.id for hit in hits if hit.id not in set(asks(hits))]


def fed(memory: Memory, wanted: Callable[[Hits], Iterable[int]], rounds: int = 2) -> None:
    for topic in TOPICS * rounds:
        hits = memory.recall(f"Who owns the {topic}?")
        memory.feedback(hits, helped=wanted(hits))


def first(memory: Memory, topic: str) -> str:
    return str(memory.recall(f"Who owns the {topic}?")[0].text)


@pytest.fixture(params=["ram", "folder"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    made = (
        Memory(embedder=LexicalEmbedder())
        if request.param == "ram"
        else Memory.open(tmp_path / "m", embedder="lexical")
    )
    with filled(made) as memory:
        yield memory


@pytest.mark.requirement("B12")
def test_what_helped_changes_the_next_recall_and_is_told_as_a_factor(memory: Memory) -> None:
    assert "?" not in first(memory, "kite")
    fed(memory, asks)
    assert "?" in first(memory, "kite")
    hits = memory.recall("Who owns the kite?")
    factors = {factor.name: factor for factor in hits[0].factors}
    assert factors["feedback"].value > 0
    assert sum(factor[3] for factor in hits[0].factors) == pytest.approx(hits[0].score)
    assert "feedback" in hits[0].explain(hits.trace)
    # Of this namespace alone; and gone when it is taken back.
    other = memory.within("bob")
    other.add("The kite belongs to my sister now.")
    other.add("The kite belongs to my sister now, no?")
    assert "?" not in first(other, "kite")
    memory.learning.reset("recall")
    assert "?" not in first(memory, "kite")
    with pytest.raises(InvalidInputError, match="what is 'everything'"):
        memory.learning.reset("everything")


@pytest.mark.requirement("B12")
def test_what_was_learned_is_kept_with_the_store_and_seen_by_others(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder="lexical") as mine:
        filled(mine)
        with Memory.open(tmp_path / "m") as other:
            assert "?" not in first(other, "kite")
            fed(mine, asks)
            assert "?" in first(other, "kite")
    with Memory.open(tmp_path / "m") as memory:
        assert "?" in first(memory, "kite")


@pytest.mark.requirement("B12")
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_feedback_that_contradicts_the_ranking_changes_nothing(share: float) -> None:
    memory = filled(Memory(embedder=LexicalEmbedder()))
    before = [[hit.id for hit in memory.recall(f"Who owns the {topic}?")] for topic in TOPICS]
    random = np.random.default_rng(0)
    fed(memory, lambda hits: [hit.id for hit in hits[-3:]] if random.random() < share else [])
    after = [[hit.id for hit in memory.recall(f"Who owns the {topic}?")] for topic in TOPICS]
    assert after == before


@pytest.mark.requirement("B12")
def test_what_helped_comes_first_when_the_question_is_asked_again_in_like_words(
    memory: Memory,
) -> None:
    asked = [f"Who owns the {topic}?" for topic in TOPICS]
    before = [[hit.id for hit in memory.recall(cue)] for cue in asked]
    hits = memory.recall("Who owns the kite?")
    memory.feedback(hits, helped=[hits[1]])
    again = memory.recall("So who owns that kite then?")
    assert again[0].id == hits[1].id
    assert "feedback" in [factor.name for factor in again[0].factors]
    # Other questions stay as they were; nothing came of what was asked and said nothing of.
    assert [[hit.id for hit in memory.recall(cue)] for cue in asked[1:]] == before[1:]
    memory.admin.quarantine(where={"ids": [hits[1].id]})
    assert memory.recall("Who owns the kite?")[0].id == before[0][0]
    assert "feedback" not in memory.recall("Who owns the kite?")[0].explain()
    memory.admin.release(where={"ids": [hits[1].id]})
    assert memory.recall("Who owns the kite?")[0].id == hits[1].id
    memory.learning.reset("recall")
    assert [hit.id for hit in memory.recall("Who owns the kite?")] == before[0]


@pytest.mark.requirement("B12")
def test_what_a_memory_in_quarantine_taught_of_all_questions_is_taken_back(memory: Memory) -> None:
    fed(memory, asks)
    other = "the umbrella"
    for text in (f"Well {other} belongs to my sister now.", f"Well {other} is whose, my sister?"):
        memory.add(text)
    assert "feedback" in memory.recall(f"Who owns {other}?")[0].explain()
    hit = memory.recall("Who owns the kite?")[0]
    memory.admin.quarantine(where={"ids": [hit.id]})
    assert "feedback" not in memory.recall(f"Who owns {other}?")[0].explain()
    # It goes on learning, and nothing is lost: what was taught before comes back with the memory.
    hits = memory.recall("Who owns the boat?")
    memory.feedback(hits, helped=[hits[1]])
    assert memory.recall("Who owns the boat?")[0].id == hits[1].id
    assert "feedback" not in memory.recall(f"Who owns {other}?")[0].explain()
    memory.admin.release(where={"ids": [hit.id]})
    assert "feedback" in memory.recall(f"Who owns {other}?")[0].explain()


@pytest.mark.requirement("B12")
def test_what_helped_elsewhere_stays_known_while_a_memory_that_helped_is_in_quarantine(
    memory: Memory,
) -> None:
    kite, boat = (memory.recall(f"Who owns the {topic}?") for topic in ("kite", "boat"))
    memory.feedback(kite, helped=[kite[1]])
    memory.feedback(boat, helped=[boat[1]])
    memory.admin.quarantine(where={"ids": [kite[1].id]})
    assert memory.recall("Who owns the kite?")[0].id == kite[0].id
    assert memory.recall("Who owns the boat?")[0].id == boat[1].id


@pytest.mark.requirement("B12")
def test_who_contradicts_the_ranking_is_not_followed_when_asking_again() -> None:
    memory = filled(Memory(embedder=LexicalEmbedder()))
    before = [[hit.id for hit in memory.recall(f"Who owns the {topic}?")] for topic in TOPICS]
    fed(memory, lambda hits: [hits[-1].id])
    after = [[hit.id for hit in memory.recall(f"Who owns the {topic}?")] for topic in TOPICS]
    assert after == before


@pytest.mark.requirement("B12")
def test_nothing_known_and_nothing_helped_teach_nothing(memory: Memory) -> None:
    shipped = [hit.score for hit in memory.recall("Who owns the kite?")]
    for topic in TOPICS:
        hits = memory.recall(f"Who owns the {topic}?")
        memory.feedback(hits)
        memory.feedback(hits, helped=[])
    assert [hit.score for hit in memory.recall("Who owns the kite?")] == shipped


@pytest.mark.requirement("B12")
def test_a_later_word_teaches_in_place_of_the_earlier_one(memory: Memory) -> None:
    hits = memory.recall("Who owns the kite?")
    memory.feedback(hits, helped=[hits[1]])
    assert memory.recall("Who owns the kite?")[0].id == hits[1].id
    memory.feedback(hits, helped=[hits[0]])
    assert memory.recall("Who owns the kite?")[0].id == hits[0].id
    # As if only that had been said, once, however often it is.
    other = filled(Memory(embedder=LexicalEmbedder()))
    once = other.recall("Who owns the kite?")
    other.feedback(once, helped=[once[0]])
    memory.feedback(hits, helped=[hits[0]])
    assert memory.record.state(STATE) == other.record.state(STATE)
    memory.feedback(hits, helped=[hits[1]])
    memory.feedback(hits, helped=False)
    assert memory.recall("Who owns the kite?")[0].id == hits[0].id


@pytest.mark.requirement("B12")
def test_weights_that_learned_from_a_list_do_not_learn_from_it_again(memory: Memory) -> None:
    told = [memory.recall(f"Who owns the {topic}?") for topic in TOPICS[:5]]
    for hits in told:
        memory.feedback(hits, helped=[hits[1]])
    learned = memory.record.state(STATE)
    for _ in range(5):
        memory.feedback(told[0], helped=[told[0][2]])
        memory.feedback(told[0], helped=[told[0][1]])
    again = memory.record.state(STATE)
    assert learned is not None
    assert again is not None
    assert learned["waiting"] == again["waiting"] == []
    assert learned["weights"] == again["weights"]


@pytest.mark.requirement("B12")
def test_feedback_is_about_what_was_shown(memory: Memory) -> None:
    hits = memory.recall("Who owns the kite?", 1)
    strange = memory.recall("Who owns the piano?", 1)[0]
    with pytest.raises(InvalidInputError, match="did not show it"):
        memory.feedback(hits, helped=[strange])
    with pytest.raises(InvalidInputError, match="give one of them"):
        memory.feedback(hits, helped=hits, followed=hits)
    with pytest.raises(InvalidInputError, match="helped is 'kite': give True, False, or a list"):
        memory.feedback(hits, helped="kite")  # type: ignore[arg-type]
    assert isinstance(hits.decision, int)
    memory.feedback(hits.decision, helped=hits)
    block = memory.context("Who owns the kite?", 100)
    memory.feedback(block, helped=block.hits[:1])
    told = memory.learning.attribution(hits.decision)
    assert told.followed == (hits[0].id,)


def simulated(ranker: FeedbackRanker, lists: int, flip: Callable[[int], bool]) -> list[bool]:
    """Lists of ten in which the second column counts more than the shipped weights say."""
    random, trusted = np.random.default_rng(3), []
    for number in range(lists):
        rows = random.random((10, 2))
        good = rows @ [4.0, 6.0] + random.logistic(size=10) > 6.5
        if flip(number):
            good = ~good
        ranker.learn(rows[good], rows[~good], random.random((20, 2)) * 0.5)
        trusted.append(ranker.trusted)
    return trusted


@pytest.mark.requirement("B12")
def test_trust_needs_agreement_and_ends_with_it() -> None:
    shipped = {"one": 4.0, "other": 1.0}
    honest = FeedbackRanker.beside(shipped)
    trusted = simulated(honest, 120, lambda _: False)
    assert not any(trusted[: 2 * EVERY])
    assert all(trusted[60:])
    (one, other), (was, had) = honest.weights, honest.shipped
    assert other / one > 2.0 * had / was
    assert not any(simulated(FeedbackRanker.beside(shipped), 120, lambda _: True))
    turned = simulated(FeedbackRanker.beside(shipped), 160, lambda number: number >= 80)
    assert turned[79]
    assert not any(turned[105:])


def test_a_learned_ranking_is_kept_as_json_can_hold_it() -> None:
    ranker = FeedbackRanker.beside({"one": 4.0, "other": 1.0})
    simulated(ranker, 13, lambda _: False)
    columns = {"one": np.array([0.2, 1.0]), "other": np.array([1.0, np.nan])}
    good, bad, unseen = np.ones((3, 1, 2))
    ranker.learn(good, bad, unseen, words=["kite"], helped=[7])
    again = FeedbackRanker.from_dict(json.loads(json.dumps(ranker.to_dict())))
    told = [one.offsets(columns, ["kite"], np.array([7, 8])).tolist() for one in (again, ranker)]
    assert told[0] == told[1]
    assert told[0][0] > told[0][1]
    assert again.helped == [7]
    assert (again.trusted, again.fits({"one": 8.0, "other": 2.0})) == (ranker.trusted, True)
    assert not again.fits({"one": 4.0, "another": 1.0})


def test_what_a_foreign_store_says_of_earlier_questions_is_read_or_passed_over() -> None:
    told = FeedbackRanker.beside({"one": 1.0}).to_dict()
    told["asked"] = [[["kite"], []], [["kite", ["boat"]], [7]], [[], [8]]]
    ranker = FeedbackRanker.from_dict(told)
    columns, events = {"one": np.zeros(2)}, np.array([7, 8])
    assert ranker.offsets(columns, ["kite"], events).tolist() == [2.0, 0.0]
    assert ranker.offsets(columns, [], events).tolist() == [0.0, 0.0]
    del told["asked"], told["helped"]
    assert FeedbackRanker.from_dict(told).asked == []


def test_the_memories_that_helped_are_kept_up_to_a_bound_the_latest_last() -> None:
    ranker = FeedbackRanker.beside({"one": 4.0, "other": 1.0})
    good, bad, unseen = np.ones((3, 1, 2))
    for helped in ([7, 8], range(100, 10_098), [7], [9]):
        ranker.learn(good, bad, unseen, helped=[*helped])
    assert len(ranker.helped) == 10_000
    assert ranker.helped[:2] == [100, 101]
    assert ranker.helped[-2:] == [7, 9]
    assert FeedbackRanker.from_dict(ranker.to_dict()).helped == ranker.helped


@pytest.mark.requirement("B12")
def test_weights_learn_from_a_list_once_though_it_was_said_to_be_no_help_between() -> None:
    with filled(Memory(embedder=LexicalEmbedder())) as memory:
        shown = memory.recall("Who owns the kite?", 3)
        memory.feedback(shown, helped=[shown[0]])
        for _ in range(EVERY - 1):
            hits = memory.recall("Who owns the kite?", 3)
            memory.feedback(hits, helped=[hits[0]])
        assert (memory.record.state(STATE) or {})["waiting"] == []
        memory.feedback(shown, helped=False)
        memory.feedback(shown, helped=[shown[0]])
        assert (memory.record.state(STATE) or {})["waiting"] == []
        # What the weights learned of it can be taken back still, by a quarantine.
        memory.feedback(shown, helped=False)
        assert shown[0].id in (memory.record.state(STATE) or {})["helped"]
