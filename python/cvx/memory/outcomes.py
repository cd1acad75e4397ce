"""What became of what was recalled for a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, SupportsIndex

from cvx.active import Attribution
from cvx.arguments import (
    a_flag,
    a_share,
    a_text,
    an_event,
    checked,
    optional,
    some_texts,
    whole,
    wrong,
)
from cvx.errors import DecisionTakenError, InvalidParameterError, UnknownError
from cvx.memory.contexts import Contexts, event_of
from cvx.recall.block import Block
from cvx.scoring import LoggedChoice, logged_choices
from cvx.store.learned import event_context
from cvx.types import Decision, Hit

_number_of = whole(0)


def _decision(name: str, value: Any) -> Block | Decision | int:
    if isinstance(value, Block | Decision):
        return value
    if isinstance(value, SupportsIndex):
        return int(_number_of(name, value))
    raise wrong(name, value, "what context returned, or the number of a decision")


def _followed(name: str, value: Any) -> list[Hit | int]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise wrong(name, value, "a list of hits or ids of events")
    return [one if isinstance(one, Hit) else an_event(name, one) for one in value]


class Outcomes(Contexts):
    """Feedback on contexts, and what can be asked about them afterwards."""

    @checked(
        decision=_decision,
        followed=optional(_followed),
        helped=optional(a_flag),
        action=optional(a_text),
        outcome=optional(a_share),
    )
    def feedback(
        self,
        decision: Block | Decision | int,
        *,
        followed: Iterable[Hit | int] | None = None,
        helped: bool | None = None,
        action: str | None = None,
        outcome: float | None = None,
    ) -> None:
        """Say what became of a context: what of it was followed, and whether that helped.

        Shown, followed and helped are counted apart: what was shown and not followed is not
        blamed, and nothing is praised for an outcome that it had no part in. What was followed may
        be said before the outcome is known; it counts as followed once it is.

        Parameters
        ----------
        decision : Block, Decision or int
            Of ``context``.
        followed : iterable of Hit or int, optional
            Hits, or ids of events, that the agent went by; default what was said before, at first
            none.
        helped : bool, optional
            Whether it succeeded; default whether ``outcome`` is above 0.5, unknown without one.
        action : str, optional
            What the agent did; default what was said before.
        outcome : float, optional
            How it ended, in [0, 1].

        Raises
        ------
        UnknownError
            No such decision.
        DecisionTakenError
            Whether it succeeded was said already; or it is of a loop, whose episode says so.
        InvalidParameterError
            Something was followed that the decision did not show; an outcome outside [0, 1].
        """
        number = _number(decision)
        if helped is None and outcome is not None:
            helped = outcome > 0.5
        if number not in self._noted.decided:
            self._decision_row(number)
        self._flush()
        with self.record.transaction() as write:
            row = self._decision_row(number)
            noted = row["record"]
            if row["episode"] is not None:
                raise DecisionTakenError(
                    f"decision {number} is of episode {row['episode']}, with the outcome of which "
                    "it was counted: say what was followed when it is acted on"
                )
            if "shown" not in noted:
                raise UnknownError(
                    f"a memory that decision {number} showed was erased: nothing can be said of it"
                )
            if noted.get("helped") is not None:
                raise DecisionTakenError(
                    f"there was feedback on decision {number} already: say once whether it helped, "
                    "when the outcome is known"
                )
            events = _events(noted.get("followed", ()) if followed is None else followed)
            strange = set(events) - set(noted["shown"])
            if strange:
                raise InvalidParameterError(
                    f"event {min(strange)} was followed, but decision {number} did not show it: "
                    f"it showed {noted['shown']}"
                )
            noted = {**noted, "followed": events, "helped": helped}
            nodes = {event.event_id: event.node for event in self.record.events(events)}
            write.take_feedback(
                number,
                noted,
                action=row["action"] if action is None else action,
                outcome=outcome,
                followed=[node for event in events if (node := nodes.get(event)) is not None],
            )
            if helped is not None:
                write.count_use({event_context(event): helped for event in events})
            if noted["refresh"] == "used":
                write.touch(dict.fromkeys(events, noted["now"]))

    def _decision_row(self, number: int) -> dict[str, Any]:
        row = self.record.decision(number)
        if row is None:
            raise UnknownError(
                f"there is no decision {number} in this memory: give what context returned, or a "
                "decision of a loop once its episode is closed"
            )
        return row

    @checked(decision=_decision)
    def attribution(self, decision: Block | Decision | int) -> Attribution:
        """Return which memories drove a decision of a context or of a loop, and whether it paid.

        Raises
        ------
        UnknownError
            No such decision; those of a loop are there once their episode is closed.
        """
        number = _number(decision)
        waiting = self._noted.decided.get(number)
        if waiting is not None:
            return _with_events(Attribution.of(*waiting), waiting[1])
        row = self._decision_row(number)
        found, noted = Attribution.logged(row), row["record"]
        if "shown" not in noted:
            # Of a loop; or of a context of which a memory was erased.
            events = self.record.events_of_nodes(found.shown)
            shown, followed = (
                dict.fromkeys(events[node] for node in nodes if node in events)
                for nodes in (found.shown, found.followed or ())
            )
            noted = {"retrieved": shown, "shown": shown, "followed": followed}
        return _with_events(found, noted)

    @checked(event_id=an_event)
    def decisions_with(self, event_id: int) -> list[Attribution]:
        """Return the decisions of contexts and of loops that a memory was shown in, oldest first.

        Those of a loop count once their episode is closed.
        """
        with self.record.mutex:
            rows = self.record.query(
                "SELECT decision_id FROM decisions WHERE EXISTS (SELECT 1 FROM json_each(hits)"
                " WHERE json_extract(value, '$[0]') IN (SELECT node FROM events WHERE event_id = ?1"
                " UNION ALL SELECT node FROM aliases WHERE event_id = ?1))",
                (event_id,),
            )
            waiting = [
                number
                for number, (_, noted) in self._noted.decided.items()
                if event_id in noted["shown"]
            ]
            numbers = sorted([*(row[0] for row in rows), *waiting])
            return [self.attribution(number) for number in numbers]

    @checked(names=some_texts)
    def logged_choices(self, names: Sequence[str]) -> list[LoggedChoice]:
        """Return what was sampled and has a known outcome; see ``cvx.scoring.logged_choices``."""
        return logged_choices(self.record, names)


def _events(followed: Iterable[Hit | int]) -> list[int]:
    return [one if isinstance(one, int) else event_of(one) for one in followed]


def _with_events(found: Attribution, noted: Mapping[str, Any]) -> Attribution:
    """Return it with the memories that were noted, which are events."""
    followed = noted.get("followed")
    return replace(
        found,
        retrieved=tuple(noted["retrieved"]),
        shown=tuple(noted["shown"]),
        followed=None if followed is None else tuple(followed),
    )


def _number(decision: Block | Decision | int) -> int:
    if isinstance(decision, int):
        return decision
    if isinstance(decision, Decision):
        return decision.decision_id
    if decision.decision is None:
        raise UnknownError("this block has no decision: its memory is a view of the past")
    return decision.decision.decision_id
