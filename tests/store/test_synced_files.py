"""What a call has made is on the disk when it returns, its name and its folders too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from cvx.memory import Memory
from cvx.memory.transfer import import_export
from tests.store.processes import embedder


class Disk:
    """What was synced, by inode, and whether something was renamed before it was."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.synced: set[int] = set()
        self.unsynced_names: list[str] = []
        sync, rename = os.fsync, os.rename

        def fsync(file: Any) -> None:
            sync(file)
            number = file if isinstance(file, int) else file.fileno()
            self.synced.add(os.fstat(number).st_ino)

        def renamed(a: Any, b: Any, **options: Any) -> None:
            source = Path(a)
            inside = [source, *source.rglob("*")] if source.is_dir() else [source]
            self.unsynced_names += [str(p) for p in inside if p.stat().st_ino not in self.synced]
            # What a folder holds has changed by this: it is to be synced again.
            rename(a, b, **options)
            self.synced.discard(Path(b).parent.stat().st_ino)

        patch.setattr(os, "fsync", fsync)
        patch.setattr(os, "rename", renamed)

    def holds(self, path: Path) -> bool:
        return path.stat().st_ino in self.synced


@pytest.mark.requirement("B18")
@pytest.mark.parametrize("name", ["all.jsonl", "all.parquet", "all.duckdb"])
def test_an_export_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "out").mkdir()
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        memory.add("a mug on the shelf")
        disk = Disk(monkeypatch)
        memory.admin.export(tmp_path / "out" / name)
        assert disk.unsynced_names == []
        assert disk.holds(tmp_path / "out")
        assert disk.holds(tmp_path / "out" / name)


@pytest.mark.requirement("B18")
def test_the_folders_of_a_new_store_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        memory.add("a mug on the shelf")
        memory.admin.export(tmp_path / "all.jsonl")
    disk = Disk(monkeypatch)
    with Memory.open(tmp_path / "a" / "b" / "m", embedder=embedder()) as memory:
        memory.add("a mug")
        assert all(map(disk.holds, (tmp_path, tmp_path / "a", tmp_path / "a" / "b")))
    import_export(tmp_path / "c" / "d", tmp_path / "all.jsonl")
    assert all(map(disk.holds, (tmp_path, tmp_path / "c", tmp_path / "c" / "d")))
