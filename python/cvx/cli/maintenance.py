"""Commands that maintain a store: forget, compact and doctor."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cvx.cli.console import (
    NOTHING,
    Json,
    Store,
    counted,
    emit,
    folder_of,
    line,
    note,
    opened,
    progress,
    tell,
    timestamp_of,
)
from cvx.escaping import one_line

if TYPE_CHECKING:
    from cvx.memory import Memory
    from cvx.store.doctor import Finding


_BUDGET = re.compile(r"(\d+)\s*(|events|B|KB|MB|GB)")
_UNITS = {"B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3}
_MOST_EVENTS = 10
_AMONG = {"erased": "true", "brought back": "state <> 'active'", "put away": "state = 'active'"}
"""Which events a selection is from: what was put away is still there to be erased."""

_CACHES = (
    "the file of a CachedEmbedder outside the store's folder is not known here: delete it if a "
    "program keeps one for this store, or erase with Memory.erase, opened with that embedder"
)


def forget(
    ids: Annotated[list[int] | None, typer.Argument(help="Events, by their ids.")] = None,
    source: Annotated[str | None, typer.Option(help="Everything from this source.")] = None,
    before: Annotated[
        str | None, typer.Option(help="Everything that happened before: a date, or an integer.")
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="With --source or --before: only of this one."),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="The least useful, of equals the longest unused, until 10000 or 50MB are left."
        ),
    ] = None,
    erase: Annotated[
        bool, typer.Option("--erase", help="Erase for good, instead of putting away.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Bring back what was put away.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Erase without asking.")] = False,
    store: Store = None,
    json: Json = False,
) -> None:
    """Put events away: nothing recalls them any more. With --erase they are gone for good.

    For example:
      cvx forget 3 5
      cvx forget --source diary --before 2025-01-01 --erase --dry-run
      cvx forget --budget 50MB

    What was put away is kept and can be brought back with --undo. An erase removes text, vectors,
    links, what was logged and learned of them, and snapshots from every file of the store; the file
    of a CachedEmbedder elsewhere is not cleaned from here. Exit code 1 where nothing is meant.
    """
    from cvx.store.erase import check_erasable

    if erase and undo:
        raise typer.BadParameter("--erase and --undo exclude each other: what is erased is gone")
    did = "erased" if erase else "brought back" if undo else "put away"
    with opened(store, embeds=False) as memory:
        moment = timestamp_of(before, "--before")
        listed = ids or []
        chosen = _chosen(memory, listed, (source, moment, namespace), budget, did)
        texts = {e.event_id: e.text for e in memory.record.events(chosen[:_MOST_EVENTS])}
        if erase and dry_run:
            check_erasable(memory.record, chosen)
        _ask(len(chosen), erase=erase and not dry_run and not yes)
        complete = True
        if chosen and not dry_run:
            if erase:
                complete = memory.erase(chosen).complete
            elif undo:
                with memory.admin.transaction():
                    for event in chosen:
                        memory.update(event, state="active")
            else:
                memory.forget(chosen)
    if json:
        emit({"ids": chosen, "done": did, "dry_run": dry_run, "complete": complete})
    else:
        for event in chosen[:_MOST_EVENTS]:
            line(f"{event:>6}  {one_line(texts.get(event, ''), 90)}", dim=True)
        if len(chosen) > _MOST_EVENTS:
            line(f"        and {len(chosen) - _MOST_EVENTS} more", dim=True)
        line(f"{counted(len(chosen), 'event')} {'would be ' if dry_run else ''}{did}")
    if erase and chosen and not dry_run:
        note(_CACHES)
    if not complete:
        note("another process is reading: close it, and any next cvx command finishes the erase")
    if not chosen:
        raise typer.Exit(NOTHING)


def _chosen(
    memory: Memory,
    ids: list[int],
    where: tuple[str | None, int | None, str | None],
    budget: str | None,
    did: str,
) -> list[int]:
    source, moment, namespace = where
    selecting = source is not None or moment is not None
    if bool(ids) + selecting + (budget is not None) != 1:
        raise typer.BadParameter("give event ids, or --source and/or --before, or --budget")
    if namespace is not None and not selecting:
        raise typer.BadParameter("--namespace goes with --source or --before")
    if ids:
        for event in [] if did == "erased" else ids:
            memory.get(event)
        return ids
    if budget is not None:
        return _over(memory, budget, undo=did == "brought back")
    condition, values = _AMONG[did], list[object]()
    for name, sign, value in (
        ("source", "=", source),
        ("timestamp", "<", moment),
        ("namespace", "=", namespace),
    ):
        if value is not None:
            condition += f" AND {name} {sign} ?"
            values.append(value)
    found = memory.record.query(
        f"SELECT event_id FROM events WHERE {condition} ORDER BY event_id", values
    )
    return [row[0] for row in found]


def _over(memory: Memory, budget: str, *, undo: bool) -> list[int]:
    found = _BUDGET.fullmatch(budget.strip())
    if found is None or undo:
        raise typer.BadParameter(
            f"--budget {budget!r}: give a number of events, or 50MB; no --undo"
        )
    amount, unit = int(found[1]), found[2]
    plan = (
        memory.admin.budget(bytes=amount * _UNITS[unit], dry_run=True)
        if unit in _UNITS
        else memory.admin.budget(events=amount, dry_run=True)
    )
    return list(plan.events)


def _ask(count: int, *, erase: bool) -> None:
    if not erase or not count:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"this erases {counted(count, 'event')} for good: say --yes")
    typer.confirm(f"Erase {counted(count, 'event')} for good?", abort=True, err=True)


def compact(store: Store = None, json: Json = False) -> None:
    """Give back unused room on the disk.

    For example:
      cvx compact --json

    The database is written anew without free pages, and one fresh snapshot of the index is kept.
    """
    with opened(store, embeds=False) as memory:
        done = memory.admin.compact()
    tell(
        {"before": done.before, "after": done.after, "complete": done.complete},
        f"{done.before:,} bytes before, {done.after:,} after",
        as_json=json,
    )
    if not (done.complete or json):
        note("another process is reading: the log could not be emptied; run it again later")


_MOST_SHOWN = 50


def doctor(
    repair: Annotated[
        Path | None,
        typer.Option(
            metavar="NEW_FOLDER",
            help="Save what is sound into a new store there; the damaged one stays as it is.",
        ),
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
    """Look for damage in the store. Exit code 1 where there are problems.

    For example:
      cvx doctor
      cvx doctor --repair ~/repaired
      cvx doctor --look-for - < erased.txt

    Looking changes nothing and needs no embedder. A repair writes a new store of all that can be
    read and is right; move the old folder away and the new one to its place.
    """
    from cvx.store.doctor import check
    from cvx.store.doctor import repair as save

    folder = folder_of(store)
    if repair is not None:
        if look_for:
            raise typer.BadParameter("--look-for goes without --repair")
        if str(repair).startswith("-"):
            raise typer.BadParameter(f"--repair {repair}: name the new folder before other options")
        saved = save(folder, repair)
        tell(
            {
                "store": str(repair),
                "rows": saved.counts,
                "wrong": saved.wrong,
                "broken": list(saved.broken),
            },
            f"saved {counted(sum(saved.counts.values()), 'row')} into {repair}",
            *(f"parts of {table} could not be read" for table in saved.broken),
            *(
                f"left out {counted(number, 'row')} of {table}: damaged, or of something lost"
                for table, number in saved.wrong.items()
                if number
            ),
            as_json=json,
        )
        return
    with progress("checking") as tick:
        texts = [text for one in look_for or () for text in _texts(one)]
        report = check(folder, look_for=texts, progress=tick)
    if json:
        emit(
            {
                "store": str(folder),
                "sound": report.sound,
                "rows": dict(report.rows),
                "findings": [
                    {"check": one.check, "where": one.where, "what": one.what}
                    | {"harmless": one.harmless}
                    for one in report.findings
                ],
            }
        )
    else:
        line(f"read {counted(sum(report.rows.values()), 'row')} of {folder}")
        for one in report.findings[:_MOST_SHOWN]:
            mark = " (harmless)" if one.harmless else ""
            line(f"found      {one.check}{mark}: {one.where}: {one_line(one.what)}")
        if len(report.findings) > _MOST_SHOWN:
            line(f"and {len(report.findings) - _MOST_SHOWN} more; --json lists them all")
        line("sound" if report.sound else _advice(report.findings), bold=True)
    if not report.sound:
        raise typer.Exit(NOTHING)


def _texts(given: str) -> list[str]:
    if given != "-":
        return [given]
    read = [text for text in sys.stdin.read().splitlines() if text.strip()]
    if not read:
        raise typer.BadParameter("--look-for -: the input is empty, give a text a line")
    return read


_ADVICE = (
    (
        {"lost_tail"},
        "changes are lost: put a copy of memory.db back, or go on without them with "
        "cvx doctor --repair NEW_FOLDER",
    ),
    ({"file"}, "nothing can be read of the file any more: restore a copy"),
    (
        {"misplaced"},
        "something else has the place of a file of the store: move it away, then look again",
    ),
)


def _advice(found: tuple[Finding, ...]) -> str:
    checks = {str(one.check) for one in found if not one.harmless}
    if checks == {"remains"}:
        return "something is left of what was looked for"
    if checks == {"erase_unfinished"}:
        return "open the store: any cvx command finishes the erase"
    general = "restore a copy, or save what is sound with cvx doctor --repair NEW_FOLDER"
    return next((told for kinds, told in _ADVICE if checks & kinds), general)
