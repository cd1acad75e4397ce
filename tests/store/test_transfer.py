"""Nothing is lost on the way into another format and back."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cvx.embed import LexicalEmbedder
from cvx.errors import ExportError, FileError, SettingsMismatchError, StoreError
from cvx.memory import Memory
from cvx.memory.transfer import (
    from_duckdb,
    import_export,
    to_duckdb,
)
from cvx.store.failpoints import ENVIRONMENT
from cvx.store.files import HALF_IMPORT
from cvx.store.transfer.duckdb_file import _open_circles
from tests.store import planted
from tests.store.index_comparison import check
from tests.store.processes import embedder

FORMATS = ("jsonl", "parquet", "duckdb")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("transfer") / "m"
    planted.rich_store(folder)
    return folder


def exported(store: Path, path: Path) -> Path:
    with Memory.open(store, embedder=embedder()) as memory:
        memory.admin.export(path)
    return path


def meta(folder: Path) -> dict[str, str]:
    with planted.opened(folder) as db:
        found = dict(db.execute("SELECT key, value FROM meta").fetchall())
    return {key: found[key] for key in found if key not in ("uuid", "imported")}


@pytest.mark.requirement("W26", "X9")
@pytest.mark.parametrize("ending", FORMATS)
def test_a_store_comes_back_row_by_row_with_its_history(
    store: Path, tmp_path: Path, ending: str
) -> None:
    done = import_export(tmp_path / "copy", exported(store, tmp_path / f"all.{ending}"))
    assert not done.merged
    assert done.counts["events"] == 16
    assert planted.contents(tmp_path / "copy") == planted.contents(store)
    assert meta(tmp_path / "copy") == meta(store)
    assert check(tmp_path / "copy", deep=True).findings == ()
    with (
        Memory.open(store, embedder=embedder()) as old,
        Memory.open(tmp_path / "copy", embedder=embedder()) as new,
    ):
        for cue in ("rain", "at the sink 3", "東京"):
            assert [h.event for h in old.recall(cue)] == [h.event for h in new.recall(cue)]
            assert [h.score for h in old.recall(cue)] == [h.score for h in new.recall(cue)]
        assert new.add("life goes on").id == 17
        middle = old.record.events()[8].recorded or 0
        past = old.as_of(middle), new.as_of(middle)
        assert len(past[0]) == len(past[1]) > 0


text = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20
).filter(str.strip)


@pytest.mark.requirement("X9")
@pytest.mark.parametrize("ending", FORMATS)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    events=st.lists(
        st.fixed_dictionaries(
            {"text": text.filter(lambda t: any(c.isalnum() for c in t))},
            optional={
                "namespace": st.sampled_from(["ana", "ben"]),
                "entity": text | st.none(),
                "timestamp": st.integers(-(2**62), 2**62),
                "reward": st.floats(0, 1),
                "salience": st.floats(0, 1),
                "trust": st.floats(0, 1),
                "action": text,
                "source": text,
                "tags": st.lists(text, max_size=2),
                "aliases": st.lists(st.sampled_from(["one more", "東京都"]), max_size=2),
                "metadata": st.dictionaries(text, st.none() | st.booleans() | text, max_size=2),
                "visibility": st.sampled_from(["private", "shared", "public"]),
            },
        ),
        max_size=4,
    ),
    links=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.floats(0, 1)), max_size=4),
)
def test_whatever_a_memory_holds_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    ending: str,
    events: list[dict[str, object]],
    links: list[tuple[int, int, float]],
) -> None:
    folder = tmp_path_factory.mktemp("property")
    with Memory.open(folder / "m", embedder=embedder()) as memory:
        for event in events:
            memory.add(**event)  # type: ignore[arg-type]
        for a, b, weight in links:
            if a != b and max(a, b) <= len(events):
                memory.link(a, b, "caused", weight=weight, why="why", effect_first="allow")
        memory.admin.export(folder / f"all.{ending}")
    import_export(folder / "copy", folder / f"all.{ending}")
    assert planted.contents(folder / "copy") == planted.contents(folder / "m")


@pytest.mark.requirement("X9")
@pytest.mark.parametrize("ending", FORMATS)
def test_a_memory_in_ram_is_exported_too(tmp_path: Path, ending: str) -> None:
    memory = Memory(embedder=embedder())
    memory.add("a mug on a shelf", aliases=["a cup"])
    memory.admin.export(tmp_path / f"all.{ending}")
    import_export(tmp_path / "copy", tmp_path / f"all.{ending}")
    with Memory.open(tmp_path / "copy", embedder=embedder()) as copy:
        assert [hit.event.text for hit in copy.recall("cup") if hit.event] == ["a mug on a shelf"]


def test_an_export_holds_the_latest_recall(tmp_path: Path) -> None:
    memory = Memory(embedder=embedder())
    memory.add("a mug on a shelf")
    memory.recall("mug")
    memory.admin.export(tmp_path / "all.jsonl")
    import_export(tmp_path / "copy", tmp_path / "all.jsonl")
    with Memory.open(tmp_path / "copy", embedder=embedder()) as copy:
        assert copy.frames.decisions().height == memory.frames.decisions().height == 1


@pytest.mark.parametrize("ending", FORMATS)
def test_an_export_joins_a_store_that_holds_something(
    store: Path, tmp_path: Path, ending: str
) -> None:
    path = exported(store, tmp_path / f"all.{ending}")
    with Memory.open(tmp_path / "other", embedder=embedder()) as other:
        other.add("there before")
        other.link(1, other.add("and this").id)
    with Memory.open(tmp_path / "other", embedder=embedder()) as open_meanwhile:
        done = import_export(tmp_path / "other", path)
        assert done.merged
        assert set(done.left_out) == {"decisions", "model_state", "journal"}
        (hit,) = open_meanwhile.recall("the cellar flooded", k=1)
        assert hit.event is not None
        assert hit.event.event_id == 2 + 14
        why = [
            (step.event.text, step.edge.kind, step.edge.why)
            for step in open_meanwhile.why(16).steps
        ]
        assert ("rain fell", "caused", "rain") in why
        assert open_meanwhile.recall("it poured", k=1)[0].event == open_meanwhile.get(15)
        assert [event.text for event in open_meanwhile.record.events([1, 2])] == [
            "there before",
            "and this",
        ]
        assert len(open_meanwhile.record.episodes()) == 6
        assert open_meanwhile.add("life goes on").id == 19
    assert check(tmp_path / "other", deep=True).findings == ()
    before = planted.contents(tmp_path / "other")
    with pytest.raises(ExportError, match="taken in before"):
        import_export(tmp_path / "other", path)
    assert planted.contents(tmp_path / "other") == before
    assert import_export(tmp_path / "other", path, again=True).counts["events"] == 16
    assert check(tmp_path / "other", deep=True).findings == ()


def test_counts_of_anything_join_a_store_that_holds_something(tmp_path: Path) -> None:
    counts = [(context, 3, 2, 1) for context in ("5", "[]", '["event","mug"]', '"{"', "null")]
    whose = '["\\u001f","ana","web",["node",%d]]'
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        memory.add("a mug")
        with memory.record.transaction() as write:
            write.set_usage([*counts, ('["event",1]', 1, 1, 0), (whose % 0, 2, 1, 0)])
    path = exported(tmp_path / "m", tmp_path / "all.jsonl")
    with Memory.open(tmp_path / "other", embedder=embedder()) as other:
        other.add("there before")
    import_export(tmp_path / "other", path)
    with Memory.open(tmp_path / "other", embedder=embedder()) as other:
        known = [*counts, ('["event",2]', 1, 1, 0), (whose % 1, 2, 1, 0)]
        assert other.record.usage() == sorted(known)


def test_an_export_of_another_embedder_is_refused(store: Path, tmp_path: Path) -> None:
    path = exported(store, tmp_path / "all.jsonl")
    with Memory.open(tmp_path / "other", embedder=LexicalEmbedder(dim=8)) as other:
        other.add("there before")
    before = planted.contents(tmp_path / "other")
    with pytest.raises(SettingsMismatchError, match="reembed"):
        import_export(tmp_path / "other", path)
    assert planted.contents(tmp_path / "other") == before


@pytest.mark.parametrize("damaged", [False, True])
def test_an_import_loses_nothing_of_a_store_that_is_begun_meanwhile(
    store: Path, tmp_path: Path, damaged: bool
) -> None:
    path, folder = exported(store, tmp_path / "all.jsonl"), tmp_path / "new" / "copy"
    if damaged:
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[:-1]))
    begun: list[Memory] = []

    def begin(_: int, __: int) -> None:
        if not begun:
            begun.append(Memory.open(folder, embedder=embedder()))
            begun[0].add("begun meanwhile")

    with pytest.raises(ExportError, match="it was cut" if damaged else "begun a store"):
        import_export(folder, path, progress=begin)
    begun[0].add("and used on")
    begun[0].close()
    with Memory.open(folder, embedder=embedder(), create=False) as memory:
        assert memory.frames.events()["text"].to_list() == ["begun meanwhile", "and used on"]
    assert check(folder, deep=True).findings == ()


@pytest.mark.parametrize("there", ["nothing", "a folder", "a folder with a file"])
def test_a_refused_import_leaves_what_was_there(store: Path, tmp_path: Path, there: str) -> None:
    path, folder = exported(store, tmp_path / "all.jsonl"), tmp_path / "new" / "copy"
    path.write_text(path.read_text().rsplit("\n", 2)[0])
    if there != "nothing":
        folder.mkdir(parents=True)
    if there == "a folder with a file":
        (folder / "notes.txt").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ExportError):
        import_export(folder, path)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "duckdb"])
def test_a_file_that_is_not_there_is_named_and_makes_no_store(tmp_path: Path, ending: str) -> None:
    missing = tmp_path / f"nothing.{ending}"
    with pytest.raises(FileError, match=f"nothing.{ending}"):
        import_export(tmp_path / "store", missing)
    assert not (tmp_path / "store").exists()


def test_its_own_export_is_refused(store: Path, tmp_path: Path) -> None:
    path = exported(store, tmp_path / "all.jsonl")
    with pytest.raises(ExportError, match="this store's own"):
        import_export(store, path)


@pytest.mark.requirement("X9")
def test_every_damaged_or_missing_line_is_named_and_nothing_is_taken_in(
    store: Path, tmp_path: Path
) -> None:
    path = exported(store, tmp_path / "all.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    rng = random.Random(3)
    for _ in range(60):
        number = rng.randrange(1, len(lines) - 1)
        broken = bytearray(lines[number])
        broken[rng.randrange(len(broken) - 1)] ^= 1 << rng.randrange(7)
        path.write_bytes(b"".join([*lines[:number], bytes(broken), *lines[number + 1 :]]))
        with pytest.raises(ExportError, match=r"all.jsonl, line \d+|row \[.+\] of \w+ is not what"):
            import_export(tmp_path / "copy", path)
        assert not (tmp_path / "copy").exists()
    for cut in (0, 1, 5, len(lines) - 1):
        path.write_bytes(b"".join(lines[:cut]))
        with pytest.raises(ExportError):
            import_export(tmp_path / "copy", path)
    for changed in (lines[:7] + lines[8:], lines[:7] + lines[6:], [*lines, lines[-2]]):
        path.write_bytes(b"".join(changed))
        with pytest.raises(ExportError):
            import_export(tmp_path / "copy", path)
        assert not (tmp_path / "copy").exists()


def test_a_damaged_parquet_file_is_named(store: Path, tmp_path: Path) -> None:
    path = exported(store, tmp_path / "all.parquet")
    events = path / "events" / "00000.parquet"
    frame = pl.read_parquet(events)
    frame.with_columns(text=pl.col("text").str.replace("rain", "snow")).write_parquet(events)
    with pytest.raises(ExportError, match=r"row \[13\] of events"):
        import_export(tmp_path / "copy", path)
    events.write_bytes(events.read_bytes()[:200])
    with pytest.raises(ExportError, match="cannot be read"):
        import_export(tmp_path / "copy", path)
    events.unlink()
    with pytest.raises(ExportError, match="0 rows, 16"):
        import_export(tmp_path / "copy", path)
    assert not (tmp_path / "copy").exists()


def test_nothing_is_written_over(store: Path, tmp_path: Path) -> None:
    for ending in FORMATS:
        (tmp_path / f"all.{ending}").write_text("mine")
        with pytest.raises(FileError, match="there already"):
            exported(store, tmp_path / f"all.{ending}")
        assert (tmp_path / f"all.{ending}").read_text() == "mine"
    with pytest.raises(FileError):
        exported(store, tmp_path / "no" / "such" / "folder.jsonl")


def killed_at(point: str, folder: Path, path: Path) -> None:
    code = "import sys; from cvx.memory.transfer import import_export; import_export(*sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder), str(path)],
        env={**os.environ, ENVIRONMENT: point},
        check=False,
    )
    assert done.returncode == -9


@pytest.mark.requirement("X9")
@pytest.mark.parametrize("point", ["import.written@1", "import.written@4", "import.finished"])
@pytest.mark.parametrize("merged", [False, True])
def test_an_import_that_is_killed_has_taken_nothing_in(
    store: Path, tmp_path: Path, point: str, merged: bool
) -> None:
    path = exported(store, tmp_path / "all.jsonl")
    if merged:
        with Memory.open(tmp_path / "copy", embedder=embedder()) as memory:
            memory.add("there before")
        before = planted.contents(tmp_path / "copy")
    killed_at(point, tmp_path / "copy", path)
    if merged:
        assert planted.contents(tmp_path / "copy") == before
    else:
        assert not (tmp_path / "copy" / "memory.db").exists()
    assert import_export(tmp_path / "copy", path).merged == merged
    assert check(tmp_path / "copy", deep=True).findings == ()


def test_where_an_import_broke_off_no_empty_memory_opens_in_its_place(
    store: Path, tmp_path: Path
) -> None:
    path, folder = exported(store, tmp_path / "all.jsonl"), tmp_path / "copy"
    killed_at("import.finished", folder, path)
    with pytest.raises(StoreError, match=r"into .* broke off.* import again"):
        Memory.open(folder, embedder=embedder())
    assert [one.name for one in folder.iterdir()] == [HALF_IMPORT]
    assert not import_export(folder, path).merged
    assert [one.name for one in sorted(folder.iterdir())] == ["LOCK", "index", "memory.db"]
    assert check(folder, deep=True).findings == ()


def test_what_a_killed_import_left_is_named_and_harmless(tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    # Beside a memory that was begun by hand.
    with Memory.open(folder, embedder=embedder()):
        (folder / HALF_IMPORT).mkdir()
    report = check(folder, deep=True)
    assert ([one.where for one in report.findings], report.sound) == ([HALF_IMPORT], True)


@pytest.mark.requirement("X5", "X7", "X9", "C1", "C2")
def test_duckdb_holds_the_blueprints_table_with_one_cause_an_event(
    store: Path, tmp_path: Path
) -> None:
    import duckdb

    with Memory.open(store, embedder=embedder()) as memory:
        vectors = sum(event.vector is not None for event in memory.record.events())
        to_duckdb(memory, tmp_path / "core.duckdb")
    with duckdb.connect(str(tmp_path / "core.duckdb")) as db:
        described = db.execute("DESCRIBE events").fetchall()
        assert [row[:2] for row in described] == [
            ("event_id", "INTEGER"),
            ("timestamp", "TIMESTAMP"),
            ("effect_text", "VARCHAR"),
            ("embedding", "FLOAT[]"),
            ("cause_id", "INTEGER"),
            ("relationship_text", "VARCHAR"),
        ]
        assert [row[2] for row in described] == ["NO", "NO", "NO", "NO", "YES", "YES"]
        assert db.execute("SELECT count(*) FROM events").fetchall() == [(vectors,)]
        wrong = "(cause_id IS NULL) <> (relationship_text IS NULL)"
        assert db.execute(f"SELECT count(*) FROM events WHERE {wrong}").fetchall() == [(0,)]
        caused = "SELECT cause_id, relationship_text FROM events WHERE event_id = 14"
        # Of the two links to it one is of a kind that says nothing of causes.
        assert db.execute(caused).fetchall() == [(13, "rain")]
        with pytest.raises(duckdb.ConstraintException):
            db.execute("INSERT INTO events VALUES (99, now()::TIMESTAMP, 'x', [1.0], 1, NULL)")
        (given,) = db.execute("SELECT nextval('events_id')").fetchall()
        assert given == (17,)


@given(
    st.dictionaries(st.integers(1, 8), st.integers(1, 8)).map(
        lambda found: {a: (b, "why") for a, b in found.items() if a != b}
    )
)
def test_primary_causes_form_no_circle_and_lose_no_more_than_that(
    causes: dict[int, tuple[int, str]],
) -> None:
    before = dict(causes)
    _open_circles(causes)
    for start in before:
        seen = [start]
        while seen[-1] in causes:
            seen.append(causes[seen[-1]][0])
            assert len(seen) == len(set(seen))
    for lost in before.keys() - causes.keys():
        event = before[lost][0]
        while event != lost:
            event = before[event][0]


@pytest.mark.requirement("X5", "X9")
def test_a_causal_core_is_taken_over_with_its_causes(store: Path, tmp_path: Path) -> None:
    with Memory.open(store, embedder=embedder()) as memory:
        to_duckdb(memory, tmp_path / "core.duckdb")
    with Memory.open(tmp_path / "new", embedder=LexicalEmbedder(dim=8)) as memory:
        ids = from_duckdb(memory, tmp_path / "core.duckdb")
        assert len(ids) == len(memory)
        flood = memory.recall("the cellar flooded", k=1)[0].event
        assert flood is not None
        assert flood.key == "core:14"
        assert flood.timestamp == memory.record.events([flood.event_id or 0])[0].timestamp
        assert [(s.event.text, s.edge.why) for s in memory.why(flood.event_id or 0).steps] == [
            ("rain fell", "rain")
        ]
        before = len(memory)
        with pytest.raises(ValueError, match="core:1"):
            from_duckdb(memory, tmp_path / "core.duckdb")
        assert len(memory) == before


@pytest.mark.requirement("X5", "X9")
def test_a_core_and_a_memory_read_each_others_files(tmp_path: Path) -> None:
    from cvx.causal.memory_core import CausalMemoryCore

    class Judge:
        def complete(self, prompt: str) -> str:
            return "Yes. The drain was full." if "rain" in prompt else "No."

    with CausalMemoryCore(str(tmp_path / "core.duckdb"), Judge(), embedder()) as core:
        for text in ("rain fell all night", "the rain flooded the cellar"):
            core.add_event(text)
    memory = Memory(embedder=embedder())
    assert from_duckdb(memory, tmp_path / "core.duckdb", keep_vectors=True) == [1, 2]
    told = [(s.event.text, s.edge.why) for s in memory.why(2).steps]
    assert told == [("rain fell all night", "The drain was full.")]
    to_duckdb(memory, tmp_path / "back.duckdb")
    with CausalMemoryCore(str(tmp_path / "back.duckdb"), Judge(), embedder()) as core:
        assert "the drain was full" in core.get_context("the rain flooded the cellar")


@pytest.mark.requirement("X9")
def test_a_cause_that_was_confirmed_later_is_taken_over(tmp_path: Path) -> None:
    from cvx.causal.memory_core import CausalMemoryCore

    path = str(tmp_path / "core.duckdb")

    class Silent:
        def complete(self, prompt: str) -> str:
            raise TimeoutError(prompt)

    class Judge:
        def complete(self, prompt: str) -> str:
            return "Yes. The drain was full." if "rain" in prompt else "No."

    with CausalMemoryCore(path, Silent(), embedder()) as core:
        for text in ("rain fell all night", "the rain flooded the cellar"):
            core.add_event(text)
        core.retry_unjudged(Judge())
    memory = Memory(embedder=embedder())
    from_duckdb(memory, path)
    assert [step.edge.why for step in memory.why(2).steps] == ["The drain was full."]


def test_without_duckdb_the_extra_is_named(store: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['duckdb'] = None\n"
        "from cvx.embed import LexicalEmbedder; from cvx.memory import Memory\n"
        "from cvx.memory.transfer import to_duckdb\n"
        "from cvx.errors import MissingExtraError\n"
        "try: to_duckdb(Memory(embedder=LexicalEmbedder(16)), sys.argv[1])\n"
        "except MissingExtraError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x.duckdb")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "pip install duckdb polars" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_lines_say_what_they_are(store: Path, tmp_path: Path) -> None:
    first, *rest, last = exported(store, tmp_path / "all.jsonl").read_text().splitlines()
    told = json.loads(first)
    assert told["cvx"] == "export"
    assert told["counts"]["events"] == 16
    assert told["meta"]["embedder"] == embedder().info()["id"]
    assert json.loads(last) == {"end": len(rest)}
    assert {json.loads(line)["table"] for line in rest} == set(told["counts"])
