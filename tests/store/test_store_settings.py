"""Clock, preset and tokenizer are set once, when a store is made, and kept in it."""

import inspect
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cvx.errors import InvalidInputError, SettingsMismatchError
from cvx.memory import Memory
from cvx.memory.transfer import import_export
from tests.golden.make_store import FOLDER
from tests.store.processes import embedder

pytestmark = pytest.mark.requirement("B20")
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def test_the_parameters_of_opening_are_those_of_the_design() -> None:
    opened = inspect.signature(Memory.open).parameters
    made = inspect.signature(Memory).parameters
    shared = ["embedder", "dim", "metric", "clock", "preset", "tokenizer", "seed"]
    assert [*opened] == ["path", *shared, "create", "read_only"]
    assert [*made] == shared


@pytest.mark.parametrize("clock", ["ticks", "turns"])
def test_a_clock_that_counts_gives_each_event_the_next_number(clock: str, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder(), clock=clock) as memory:
        assert [memory.add(f"a mug {n}").timestamp for n in range(2)] == [1, 2]
        assert memory.add("a cup", timestamp=7).timestamp == 7
    with Memory.open(tmp_path / "m") as again:
        assert again.add("a pot").timestamp == 8
        assert f"[{clock[:-1]} 8]" in again.context("a pot")
        for call in (
            lambda: again.add("a jug", timestamp=NOON),
            lambda: again.recall("a jug", where={"since": NOON}),
            lambda: again.events([{"until": NOON}]),
        ):
            with pytest.raises(InvalidInputError, match=f"counts {clock}"):
                call()
        assert len(again.events({"since": 7})) == 2


@pytest.mark.parametrize("clock", ["ticks", "turns"])
def test_steps_of_an_episode_count_as_events_do(clock: str) -> None:
    memory = Memory(embedder=embedder(), clock=clock)
    memory.add("a mug", timestamp=7)
    with memory.episode("tidy up") as episode:
        assert episode.act("take the mug", observation="a table").timestamp == 8
        assert episode.act("wash it", observation="a sink", timestamp=20).timestamp == 20
        with pytest.raises(InvalidInputError, match=f"counts {clock}"):
            episode.act("dry it", observation="a sink", timestamp=NOON)
        episode.end(1.0)
    memory.add("a cup", timestamp=3)
    assert memory.add("a pot").timestamp == 21


def test_an_export_takes_the_settings_along(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder(), clock="turns") as memory:
        memory.add("a mug")
        memory.admin.export(tmp_path / "all.jsonl")
    import_export(tmp_path / "copy", tmp_path / "all.jsonl")
    with Memory.open(tmp_path / "copy") as copy:
        assert copy.add("a cup").timestamp == 2


def test_a_clock_of_time_takes_datetimes() -> None:
    memory = Memory(embedder=embedder(), clock="utc")
    assert memory.add("a mug", timestamp=NOON).timestamp == int(NOON.timestamp()) * 1_000_000
    assert memory.add("a cup").timestamp > int(NOON.timestamp()) * 1_000_000
    assert "2026-11-20 12:00" in memory.context("a mug")


def test_another_value_later_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder(), clock="turns", preset="tcmf-seed"):
        pass
    for option in ({"clock": "utc"}, {"preset": "default"}, {"tokenizer": _tokenizer(tmp_path)}):
        with pytest.raises(SettingsMismatchError, match=rf"{next(iter(option))} is .*leave it"):
            Memory.open(tmp_path / "m", **option)
    with Memory.open(tmp_path / "m", clock="turns", preset="tcmf-seed", read_only=True) as memory:
        assert len(memory) == 0


def test_a_store_of_older_code_counts_microseconds(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "old")
    with pytest.raises(SettingsMismatchError, match=r"clock is 'ticks'.*made with 'utc'"):
        Memory.open(tmp_path / "old", clock="ticks")
    with Memory.open(tmp_path / "old", clock="utc", preset="default") as memory:
        assert memory.learning.pipeline is not None


def test_a_preset_is_how_the_store_recalls_until_another_is_set(tmp_path: Path) -> None:
    path = tmp_path / "m"
    with Memory.open(path, embedder=embedder(), preset="retrieval-augmented") as memory:
        memory.add("a red mug", salience=0.9)
        (hit,) = memory.recall("a red mug")
        assert {factor.name for factor in hit.factors} == {"similarity", "recency", "salience"}
    with Memory.open(path) as again:
        assert again.learning.pipeline.floor.score == 0.35


def test_a_tokenizer_counts_the_budget(tmp_path: Path) -> None:
    path = _tokenizer(tmp_path)
    with Memory.open(tmp_path / "m", embedder=embedder(), tokenizer=path) as memory:
        memory.add("a red mug on the shelf")
    with Memory.open(tmp_path / "m") as again:
        context = again.context("a red mug", 100)
        assert context.used_tokens == len(context.split())


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"clock": "seconds"}, "clock is 'seconds': give 'utc' or 'ticks' or 'turns'"),
        ({"clock": len}, "clock is <built-in function len>: give 'utc'"),
        ({"preset": "best"}, "preset is 'best': give 'default' or"),
        ({"tokenizer": 3}, "tokenizer is 3: give the path"),
        ({"tokenizer": "/nowhere"}, "tokenizer is '/nowhere', which cannot be read"),
    ],
)
def test_what_is_no_setting_is_refused(option: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said.replace("(", "[(]")):
        Memory(embedder=embedder(), **option)  # type: ignore[arg-type]


def _tokenizer(folder: Path) -> Path:
    """Write a tokenizer that counts what white space parts."""
    path = folder / "tokenizer.json"
    model = {"type": "WordLevel", "vocab": {"?": 0}, "unk_token": "?"}
    told: dict[str, object] = {
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
            "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"},
            "post_processor": None, "decoder": None, "model": model}  # fmt: skip
    path.write_text(json.dumps(told), encoding="utf-8")
    return path
