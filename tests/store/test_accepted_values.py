"""Accepted means recallable: what a public call takes survives everything, the rest is refused."""

import json
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from cvx.embed import LexicalEmbedder
from cvx.errors import DamagedRowsWarning, InvalidInputError
from cvx.index import RawIndex
from cvx.memory import Memory
from cvx.memory.transfer import import_export
from cvx.store import rows
from cvx.store.replica import Replica
from cvx.types import Cue, Event
from cvx.validation import cleaned, storable_metadata
from tests.counting import NIGHTLY, ROUND, size, tried
from tests.store import planted
from tests.store.index_comparison import check, repaired

HALF = "\ud83d"
ODD_TEXT = st.text(alphabet=st.characters(codec=None), max_size=12) | st.sampled_from(
    [
        "",
        "\0",
        HALF,
        "\x1f",
        "a\x85b",
        "\u202e",
        "\ufffe",
        "ß" * 40,
        "'; DROP TABLE events",
        "NEAR(",
        '"',
    ]
)
ODD_NUMBER = st.integers(-(2**70), 2**70) | st.sampled_from([2**62, -(2**62), 2**63 - 1, -(2**63)])
ODD_FLOAT = st.floats() | st.sampled_from([1e-45, 3.4e38, -0.0])
ODD_JSON = st.recursive(
    st.none() | st.booleans() | ODD_NUMBER | ODD_FLOAT | ODD_TEXT | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD_TEXT, inner, max_size=3),
    max_leaves=6,
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "text": ODD_TEXT,
    "namespace": ODD_TEXT,
    "entity": st.none() | ODD_TEXT,
    "timestamp": ODD_NUMBER,
    "action": st.none() | ODD_TEXT,
    "reward": st.none() | ODD_FLOAT,
    "kind": ODD_TEXT,
    "tags": st.lists(ODD_TEXT, max_size=3).map(tuple),
    "metadata": st.dictionaries(ODD_TEXT, ODD_JSON, max_size=3),
    "source": ODD_TEXT,
    "trust": ODD_FLOAT,
    "visibility": st.sampled_from(["private", "shared", "public", "odd"]),
    "salience": st.none() | ODD_FLOAT,
    "key": st.none() | ODD_TEXT,
    "vector": st.none() | st.lists(ODD_FLOAT, min_size=8, max_size=8),
}
ODD_EVENT = st.fixed_dictionaries({}, optional=FIELDS)


def embedder() -> LexicalEmbedder:
    return LexicalEmbedder(dim=8)


def accepted(memory: Memory, given: dict[str, Any]) -> int | None:
    """The id of what was taken, None where it was refused; nothing else may happen."""
    before = len(memory)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return memory.add(**{"text": "a lamp", **given}, again=True).id
    except InvalidInputError:
        assert len(memory) == before
        return None


def stored(event: Event) -> tuple[Any, ...]:
    plain = replace(event, vector=None, event_id=None, node=None, recorded=None)
    return (repr(plain), None if event.vector is None else np.asarray(event.vector).tobytes())


@pytest.mark.requirement("B16")
# Some two hundred values each in the nightly run, a million together, and thirty otherwise: a value
# of a large store costs two thirds of the time.
@settings(max_examples=size("CVX_STORES", 5_000, 60))
@seed(ROUND)
@given(
    odd=st.lists(ODD_EVENT, min_size=20 if NIGHTLY else 1, max_size=40 if NIGHTLY else 12),
    words=ODD_TEXT,
)
def test_what_is_accepted_survives_recall_reopening_export_and_import(
    odd: list[dict[str, Any]], words: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert_survives(Path(folder), odd, words)


TRIED = Counter[str]()


def assert_survives(folder: Path, odd: list[dict[str, Any]], words: str) -> None:
    """Give a store odd events, and hold what it took against what comes back."""
    with Memory.open(folder / "m", embedder=embedder()) as memory:
        taken = [at for one in odd if (at := accepted(memory, one)) is not None]
        TRIED.update(stores=1, values=sum(map(len, odd)), events=len(odd), taken=len(taken))
        tried(f"accepted values, {dict(TRIED)}; stores", TRIED["stores"], 50)
        kept = {at: stored(memory.get(at)) for at in taken}
        spaces = {memory.get(at).namespace for at in taken}
        for space in spaces:
            memory.recall(Cue(text=words, goal="a lamp"), k=50, namespace=space)
            memory.context(words, namespace=space)
        for at in taken:
            event = memory.get(at)
            cue = Cue(text=words, vector=event.vector)
            found = memory.recall(cue, k=50, namespace=event.namespace)
            assert at in [hit.event.event_id for hit in found if hit.event]
        memory.frames.events(state=None)
        memory.admin.export(folder / "out.jsonl")
    with Memory.open(folder / "m", embedder=embedder()) as memory:
        assert {at: stored(memory.get(at)) for at in taken} == kept
        assert memory.admin.check() == []
    assert check(folder / "m", deep=True).sound
    import_export(folder / "back", folder / "out.jsonl")
    with Memory.open(folder / "back", embedder=embedder()) as back:
        assert {at: stored(back.get(at)) for at in taken} == kept


@pytest.mark.requirement("B16")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tags", [HALF]),
        ("text", f"a {HALF}"),
        ("text", "a\0b"),
        ("aliases", [HALF]),
        ("action", HALF),
        ("kind", "a\0"),
        ("source", HALF),
        ("key", HALF),
        ("namespace", HALF),
        ("namespace", "a\x1fb"),
        ("metadata", {"a": float("nan")}),
        ("metadata", {HALF: 1}),
        ("metadata", {1: "a"}),
        ("metadata", {"a": [HALF]}),
        ("metadata", {"a": 2**63}),
        ("metadata", {"a": 10**5000}),
        ("metadata", {"a": b"x"}),
        ("timestamp", 2**62 + 1),
        ("timestamp", -(2**63)),
        ("entity", HALF),
        ("entity", ""),
        ("metadata", {"@entity": "ana"}),
        ("reward", float("nan")),
        ("trust", float("nan")),
        ("salience", float("inf")),
        ("vector", [1e39] * 8),
        ("vector", [1.9e19] + [0] * 7),
        ("vector", [1e-20] * 8),
    ],
)
def test_what_could_not_be_recalled_is_refused_before_the_commit(field: str, value: Any) -> None:
    memory = Memory(embedder=embedder())
    with pytest.raises(InvalidInputError):
        memory.add(**{"text": "a lamp", field: value})
    assert len(memory) == 0
    assert memory.record.tail().seq == Memory(embedder=embedder()).record.tail().seq
    memory.add("a lamp")
    assert len(memory.recall("lamp")) == 1


@pytest.mark.requirement("B16")
@pytest.mark.parametrize("depth", [33, 900, 100_000])
def test_metadata_deeper_than_the_bound_is_refused(depth: int) -> None:
    nested: Any = 1
    for _ in range(depth):
        nested = [nested]
    memory = Memory(embedder=embedder())
    with pytest.raises(InvalidInputError, match="32 levels"):
        memory.add("a lamp", metadata={"a": nested})
    with pytest.raises(InvalidInputError, match="32 levels"):
        memory.update(memory.add("a lamp"), metadata={"a": nested})


def test_metadata_at_the_bound_comes_back_on_a_deep_stack() -> None:
    nested: Any = 1
    for _ in range(31):
        nested = [nested]
    memory = Memory(embedder=embedder())
    number = memory.add("a lamp", metadata={"a": nested})

    def deep(levels: int) -> Any:
        return deep(levels - 1) if levels else memory.get(number).metadata["a"]

    assert deep(sys.getrecursionlimit() - 300) == nested


Forge = Callable[[dict[str, Any]], None]


def forged(**changes: Any) -> Forge:
    return lambda row: row.update(changes)


FORGERIES = {
    "a tag with half a pair": forged(tags='["\\ud83d"]'),
    "a tag that is a number": forged(tags="[3]"),
    "tags that are no JSON": forged(tags="["),
    "metadata that is no JSON": forged(metadata="{"),
    "metadata with NaN": forged(metadata='{"a": NaN}'),
    "metadata 900 levels deep": forged(metadata='{"a":' + "[" * 900 + "]" * 900 + "}"),
    "a negative entity": forged(entity=-1),
    "another dimension": forged(embedding=np.ones(5, dtype="<f4").tobytes()),
    "a vector of NaN": forged(embedding=np.full(8, np.nan, dtype="<f4").tobytes()),
    "a vector of no direction": forged(embedding=bytes(32)),
    "bytes that are no floats": forged(embedding=b"abc"),
    "a time beyond the bound": forged(timestamp=2**63 - 1),
    "a reward of 7": forged(reward=7.0),
    "no visibility": forged(visibility="odd"),
}


def forge(folder: Path, change: Forge) -> int:
    """Rewrite the second event as another program might have, with a fitting checksum."""
    names = rows.COLUMNS["events"]
    with planted.opened(folder) as db:
        found = db.execute(f"SELECT {', '.join(names)} FROM events WHERE event_id = 2").fetchone()
        row = dict(zip(names, found, strict=True))
        change(row)
        values = ", ".join(f"{name} = ?" for name in (*names, "crc"))
        db.execute(
            f"UPDATE events SET {values} WHERE event_id = 2",
            (*row.values(), rows.row_crc(*row.values())),
        )
    return int(row["event_id"])


@pytest.mark.requirement("B16")
@pytest.mark.filterwarnings("ignore::cvx.errors.DamagedRowsWarning")
@pytest.mark.parametrize("name", FORGERIES)
def test_a_row_that_no_index_takes_is_left_out_named_and_repaired(
    tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "m"
    with Memory.open(folder, embedder=embedder()) as memory:
        for text in ("the lamp is red", "the cup is blue", "the door is green"):
            memory.add(text)
    forge(folder, FORGERIES[name])
    for snapshot in (folder / "index").iterdir():
        snapshot.unlink()
    with Memory.open(folder, embedder=embedder()) as memory:
        assert [hit.event.event_id for hit in memory.recall("the red lamp", k=1) if hit.event] == [
            1
        ]
        memory.context("the cup, the door")
        memory.add("the wall is white")
        assert memory.recall("the white wall", k=1)[0].event.event_id == 4  # type: ignore[union-attr]
    report = check(folder)
    assert ("value", "events [2]") in [(str(f.check), f.where) for f in report.findings]
    new = repaired(folder)
    assert check(new).findings == ()
    with warnings.catch_warnings():
        warnings.simplefilter("error", DamagedRowsWarning)
        with Memory.open(new, embedder=embedder()) as memory:
            memory.recall("the cup", k=5)
            assert memory.admin.check() == []
            memory.admin.export(tmp_path / "out.jsonl")
            assert {1, 3, 4} <= {event.id for event in memory.events()}


class Mistaken(RawIndex):
    """An index whose program has a mistake, which is that of no row."""

    def bulk_insert(self, *args: Any, **options: Any) -> Any:
        raise TypeError(f"{len(args)} arguments, and {len(options)} by name: an unexpected colour")


@pytest.mark.requirement("B16")
def test_a_mistake_of_the_program_is_no_damage_of_a_row() -> None:
    memory = Memory(embedder=embedder())
    memory.add("the lamp is red")
    with pytest.raises(TypeError, match="colour"):
        Replica(memory.record, lambda: Mistaken(8))
    assert memory.record.damaged == {}
    assert memory.record.refused == set()


@given(value=st.dictionaries(ODD_TEXT, ODD_JSON, max_size=3))
def test_metadata_that_is_accepted_comes_back_from_json_as_it_is(value: dict[str, Any]) -> None:
    try:
        kept = storable_metadata("metadata", value)
    except InvalidInputError:
        return
    assert json.loads(json.dumps(kept, allow_nan=False)) == kept
    kept_text = json.dumps(kept, ensure_ascii=False)
    assert kept_text.encode().decode() == kept_text


@given(value=ODD_JSON)
def test_what_was_cleaned_can_be_stored_unless_it_is_no_json(value: Any) -> None:
    try:
        json.dumps(value)
    except TypeError:
        return
    storable_metadata("metadata", {"a": cleaned(value)})


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
def test_a_text_without_words_needs_a_vector_to_be_found_by(blank: str) -> None:
    memory = Memory(embedder=LexicalEmbedder(16))
    event = memory.add("a mug")
    calls: list[Callable[[], object]] = [
        lambda: memory.add(blank),
        lambda: memory.add_many(["a cup", blank]),
        lambda: memory.update(event, text=blank),
    ]
    for call in calls:
        with pytest.raises(InvalidInputError, match=r"text is '.*': give words, or a vector"):
            call()
    assert [one.text for one in memory.events()] == ["a mug"]
    vector = np.eye(16, dtype=np.float32)[3]
    found = memory.add(blank, vector=vector)
    assert found.id in [hit.id for hit in memory.recall(vector, 2, min_relevance=0.0)]
    assert memory.update(event, text=blank, vector=vector).text == blank
