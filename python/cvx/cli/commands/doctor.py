"""cvx doctor."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cvx.cli.failing import NOTHING
from cvx.cli.opening import folder_of
from cvx.cli.options import Json, Store
from cvx.cli.output import counted, emit, line, progress
from cvx.escaping import one_line

if TYPE_CHECKING:
    from cvx.store.doctor import Finding

_MOST_SHOWN = 50


def doctor(
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair what can be; say what was done.")
    ] = False,
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Also compare the index with one built from the record."),
    ] = False,
    accept_lost_tail: Annotated[
        bool,
        typer.Option(
            "--accept-lost-tail",
            help="With --repair: go on although the newest changes are known to be missing.",
        ),
    ] = False,
    discard: Annotated[
        bool,
        typer.Option("--discard", help="Throw away for good what repairs moved to set_aside."),
    ] = False,
    salvage: Annotated[
        Path | None,
        typer.Option(help="Save what can still be read into this new folder; for damaged pages."),
    ] = None,
    look_for: Annotated[
        list[str] | None,
        typer.Option(
            "--look-for",
            help="Name what still says this text, such as one that was erased; repeatable. "
            "- reads one from each line of the input, which no history of a shell keeps.",
        ),
    ] = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Look for damage in the store, and repair it. Exit code 1 where problems are left.

    For example:
      cvx doctor
      cvx doctor --repair --json
      cvx doctor --look-for - < erased.txt

    Looking changes nothing and needs no embedder. A repair deletes nothing that was stored: a
    row that cannot be put right moves to the table set_aside, until --discard.
    """
    from cvx.memory.check import check

    if discard or salvage is not None:
        if repair or deep or accept_lost_tail or look_for or (discard and salvage is not None):
            raise typer.BadParameter("--discard and --salvage go alone")
        if salvage is None:
            _discard(folder_of(store), as_json=json)
        else:
            _salvage(folder_of(store), salvage, as_json=json)
        return
    if accept_lost_tail and not repair:
        raise typer.BadParameter("--accept-lost-tail goes with --repair")
    if look_for and repair:
        raise typer.BadParameter("--look-for goes without --repair, which removes no text")
    folder = folder_of(store)
    with progress("checking") as tick:
        report = check(
            folder,
            mend=repair,
            deep=deep,
            accept_lost_tail=accept_lost_tail,
            look_for=[text for one in look_for or () for text in _texts(one)],
            progress=tick,
        )
    if json:
        emit(
            {
                "store": str(folder),
                "sound": report.sound,
                "rows": dict(report.rows),
                "findings": [_plain(one) for one in report.findings],
                "done": list(report.done),
                "left": [_plain(one) for one in report.left],
            }
        )
    else:
        line(f"read {counted(sum(report.rows.values()), 'row')} of {folder}")
        _show("found", report.findings)
        for said in report.done:
            line(f"repaired   {one_line(said)}")
        if report.done:
            _show("still there", report.left)
        line("sound" if report.sound else _advice(report.left, repair=repair), bold=True)
    if not report.sound:
        raise typer.Exit(NOTHING)


def _texts(given: str) -> list[str]:
    if given != "-":
        return [given]
    read = [text for text in sys.stdin.read().splitlines() if text.strip()]
    if not read:
        raise typer.BadParameter("--look-for -: the input is empty, give a text a line")
    return read


def _discard(folder: Path, *, as_json: bool) -> None:
    from cvx.store import Record
    from cvx.store.database import describe
    from cvx.store.doctor.rowrepair import discard

    describe(folder)
    with Record(folder / "memory.db") as record:
        number = discard(record)
    if as_json:
        emit({"store": str(folder), "discarded": number})
    else:
        line(f"threw away {counted(number, 'row')} that had been set aside")


def _salvage(folder: Path, target: Path, *, as_json: bool) -> None:
    from cvx.memory.check import rescue

    saved = rescue(folder, target)
    if as_json:
        emit(
            {
                "store": str(target),
                "rows": saved.counts,
                "wrong": saved.wrong,
                "broken": list(saved.broken),
            }
        )
        return
    line(f"saved {counted(sum(saved.counts.values()), 'row')} into {target}")
    for table in saved.broken:
        line(f"parts of {table} could not be read")
    for table, number in saved.wrong.items():
        if number:
            line(f"left out {counted(number, 'row')} of {table} that were not what was written")


def _plain(one: Finding) -> dict[str, Any]:
    return {
        "check": str(one.check),
        "where": one.where,
        "what": one.what,
        "harmless": one.harmless,
    }


def _show(title: str, findings: tuple[Finding, ...]) -> None:
    for one in findings[:_MOST_SHOWN]:
        mark = " (harmless)" if one.harmless else ""
        line(f"{title:<10} {one.check}{mark}: {one.where}: {one_line(one.what)}")
    if len(findings) > _MOST_SHOWN:
        line(f"{title:<10} and {len(findings) - _MOST_SHOWN} more; --json lists them all")


def _advice(left: tuple[Finding, ...], *, repair: bool) -> str:
    checks = {str(one.check) for one in left}
    if checks & {"lost_tail", "snapshot_ahead"}:
        return (
            "changes are lost: put a copy of memory.db back, or go on without them with "
            "cvx doctor --repair --accept-lost-tail"
        )
    if checks & {"file", "page"}:
        return (
            "the file itself is damaged, which is beyond repair: restore a copy, or save what can "
            "be read with cvx doctor --salvage NEW_FOLDER"
        )
    if "misplaced" in checks:
        return "something else has the place of a file of the store: move it away, then look again"
    if {str(one.check) for one in left if not one.harmless} == {"remains"}:
        return "something is left of what was looked for"
    return "problems are left" if repair else "run cvx doctor --repair"
