"""What a disk may hold after the power failed at some moment of a recorded run.

The model is stricter than ext4 and xfs, and is that of POSIX: what was written to a file since its
last fsync may be there in any part, sector by sector; a name that was made, moved or removed since
the last fsync of its folder may not be, where the names of one folder reach the disk in order, and
a rename is one step.
"""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

SECTOR = 512
_HEAD = struct.Struct("<cQQQII")


class Change(NamedTuple):
    """One recorded call.

    Its kind: c made a file, d a folder, w wrote, t cut, s synced, r renamed, l linked, u removed.
    """

    kind: str
    file: int
    offset: int
    size: int
    path: str
    other: str
    data: bytes


def changes(log: Path) -> list[Change]:
    """Read what ``trace.c`` recorded."""
    raw, at, found = log.read_bytes(), 0, []
    while at < len(raw):
        kind, file, offset, size, one, two = _HEAD.unpack_from(raw, at)
        at += _HEAD.size
        path, at = raw[at : at + one].decode(), at + one
        other, at = raw[at : at + two].decode(), at + two
        held = size if kind == b"w" else 0
        found.append(Change(kind.decode(), file, offset, size, path, other, raw[at : at + held]))
        at += held
    return found


@dataclass(eq=False)
class File:
    """What is on the disk, and what was changed since: ``(offset, data)``, or ``(size, None)``."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def synced(self) -> None:
        """Take in everything that is pending."""
        for change in self.pending:
            apply(self.durable, change)
        self.pending.clear()


@dataclass(eq=False)
class Folder:
    """Names on the disk, and the steps since: pairs of a name and what it stands for, or None."""

    durable: dict[str, File | Folder] = field(default_factory=dict)
    pending: list[list[tuple[str, File | Folder | None]]] = field(default_factory=list)
    now: dict[str, File | Folder] = field(default_factory=dict)

    def step(self, *names: tuple[str, File | Folder | None]) -> None:
        """Change names at once."""
        self.pending.append(list(names))
        name_all(self.now, names)

    def synced(self) -> None:
        """Take in everything that is pending."""
        for names in self.pending:
            name_all(self.durable, names)
        self.pending.clear()


def name_all(
    names: dict[str, File | Folder], steps: Iterable[tuple[str, File | Folder | None]]
) -> None:
    """Let names stand for what they stand for after a step."""
    for name, node in steps:
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def apply(content: bytearray, change: tuple[int, bytes | None]) -> None:
    """Apply one change to the content of a file."""
    at, data = change
    end = at if data is None else at + len(data)
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    if data is None:
        del content[at:]
    else:
        content[at:end] = data


class Disk:
    """A disk while a run is played again.

    Parameters
    ----------
    always : set of str
        Files of the root that are written through: what the run says of itself.
    """

    def __init__(self, always: frozenset[str] = frozenset()) -> None:
        self.root = Folder()
        self.always = always
        self._by_number: dict[int, File | Folder] = {}

    def play(self, change: Change) -> None:
        """Do what the run did."""
        node = self._by_number.get(change.file)
        if change.kind in "cd":
            made: File | Folder = File() if change.kind == "c" else Folder()
            self._by_number[change.file] = made
            folder, name = self._place(change.path)
            folder.step((name, made))
            if change.path in self.always:
                folder.synced()
        elif change.kind == "w" and isinstance(node, File):
            node.pending.append((change.offset, change.data))
            if any(self.root.now.get(name) is node for name in self.always):
                node.synced()
        elif change.kind == "t" and isinstance(node, File):
            node.pending.append((change.offset, None))
        elif change.kind == "s" and node is not None:
            node.synced()
        elif change.kind == "s":
            # A folder that was there before the recording began: the root.
            self.root.synced()
        elif change.kind == "r":
            (source, old), (target, new) = self._place(change.path), self._place(change.other)
            moved = source.now[old]
            if source is target:
                source.step((old, None), (new, moved))
            else:
                target.step((new, moved))
                source.step((old, None))
        elif change.kind == "l":
            (source, old), (target, new) = self._place(change.path), self._place(change.other)
            target.step((new, source.now[old]))
        elif change.kind == "u":
            folder, name = self._place(change.path)
            folder.step((name, None))

    def _place(self, path: str) -> tuple[Folder, str]:
        *parents, name = path.split("/")
        folder = self.root
        for parent in parents:
            below = folder.now[parent]
            assert isinstance(below, Folder), path
            folder = below
        return folder, name

    def states(self, rng: random.Random, more: int) -> Iterator[Shape]:
        """Yield what may be left now: all, nothing, names without data, data without names, more.

        Parameters
        ----------
        rng : random.Random
            Draws the further ones.
        more : int
            How many of those.
        """
        for names, data in ((1.0, 1.0), (0.0, 0.0), (1.0, 0.0), (0.0, 1.0)):
            yield self._shape(self.root, rng, names, data)
        for _ in range(more):
            yield self._shape(self.root, rng, None, None)

    def _shape(
        self, folder: Folder, rng: random.Random, names: float | None, data: float | None
    ) -> Shape:
        steps = len(folder.pending)
        reached = rng.randint(0, steps) if names is None else round(names * steps)
        there = dict(folder.durable)
        for step in folder.pending[:reached]:
            name_all(there, step)
        return {
            name: self._shape(node, rng, names, data)
            if isinstance(node, Folder)
            else _content(node, rng, data)
            for name, node in sorted(there.items(), key=lambda pair: pair[0])
        }


Shape = dict[str, "bytes | Shape"]


def _content(file: File, rng: random.Random, data: float | None) -> bytes:
    content = bytearray(file.durable)
    for at, new in file.pending:
        if data == 1.0:
            apply(content, (at, new))
        elif data is None and rng.random() < 0.6:
            if new is None or rng.random() < 0.6:
                apply(content, (at, new))
                continue
            for first in range(0, len(new), SECTOR):
                if rng.random() < 0.5:
                    apply(content, (at + first, new[first : first + SECTOR]))
    return bytes(content)


def lay_out(shape: Shape, folder: Path) -> None:
    """Write a state into a folder, which is emptied before."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in shape.items():
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
        else:
            lay_out(content, folder / name)
