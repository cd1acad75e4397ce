"""What became of what was recalled for a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, SupportsIndex

import numpy as np

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
from cvx.memory.attribution import Attribution
from cvx.memory.contexts import Contexts, event_of
from cvx.recall.block import Block
from cvx.scoring.off_policy import LoggedChoice
from cvx.store.learned import event_context
from cvx.types import Cue, Decision, Hit

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
            Whether it succeeded was said already.
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
        if row is None or "shown" not in row["record"]:
            raise UnknownError(
                f"there is no decision {number} of a context in this memory: give what context "
                "returned"
            )
        return row

    @checked(decision=_decision)
    def attribution(self, decision: Block | Decision | int) -> Attribution:
        """Return which memories drove a decision, and whether it paid.

        Raises
        ------
        UnknownError
            No such decision.
        """
        number = _number(decision)
        noted = self._noted.decided.get(number)
        if noted is not None:
            return Attribution.of(number, noted[0].cue, noted[1])
        row = self._decision_row(number)
        cue = Cue(**{name: row["cue"][name] for name in ("goal", "step", "text", "place")})
        cue = replace(cue, questions=tuple(row["cue"]["questions"]))
        return Attribution.of(number, cue, row["record"], row["action"], row["outcome"])

    @checked(event_id=an_event)
    def decisions_with(self, event_id: int) -> list[Attribution]:
        """Return the decisions that a memory was shown in, oldest first."""
        rows = self.record.query(
            "SELECT decision_id FROM decisions, json_each(record, '$.shown') AS shown"
            " WHERE shown.value = ? ORDER BY decision_id",
            (event_id,),
        )
        with self.record.mutex:
            waiting = [
                number
                for number, (_, noted) in self._noted.decided.items()
                if event_id in noted["shown"]
            ]
        return [self.attribution(number) for number in [*(row[0] for row in rows), *waiting]]

    @checked(names=some_texts)
    def logged_choices(self, names: Sequence[str]) -> list[LoggedChoice]:
        """Return the sampled contexts with a known outcome, for ``cvx.scoring.off_policy_value``.

        Parameters
        ----------
        names : sequence of str
            Features, in the order of the columns wanted; contexts without one are left out.
        """
        out = []
        for row in self.record.decisions():
            drawn, reward = row["record"].get("drawn_from"), row["outcome"]
            if drawn is None or reward is None or not set(names) <= set(drawn["names"]):
                continue
            columns = [drawn["names"].index(name) for name in names]
            features = np.nan_to_num(np.array(drawn["features"], dtype=np.float64)[:, columns])
            group = row["decision_id"] if row["episode"] is None else row["episode"]
            out.append(
                LoggedChoice(features, drawn["first"], drawn["propensity"], float(reward), group)
            )
        return out


def _events(followed: Iterable[Hit | int]) -> list[int]:
    return [one if isinstance(one, int) else event_of(one) for one in followed]


def _number(decision: Block | Decision | int) -> int:
    if isinstance(decision, int):
        return decision
    if isinstance(decision, Decision):
        return decision.decision_id
    if decision.decision is None:
        raise UnknownError("this block has no decision: its memory is a view of the past")
    return decision.decision.decision_id
