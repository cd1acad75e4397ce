"""``memory.feedback``: what helped of a recall; and which memories each decision rests on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, SupportsIndex

from cvx.arguments import a_flag, an_event, are_several, whole, wrong
from cvx.errors import (
    CvxError,
    EpisodeEndedError,
    InvalidInputError,
    ReadOnlyError,
    UnknownError,
)
from cvx.learn.attribution import Attribution
from cvx.memory.namespace_access import Identity
from cvx.memory.recall_verbs import RecallVerbs
from cvx.memory.resources import Resources
from cvx.recall import Context, Hits
from cvx.store import Writer
from cvx.store.rows import event_context
from cvx.types import Decision

_whole = whole(0)


def a_decision(name: str, value: Any, refused: type[CvxError] = UnknownError) -> int:
    """Check a decision, by whatever names it, and return its number.

    What was recalled and not written down has none: that is a ``refused``.
    """
    if isinstance(value, Decision):
        return value.decision_id
    if isinstance(value, Context | Hits):
        if value.decision is None:
            raise refused(
                "this recall was not written down: its memory is a view of the past, or read only "
                "(open it without read_only)"
            )
        return value.decision
    if isinstance(value, SupportsIndex):
        return int(_whole(name, value))
    raise wrong(name, value, "what context or recall returned, or the number of a decision")


a_decision_to_judge = partial(a_decision, refused=ReadOnlyError)
"""The same for feedback, which is a write."""


def some_followed(name: str, value: Any) -> list[int]:
    """Check what was followed, as hits or events, and return the ids of events."""
    if isinstance(value, str | bytes | Mapping) or not are_several(value):
        raise wrong(name, value, "a list of hits or ids of events")
    return [an_event(f"{name}[{at}]", one) for at, one in enumerate(value)]


def a_help(name: str, value: Any) -> bool | list[int]:
    """Check what helped, or whether anything did, and return a flag or the ids of events."""
    if isinstance(value, str | bytes | Mapping):
        raise wrong(name, value, "True, False, or a list of hits or ids of events")
    if are_several(value):
        return some_followed(name, value)
    return bool(a_flag(name, value))


def take_feedback(
    shared: Resources,
    recaller: RecallVerbs,
    number: int,
    identity: Identity,
    *,
    followed: list[int] | None,
    helped: bool | list[int] | None,
    action: str | None,
    outcome: float | None,
) -> None:
    """Write down what became of a recall, and learn from it; see ``Memory.feedback``."""
    how = "was followed"
    if isinstance(helped, list):
        how = "is said to have helped"
        if followed is not None:
            raise InvalidInputError("helped names events, and so does followed: give one of them")
        followed, helped = helped, bool(helped)
    elif helped is None and outcome is not None:
        helped = outcome > 0.5
    with shared.record.mutex:
        # While another thread writes it down it is in neither place.
        waiting = shared.noted.decided.get(number)
        if waiting is None or not _is_of(shared, {"record": waiting[1]}, identity):
            _decision_row(shared, number, identity)
    shared.flush()
    with shared.record.transaction() as write:
        row = _decision_row(shared, number, identity)
        noted = row["record"]
        if row["episode"] is not None:
            raise EpisodeEndedError(
                f"decision {number} is of episode {row['episode']}, with the outcome of which "
                "it was counted: say what was followed when it is acted on"
            )
        if "shown" not in noted:
            raise UnknownError(
                f"a memory that decision {number} showed was erased: nothing can be said of it"
            )
        before, was = list(noted.get("followed", ())), noted.get("helped")
        events = before if followed is None else followed
        # The last word counts, and what it leaves open stays as it was said before.
        helped = was if helped is None else helped
        shown = noted["shown"] or recaller.nearest_of(number)
        strange = set(events) - set(shown)
        if strange:
            raise InvalidInputError(
                f"event {min(strange)} {how}, but decision {number} did not show it: "
                f"it showed {shown}"
            )
        noted = {**noted, "followed": events, "helped": helped}
        listed = shared.record.events(events)
        nodes = {event.event_id: event.node for event in listed}
        write.take_feedback(
            number,
            noted,
            action=row["action"] if action is None else action,
            outcome=row["outcome"] if outcome is None else outcome,
            followed=[node for event in events if (node := nodes.get(event)) is not None],
        )
        if was is not None:
            _count(shared, recaller, write, noted["namespace"], before, bool(was), by=-1)
        if helped is not None:
            _count(shared, recaller, write, noted["namespace"], events, bool(helped))
        if noted["refresh"] == "used":
            write.touch(dict.fromkeys(events, noted["now"]))
    taught = before if was else []
    if taught != (events if helped else []):
        recaller.learn(number, noted["namespace"], events if helped else [], shown, taught)


def _count(
    shared: Resources,
    recaller: RecallVerbs,
    write: Writer,
    namespace: str,
    events: Iterable[int],
    helped: bool,
    *,
    by: int = 1,
) -> None:
    """Count that events were followed, and whether that helped; ``by=-1`` takes it back."""
    listed = shared.record.events(events)
    if not listed:
        return
    write.count_use({event_context(event.id): helped for event in listed}, by=by)
    sources = {event.source for event in listed}
    recaller.judge(write, namespace, lambda known: known.count(sources, helped=helped, by=by))


def attribution_of(shared: Resources, number: int, identity: Identity) -> Attribution:
    """Return which memories drove a decision, and whether it paid; see ``Learning``."""
    with shared.record.mutex:
        waiting = shared.noted.decided.get(number)
        if waiting is not None and _is_of(shared, {"record": waiting[1]}, identity):
            return _with_events(Attribution.of(*waiting), waiting[1])
        row = _decision_row(shared, number, identity)
    found, noted = Attribution.logged(row), row["record"]
    if "shown" not in noted:
        # Of a loop; or of a context of which a memory was erased.
        events = shared.record.events_of_nodes(found.shown)
        shown, followed = (
            dict.fromkeys(events[node] for node in nodes if node in events)
            for nodes in (found.shown, found.followed or ())
        )
        noted = {"retrieved": shown, "shown": shown, "followed": followed}
    return _with_events(found, noted)


def decisions_that_showed(
    shared: Resources, event_id: int, identity: Identity
) -> list[Attribution]:
    """Return the decisions that an event was shown in, oldest first."""
    with shared.record.mutex:
        rows = shared.record.query(
            "SELECT decision_id FROM decisions WHERE EXISTS (SELECT 1 FROM json_each(hits)"
            " WHERE json_extract(value, '$[0]') IN (SELECT node FROM events WHERE event_id = ?1"
            " UNION ALL SELECT node FROM aliases WHERE event_id = ?1))",
            (event_id,),
        )
        waiting = [
            number
            for number, (_, noted) in [*shared.noted.decided.items()]
            if event_id in noted["shown"]
        ]
        told = []
        for number in sorted([*(row[0] for row in rows), *waiting]):
            with suppress(UnknownError):
                told.append(attribution_of(shared, number, identity))
        return told


def _is_of(shared: Resources, row: Mapping[str, Any], identity: Identity) -> bool:
    """Whether a decision was asked for in the name of a memory, or this is the root."""
    if not identity.bound:
        return True
    # A context notes who asked; a loop's decision is that of its episode.
    asked = row["record"].get("namespace")
    if asked is None:
        found = shared.record.query(
            "SELECT namespace FROM episodes WHERE episode_id = ?", (row["episode"],)
        )
        asked = found[0][0] if found else None
    return bool(asked == identity.namespace)


def _decision_row(shared: Resources, number: int, identity: Identity) -> dict[str, Any]:
    row = shared.record.decision(number)
    if row is None or not _is_of(shared, row, identity):
        raise UnknownError(
            f"there is no decision {number} in this memory: give what context returned, or a "
            "decision of a loop once its episode is closed; another process writes down what it "
            "was asked with its next change, or when it closes"
        )
    return row


def _with_events(found: Attribution, noted: Mapping[str, Any]) -> Attribution:
    """Return it with the memories that were noted, which are events."""
    followed = noted.get("followed")
    return replace(
        found,
        retrieved=tuple(noted["retrieved"]),
        shown=tuple(noted["shown"]),
        followed=None if followed is None else tuple(followed),
    )
