"""What a user sees: few names, reprs that tell, pages without markup of others."""

import copy
import inspect
import pickle
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import cvx
from cvx import Cue, Episode, Event, Filter, Hit, LexicalEmbedder, Memory
from cvx.councils import MemoryStream
from cvx.embed import CachedEmbedder, EncoderEmbedder, Prefixed
from cvx.errors import InvalidInputError, InvalidVectorError
from cvx.types import Edge

pytestmark = pytest.mark.requirement("B20")
EVIL = "<img src=x onerror=alert(1)>"


def test_the_package_shows_at_most_twenty_names_and_has_them_all() -> None:
    assert len(cvx.__all__) <= 20
    for name in cvx.__all__:
        assert getattr(cvx, name).__doc__, name


def test_a_memory_has_at_most_twenty_methods_in_the_order_of_the_design() -> None:
    own = [n for n, one in vars(Memory).items() if (not n.startswith("_") and callable(one))
           or (isinstance(one, classmethod) and not n.startswith("_"))]  # fmt: skip
    designed = [
        "open", "add", "add_many", "update", "link", "forget", "erase", "get", "events", "recall",
        "context", "why", "consequences", "feedback", "within", "as_of", "close", "episode",
    ]  # fmt: skip
    assert own == designed
    assert all(inspect.getdoc(getattr(Memory, name)) for name in own)


@pytest.mark.parametrize(
    ("thing", "told"),
    [
        (Event("rain", entity="ana", timestamp=3), "Event(text='rain', entity='ana', timestamp=3)"),
        (Cue(text="rain?"), "Cue(text='rain?')"),
        (Edge(1, 2, "caused"), "Edge(cause=1, effect=2)"),
        (Filter(kind="note", since=3), "Filter(since=3, kind='note')"),
        (Episode(goal="tea"), "Episode(goal='tea')"),
        (
            Hit(1, 0.5, 0.5, 0.5, 7, 3),
            "Hit(node=1, distance=0.5, score=0.5, similarity=0.5, entity_id=7, timestamp=3)",
        ),
    ],
)
def test_a_repr_shows_what_is_not_as_by_default(thing: object, told: str) -> None:
    assert repr(thing) == told


def test_a_part_says_what_it_is_part_of(tmp_path: Path) -> None:
    memory = Memory(embedder=LexicalEmbedder(8))
    cached = CachedEmbedder(
        Prefixed(LexicalEmbedder(8), query="q: ", document=""), tmp_path / "vectors"
    )
    assert repr(memory.causes) == "<causes of a memory in RAM>"
    assert repr(cached).startswith("<CachedEmbedder of <Prefixed of <LexicalEmbedder cvx-lexical")
    encoder = SimpleNamespace(encode=lambda texts: np.ones((len(texts), 2)))
    parts = [memory.learning, memory.frames, memory.admin, memory.aio]
    for thing in (*parts, EncoderEmbedder(encoder, "mine")):
        assert " object at 0x" not in repr(thing)


def test_a_memory_says_where_it_is_what_it_holds_and_that_it_is_closed() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    memory.add("rain")
    assert repr(memory).startswith("<Memory in RAM: 1 events, cvx-lexical")
    assert repr(memory.within("ana")) == "<Memory in RAM, within 'ana'>"
    memory.close()
    assert repr(memory) == "<Memory in RAM, closed>"


def test_no_page_carries_markup_of_what_was_remembered() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    cause = memory.add(f"rain {EVIL}", entity=EVIL)
    effect = memory.add(f"flood {EVIL}")
    memory.link(cause, effect, why=EVIL)
    story = memory.why("flood")
    assert (story.of, story[0], story.edges[0].why) == (effect, cause, EVIL)
    for thing in (memory, cause, memory.recall("rain")[0], memory.recall("rain"), story):
        page = thing._repr_html_()
        assert "<img" not in page
        assert page.startswith("<")
    assert "&lt;img" in story._repr_html_()
    assert repr(story) == "<Story of event 2: 1 events>"


def test_advice_contexts_and_episodes_have_pages_without_markup_of_what_was_remembered() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    memory.add(f"rain {EVIL}")
    with memory.episode(f"go {EVIL}", task=EVIL) as episode:
        advice = episode.advise(f"a hall {EVIL}", [EVIL, "stay"])
        assert "nothing known" in advice._repr_html_()
        episode.act(EVIL)
        running = episode._repr_html_()
        episode.end(outcome=1.0)
    told = memory.episode(f"go {EVIL}", task=EVIL).advise(f"a hall {EVIL}", [EVIL, "stay"])
    assert "<td>1</td><td>state</td>" in told._repr_html_()
    kept = Episode(goal=EVIL, steps=(Event(EVIL, action=EVIL, reward=0.5),), reward=1.0)
    assert "<td>0.5</td>" in kept._repr_html_()
    context = memory.context("rain", budget_tokens=100)
    assert context._repr_html_().startswith("<pre>")
    hit = Hit(1, distance=0.1, score=0.9, similarity=0.9, entity_id=1, timestamp=1, action=EVIL)
    for page in (advice._repr_html_(), running, kept._repr_html_(), hit._repr_html_()):
        assert "<img" not in page
        assert "&lt;img" in page
    assert "<img" not in context._repr_html_()


def test_words_that_no_event_fits_are_said() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    with pytest.raises(cvx.CvxError, match="no event fits 'the flood'"):
        memory.why("the flood")


def test_many_are_added_from_mappings_and_frames() -> None:
    import polars as pl

    memory = Memory(embedder=LexicalEmbedder(), clock="ticks")
    rows: list[dict[str, object]] = [
        {"text": "it rained", "entity": "ana", "tags": ["wet"], "aliases": ["a downpour"]},
        {"text": "it froze", "metadata": {"room": "cellar"}, "trust": None, "timestamp": None},
    ]
    assert memory.add_many(rows).tolist() == [1, 2]
    frame = pl.DataFrame({"text": ["snow", "hail"], "entity": ["bo", None], "reward": [1.0, None]})
    assert memory.add_many(frame).tolist() == [3, 4]
    assert memory.add_many([Event("sun")], namespace="bo").tolist() == [5]
    told = [(one.text, one.entity, one.timestamp, one.reward) for one in memory.events()]
    assert told == [
        ("it rained", "ana", 1, None), ("it froze", None, 2, None),
        ("snow", "bo", 3, 1.0), ("hail", None, 4, None),
    ]  # fmt: skip
    assert memory.recall("a downpour")[0].event == memory.get(1)
    assert memory.get(5).namespace == "bo"


def test_a_link_is_of_events() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    rain, flood = memory.add("rain"), memory.add("flood")
    edge = memory.link(cause=rain, effect=flood, why="the drain", weight=0.5)
    assert isinstance(edge, cvx.Edge)
    assert (edge.cause, edge.effect, edge.kind, edge.weight) == (1, 2, "caused", 0.5)
    assert (edge.why, edge.state, edge.probability) == ("the drain", "stated", None)
    assert memory.why(flood).edges == [edge]
    assert repr(edge).startswith("Edge(cause=1, effect=2, weight=0.5, why='the drain', recorded=")


def test_a_cue_is_words_first_or_a_vector() -> None:
    assert Cue("where?") == Cue(text="where?")
    memory = Memory(dim=2, clock="ticks")
    near = memory.add("near", vector=np.array([1.0, 0.0], np.float32), timestamp=3)
    memory.add("far", vector=np.array([0.0, 5.0], np.float32), timestamp=4)
    asked = np.array([1.0, 0.1], np.float32)
    assert memory.recall(asked, 1)[0].event == near
    assert memory.recall(Cue(vector=asked, timestamp=9), 1)[0].event == near
    assert "near" in memory.context(asked)
    for wrong in (np.zeros((2, 2)), np.array([np.nan, 1.0]), np.array(["a"]), 3):
        with pytest.raises(InvalidInputError):
            memory.recall(wrong)  # type: ignore[arg-type]


def test_a_clock_that_counts_goes_on_from_the_latest_time() -> None:
    memory = Memory(embedder=LexicalEmbedder(), clock="ticks")
    memory.add("late", timestamp=100)
    memory.add("told later, happened early", timestamp=5)
    assert memory.add("next").timestamp == 101
    memory.add("home is Lyon", timestamp=150, key="home")
    memory.add("noise", timestamp=120)
    memory.add("home is Porto", timestamp=300, key="home")
    assert memory.add("after the new version").timestamp == 301
    ids = memory.add_many(["one", {"text": "far", "timestamp": 500}, "two"])
    assert [memory.get(one).timestamp for one in ids] == [302, 500, 501]
    with suppress(ZeroDivisionError), memory.admin.transaction():
        memory.add("never", timestamp=900)
        _ = 1 / 0
    assert memory.add("the time of what was taken back is free").timestamp == 502


def test_what_a_memory_returns_pickles_and_copies() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    for way in ("left", "right", "right"):
        with memory.episode("find the hat", task="hats") as episode:
            episode.act(way, observation="a hall")
            episode.end(1.0 if way == "right" else 0.0)
    advice = memory.episode("find the hat", task="hats").advise("a hall", ["left", "right"])
    for again in (pickle.loads(pickle.dumps(advice)), copy.deepcopy(advice)):
        assert again == advice
        assert str(again) == str(advice)
        assert again.best.hits == advice.best.hits
        assert again.choose(explore=False).action == "right"
        assert {again.choose().action for _ in range(50)} <= {"left", "right"}
    for thing in (memory.recall("hall"), memory.context("hall"), memory.events()):
        assert pickle.loads(pickle.dumps(thing)) == thing


def test_hits_show_a_line_each_and_no_cut_word() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    memory.add("the spare key is under the green pot " + "beside the old door " * 20)
    first, second = repr(memory.recall("where is the key?")).split("\n")
    assert first == "<Hits: 1 for 'where is the key?'>"
    assert second.endswith("…")
    assert len(second) < 80
    told = repr(memory.recall("where is the key?")[0])
    cut = told.split("event=")[1].split("...")[0]
    assert "the spare key" in cut
    assert cut.split(" ")[-1] in ("door", "the", "beside", "old", "'the")


def test_python_says_of_a_wrong_keyword_which_public_method_does_not_know_it() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    rain, flood = memory.add("rain"), memory.add("flood")
    memory.link(rain, flood)
    seen = [
        memory, memory.causes, memory.learning, memory.frames, memory.admin, memory.episode("tea"),
        rain, memory.recall("rain"), memory.recall("rain")[0], memory.why(flood),
        cvx.TemporalIndex(2),
    ]  # fmt: skip
    tried = 0
    for thing in seen:
        for name in dir(thing):
            # Of a loop the options are those of ActiveMemory.
            if name.startswith("_") or hasattr(list, name) or name == "loop":
                continue
            verb = getattr(thing, name)
            if not inspect.ismethod(verb):
                continue
            with pytest.raises(TypeError) as said:
                verb(colour=1)
            assert str(said.value).startswith(f"{type(thing).__name__}.{name}()"), said.value
            tried += 1
    assert tried > 80
    for name in cvx.__all__:
        if isinstance(getattr(cvx, name), type) and name not in ("CvxError", "Embedder"):
            with pytest.raises(TypeError, match=rf"^{name}\.__(init|new)__\(\)"):
                getattr(cvx, name)(colour=1)


def test_words_without_a_vector_are_refused_where_stored_and_searched_as_words() -> None:
    memory = Memory(dim=2)
    with pytest.raises(InvalidVectorError, match="made with dim=: give a vector with it"):
        memory.add("the red bike")
    with pytest.raises(InvalidVectorError, match="give a vector"):
        memory.update(memory.add("a bike", vector=np.array([1.0, 0.0])), text="a red bike")
    # Nothing failed that might answer again: no warning, which would be an error here.
    found = memory.recall("bike")
    assert [hit.text for hit in found] == ["a bike"]
    assert "words alone were searched" in str(found.trace)


def test_an_empty_memory_is_not_false() -> None:
    memory, index = Memory(embedder=LexicalEmbedder()), cvx.TemporalIndex(2)
    assert (memory or None) is memory
    assert (index or None) is index
    stream = MemoryStream("ana")
    assert (stream or None) is stream
    assert [len(memory), len(index), len(stream)] == [0, 0, 0]


def test_a_cue_takes_a_list_of_numbers_as_its_vector_as_add_does() -> None:
    memory = Memory(dim=2)
    near = memory.add("near", vector=[1.0, 0.0])  # type: ignore[arg-type]
    memory.add("far", vector=[0.0, 9.0])  # type: ignore[arg-type]
    for cue in ([1, 0], (1.0, 0.0), Cue(vector=[1.0, 0.0]), np.array([1, 0])):  # type: ignore[arg-type]
        assert memory.recall(cue)[0].id == near.id  # type: ignore[arg-type]
    for wrong in ([], ["a"], [[1.0, 0.0]], [float("nan"), 1.0]):
        with pytest.raises(InvalidInputError, match=r"^cue is"):
            memory.recall(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"^cue\.vector is 'x'"):
        memory.recall(Cue(vector="x"))  # type: ignore[arg-type]
    with pytest.raises(InvalidVectorError):
        memory.recall([1.0, 0.0, 0.0])  # type: ignore[arg-type]


def test_a_guess_carries_its_probability_as_an_item_too() -> None:
    guess = Edge(1, 2, weight=0.4, state="candidate")
    assert dict(guess)["probability"] == guess["probability"] == 0.4
    assert dict(Edge(1, 2))["probability"] is None
