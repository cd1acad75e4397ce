"""What a user sees: few names, reprs that tell, pages without markup of others."""

import inspect

import pytest

import cvx
from cvx import Cue, Edge, Episode, Event, Hit, LexicalEmbedder, Memory

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
        (Edge(1, 2, "caused"), "Edge(from_node=1, to_node=2, kind='caused')"),
        (Episode(goal="tea"), "Episode(goal='tea')"),
        (
            Hit(1, 0.5, 0.5, 0.5, 7, 3),
            "Hit(node=1, distance=0.5, score=0.5, similarity=0.5, entity_id=7, timestamp=3)",
        ),
    ],
)
def test_a_repr_shows_what_is_not_as_by_default(thing: object, told: str) -> None:
    assert repr(thing) == told


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
    for thing in (memory, cause, memory.recall("rain"), story):
        page = thing._repr_html_()
        assert "<img" not in page
        assert page.startswith("<")
    assert "&lt;img" in story._repr_html_()
    assert repr(story) == "<Story of event 2: 1 events>"


def test_words_that_no_event_fits_are_said() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    with pytest.raises(cvx.CvxError, match="no event fits 'the flood'"):
        memory.why("the flood")
