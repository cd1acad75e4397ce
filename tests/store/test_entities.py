"""Entities are names: in what is added, filtered, found, framed, exported and reopened."""

import shutil
from pathlib import Path

import pytest

from cvx import Event, Filter
from cvx.errors import InvalidInputError
from cvx.memory import Memory
from cvx.memory.transfer import import_export
from cvx.types import UNNAMED_ENTITIES, entity_number
from tests.golden.make_store import FOLDER
from tests.store.facade import memory  # noqa: F401
from tests.store.processes import embedder

pytestmark = pytest.mark.requirement("W1")


def test_a_name_comes_back_wherever_its_event_does(memory: Memory) -> None:  # noqa: F811
    event = memory.add("Ana sold the horse", entity="ana")
    memory.add("Bo bought a horse", entity="Bo")
    memory.add("it rained")
    assert (event.entity, memory.get(event).entity, event["entity"]) == ("ana", "ana", "ana")
    hit = memory.recall("who sold the horse?")[0]
    assert (hit.entity, hit["entity"], dict(hit)["entity"]) == ("ana", "ana", "ana")
    assert [one.entity for one in memory.events()] == ["ana", "Bo", None]
    assert memory.frames.events()["entity"].to_list() == ["ana", "Bo", None]
    assert [one.text for one in memory.events({"entities": "Bo"})] == ["Bo bought a horse"]


def test_a_filter_takes_one_name_or_several(memory: Memory) -> None:  # noqa: F811
    for name in ("ana", "Bo", "7", None):
        memory.add(f"{name} saw a horse", entity=name)
    for where, found in (
        (Filter(entities="ana"), ["ana"]),
        ({"entities": ["7", "Bo"]}, ["Bo", "7"]),
        ([{"entities": "ana"}, {"entities": "7"}], ["ana", "7"]),
        ({"entities": "nobody"}, []),
        ({"entities": []}, []),
    ):
        assert [one.entity for one in memory.events(where)] == found
        assert {hit.entity for hit in memory.recall("a horse", where=where)} == {*found}


def test_events_of_many_keep_their_names_and_an_upsert_its_own(
    memory: Memory,  # noqa: F811
) -> None:
    memory.add_many([Event("one", entity="ana", timestamp=1), Event("two", timestamp=2)])
    assert [one.entity for one in memory.events()] == ["ana", None]
    memory.add("Ana's home", entity="ana", key="home")
    assert memory.add("Ana's new home", key="home").entity == "ana"
    with pytest.raises(InvalidInputError, match=r"entity is 'Bo'.*has 'ana'"):
        memory.add("Bo's home", entity="Bo", key="home")


@pytest.mark.parametrize("wrong", [3, 3.0, "", b"ana", "a\0", "\ud83d", ["ana"]])
def test_what_is_no_name_is_refused(memory: Memory, wrong: object) -> None:  # noqa: F811
    with pytest.raises(InvalidInputError, match="entity"):
        memory.add("a horse", entity=wrong)  # type: ignore[arg-type]
    assert len(memory) == 0
    if not isinstance(wrong, str | list):
        with pytest.raises(InvalidInputError, match=r"where.entities is .*str"):
            memory.recall("a horse", where={"entities": wrong})


def test_names_survive_a_reopening_and_an_export(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as made:
        made.add("Ana sold the horse", entity="ana")
        made.add("seven sold the horse", entity="7")
        made.admin.export(tmp_path / "e.jsonl")
    with Memory.open(tmp_path / "m") as again:
        assert [hit.entity for hit in again.recall("horse", where={"entities": "ana"})] == ["ana"]
    import_export(tmp_path / "n", tmp_path / "e.jsonl")
    with Memory.open(tmp_path / "n") as taken:
        assert [one.entity for one in taken.events()] == ["ana", "7"]
        assert [one.entity for one in taken.events({"entities": "ana"})] == ["ana"]


def test_an_erased_name_is_in_no_file(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as made:
        event = made.add("she sold the horse", entity="anastasia-the-third")
        made.erase(event)
    for path in (tmp_path / "m").rglob("*"):
        assert path.is_dir() or b"anastasia" not in path.read_bytes(), path


def test_numbers_of_older_stores_are_read_as_names(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "store")
    with Memory.open(tmp_path / "store") as old:
        numbers = {row[0] for row in old.record.query("SELECT DISTINCT entity FROM events")}
        names = {one.entity for one in old.events()}
        assert names <= {str(number) if number else None for number in numbers}
        rained = old.recall("rain", where=Filter(entities="2"))
        assert {hit.entity for hit in rained} == {"2"}


def test_a_timeline_that_nobody_named_is_nobodys(memory: Memory) -> None:  # noqa: F811
    _, entity = memory.record.next_ids()
    assert entity >= UNNAMED_ENTITIES
    assert Event("a step", entity_id=entity).entity is None
    assert len({entity_number(name) for name in (None, "0", "ana", "Ana", "bo", "007")}) == 6
