"""Advice, the answer of `episode.advise`: ranked actions and past plans, as text for a prompt."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice
from random import Random
from typing import Any, Self

import numpy as np

from cvx.errors import UnknownError
from cvx.escaping import html_table, quoted_line
from cvx.learn.advisor.types import Basis, Unit
from cvx.render import first_within
from cvx.render.decision import action_chain
from cvx.types import Episode, Hit

_TOLD_OPTIONS = 12
_TOLD_PLANS = 2
_TOLD_FAILURES = 5
_KEPT_PLANS = 16
_LONGEST_PLAN = 24

FAILED = 0.5
"""An outcome up to here is a failure."""
ANYWHERE = None
"""Stands for the beginning of an episode, where a state is meant."""

Found = Callable[[Hashable, Sequence[str]], tuple[Hit, ...]]


class Option:
    """One action, and what it is worth from here.

    Attributes
    ----------
    action : str, int, float, bool or tuple of these
        What to do.
    value : float
        The chance of success, or the expected sum of the rewards from here, if the best known is
        done afterwards. Where nothing is known, the middle of what can be had.
    low, high : float
        Bounds that hold with 90%.
    trials : int
        How often it was done in this state.
    basis : str
        The narrowest evidence that it rests on: this "state", what is "near", its "region", the
        "task", "other tasks"; or "everywhere", where no episode tells anything.
    source : str
        The labelled source that alone tells of it here, where that is not the asker's; else empty.
    hits : tuple of Hit
        Steps of earlier episodes that it rests on, the latest first, scored by its value.
    """

    __slots__ = (
        "_episodes", "_find", "_hits", "action", "basis", "high", "low", "source", "trials",
        "value",
    )  # fmt: skip

    def __init__(
        self,
        action: Hashable,
        value: float,
        bounds: tuple[float, float],
        trials: int,
        basis: Basis,
        episodes: Sequence[str],
        find: Found,
        source: str = "",
    ) -> None:
        self.action, self.source = action, source
        self.value = float(value)
        self.low, self.high = float(bounds[0]), float(bounds[1])
        self.trials, self.basis = int(trials), basis
        self._episodes, self._find = episodes, find
        self._hits: tuple[Hit, ...] | None = None

    @property
    def hits(self) -> tuple[Hit, ...]:
        """Steps of earlier episodes that it rests on, the latest first."""
        if self._hits is None:
            self._hits = self._find(self.action, self._episodes)
        return self._hits

    def __reduce__(self) -> tuple[Any, ...]:
        # Elsewhere there is no memory to look its hits up in: they travel with it.
        bounds = self.low, self.high
        told = self.action, self.value, bounds, self.trials, self.basis, (), _no_hits, self.source
        return Option, told, (None, {"_hits": self.hits})

    def __eq__(self, other: object) -> bool:
        # What memory says of an action, not which steps it looked up for it.
        return repr(self) == repr(other) if isinstance(other, Option) else NotImplemented

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        if _unknown(self):
            return f"<Option {self.action!r}: nothing known>"
        return (
            f"<Option {self.action!r}: {self.value:.2f} [{self.low:.2f}, {self.high:.2f}], "
            f"{self.trials} trials, by {self.basis}>"
        )


Plan = tuple[str, ...]
Place = tuple[str, str, str | None]
"""A task, a goal, and what is seen, or ANYWHERE."""


class Precedents:
    """Outcomes of earlier episodes that one asker may read: plans and failures by goal."""

    def __init__(self) -> None:
        # Actions and plans by numbers: most plans are the rest of another one.
        self._actions: dict[str, int] = {}
        self._plans: dict[Place, dict[bytes, tuple[float, int]]] = {}
        self._failed: dict[tuple[str, str], dict[str, list[int]]] = {}
        self._names: list[str] = []

    def saved(self) -> dict[str, Any]:
        """Return all of it as lists and arrays."""
        texts: dict[str | None, int] = {}
        places = [[texts.setdefault(one, len(texts)) for one in place] for place in self._plans]
        plans = [one for kept in self._plans.values() for one in kept.items()]
        failed = [
            (*(texts.setdefault(one, len(texts)) for one in (*place, action)), *counts)
            for place, kept in self._failed.items()
            for action, counts in kept.items()
        ]
        return {
            "actions": self._names,
            "texts": [*texts],
            "places": places,
            "kept": [len(kept) for kept in self._plans.values()],
            "sizes": np.array([len(plan) for plan, _ in plans], dtype=np.int64),
            "plans": np.frombuffer(b"".join(plan for plan, _ in plans), dtype=np.uint8),
            "worth": np.array([worth for _, (worth, _) in plans], dtype=np.float64),
            "times": np.array([times for _, (_, times) in plans], dtype=np.int64),
            "failed": np.array(failed, dtype=np.int64).reshape(len(failed), 5),
        }

    @classmethod
    def restored(cls, told: Mapping[str, Any]) -> Self:
        """Return what was saved.

        Raises
        ------
        ValueError, TypeError, LookupError
            It is not what ``saved`` returned.
        """
        made, texts = cls(), told["texts"]
        made._names = told["actions"]
        made._actions = {name: number for number, name in enumerate(made._names)}
        raw, ends = told["plans"].tobytes(), np.cumsum(told["sizes"]).tolist()
        listed = [raw[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        numbers = np.frombuffer(raw, dtype=np.uint32)
        if len(numbers) and numbers.max() >= len(made._names):
            raise ValueError("a plan of an action that has no name")
        worth = zip(told["worth"].tolist(), told["times"].tolist(), strict=True)
        plans = zip(listed, worth, strict=True)
        for (task, goal, seen), n in zip(told["places"], told["kept"], strict=True):
            made._plans[texts[task], texts[goal], texts[seen]] = dict(islice(plans, n))
        for task, seen, action, tried, failed in told["failed"].tolist():
            kept = made._failed.setdefault((texts[task], texts[seen]), {})
            kept[texts[action]] = [tried, failed]
        return made

    def note(
        self, task: str, episode: Episode, worth: float, *, failed: bool, seen: Iterable[Hashable]
    ) -> None:
        """Take in an episode.

        Parameters
        ----------
        task : str
            Its task.
        episode : Episode
            With its actions.
        worth : float
            Its outcome, or the sum of its rewards.
        failed : bool
            Whether that is a failure.
        seen : iterable of hashable
            What was observed at each of its steps: a text, or what only a machine tells apart.
        """
        done = [
            (step.action, state)
            for step, state in zip(episode.steps, seen, strict=True)
            if step.action is not None
        ]
        for action, _ in done:
            if action not in self._actions:
                self._actions[action] = len(self._names)
                self._names.append(action)
        plan = np.array([self._actions[action] for action, _ in done], dtype=np.uint32)
        met: dict[str | None, int] = {ANYWHERE: 0}
        for at, (_, state) in enumerate(done):
            if isinstance(state, str):
                met.setdefault(state, at)
        for state, at in met.items() if done else ():
            kept = self._plans.setdefault((task, episode.goal, state), {})
            # Equal plans are one, as good as the best of them.
            rest = plan[at : at + _LONGEST_PLAN].tobytes()
            known, times = kept.get(rest, (-math.inf, 0))
            kept[rest] = max(known, worth), times + 1
            if len(kept) > 2 * _KEPT_PLANS:
                top = nsmallest(_KEPT_PLANS, kept.items(), key=self._order)
                self._plans[task, episode.goal, state] = dict(top)
        for action, state in dict.fromkeys(done):
            if isinstance(state, str):
                counts = self._failed.setdefault((task, state), {}).setdefault(action, [0, 0])
                counts[0] += 1
                counts[1] += failed

    def _order(self, plan: tuple[bytes, tuple[float, int]]) -> tuple[float, int, Plan]:
        """Order plans by their outcome, the shorter ones first."""
        return -plan[1][0], len(plan[0]), self._told(plan[0])

    def _told(self, plan: bytes) -> Plan:
        return tuple(self._names[at] for at in np.frombuffer(plan, dtype=np.uint32).tolist())

    def plans(self, task: str, goal: str, state: Hashable) -> list[tuple[Plan, tuple[float, int]]]:
        """Return the best plans of a goal, each with its outcome and how often it was tried.

        They are what was done from here on, where episodes came through here.
        """
        known = self._plans.get((task, goal, ANYWHERE), {})
        if isinstance(state, str):
            known = self._plans.get((task, goal, state)) or known
        top = nsmallest(_TOLD_PLANS, known.items(), key=self._order)
        return [(self._told(plan), how) for plan, how in top]

    def failures(self, task: str, state: Hashable) -> list[tuple[str, int, int]]:
        """Return actions with how often they failed here, and were tried; most failures first."""
        counted = self._failed.get((task, state), {}) if isinstance(state, str) else {}
        lost = [(action, failed, tried) for action, (tried, failed) in counted.items() if failed]
        return sorted(lost, key=lambda one: (-one[1], one[2], one[0]))[:_TOLD_FAILURES]


@dataclass(frozen=True, slots=True)
class Asked:
    """What an advice was asked for, with the plans and failures to tell.

    Parameters
    ----------
    goal, task, observation : str
        In words.
    plans, failures
        As `Precedents` returns them.
    budget_tokens : int
        Room for the text.
    """

    goal: str
    task: str
    observation: str
    plans: Sequence[tuple[tuple[str, ...], tuple[float, int]]]
    failures: Sequence[tuple[str, int, int]]
    budget_tokens: int


class Advice(list[Option]):
    """What memory has to say about the next action: options, best first; a text for a prompt.

    Attributes
    ----------
    unit : str
        Of the values: "P(success)" or "return".
    decision : int
        The number under which it is written down once it is acted on.
    known : bool
        Whether any of the actions was tried here before.
    advised : tuple of Option
        The options in the order of the advice, whatever a caller does to the list.
    best : Option
        The first of these.
    chosen : Option or None
        What `choose` returned last; and
    chance : float or None
        how likely it was to.
    """

    def __init__(
        self,
        options: Sequence[Option],
        unit: Unit,
        decision: int,
        asked: Asked,
        choose: Callable[[bool], int],
        chances: Callable[[], Sequence[float]],
        on_text: Callable[[Advice, str], None],
    ) -> None:
        super().__init__(options)
        # A caller may sort the list or take from it: chances are those of the options as advised.
        self.advised: tuple[Option, ...] = (*self,)
        self.unit, self.decision = unit, decision
        self.asked = asked
        self.chosen: Option | None = None
        self.chance: float | None = None
        self._choose, self._chances, self._on_text = choose, chances, on_text

    @property
    def best(self) -> Option:
        """The option that is worth most.

        Raises
        ------
        UnknownError
            There is none: no action is known here, and none was named.
        """
        self._need_some()
        return self.advised[0]

    def _need_some(self) -> None:
        if not self.advised:
            raise UnknownError("no action is known here: give actions=, those that can be done")

    @property
    def known(self) -> bool:
        """Whether any of the actions was tried here before."""
        return any(option.trials for option in self)

    def choose(self, explore: bool = True) -> Option:
        """Return the option to take.

        Parameters
        ----------
        explore : bool, default True
            Try what may be better than what is known, as likely as it is to be best: to learn
            while acting. Without it, the best one.

        Raises
        ------
        UnknownError
            There is no option.
        """
        self._need_some()
        at = self._choose(bool(explore))
        self.chosen, self.chance = self.advised[at], self.chances[at] if explore else 1.0
        return self.chosen

    @property
    def chances(self) -> list[float]:
        """How likely ``choose(explore=True)`` returns each option."""
        return [float(one) for one in self._chances()]

    def option(self, action: Any) -> Option | None:
        """Return the option of an action, None if there is none."""
        return next((one for one in self.advised if one.action == action), None)

    def __str__(self) -> str:
        text = self._within_budget()
        if text:
            self._on_text(self, text)
        return text

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Advice):
            return NotImplemented
        return self.unit == other.unit and [*self] == [*other]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(self.decision)

    def __reduce__(self) -> tuple[Any, ...]:
        return _detached, (self.advised, self.unit, self.decision, self.asked, self.chances)

    def __repr__(self) -> str:
        best = f", best {self.best!r}" if self else ""
        return f"<Advice {self.decision}: {len(self)} options in {self.unit}{best}>"

    def _repr_html_(self) -> str:
        rows = (
            (as_text(one.action), "nothing known", "", "", "")
            if _unknown(one)
            else (
                as_text(one.action),
                f"{one.value:.2f}",
                f"{one.low:.2f} to {one.high:.2f}",
                one.trials,
                one.basis,
            )
            for one in self
        )
        about = self.asked.observation or self.asked.goal or self.asked.task
        names = ["action", self.unit, "90% interval", "trials", "by"]
        return html_table(f"Advice {self.decision}: {about}", names, rows)

    def _within_budget(self) -> str:
        """Return the whole text, or what of it fits: the best options stay longest."""
        told = min(len(self), _TOLD_OPTIONS)
        sizes = (
            (told, 2, _TOLD_FAILURES),
            (told, 1, _TOLD_FAILURES),
            (told, 1, 2),
            (told, 0, 0),
            *((n, 0, 0) for n in range(told - 1, 0, -1)),
        )
        return first_within((self._text(*size) for size in sizes), self.asked.budget_tokens)

    def _text(self, options: int, plans: int, failures: int) -> str:
        asked, chance = self.asked, self.unit == "P(success)"
        about = quoted_line(asked.goal or asked.task)
        seen = quoted_line(asked.observation)
        lines = [
            "What memory knows of the next action (evidence from earlier episodes, not "
            "instructions)" + (f", for: {about}" if about else "")
        ]
        if seen:
            lines.append(f"Now: {seen if len(seen) <= 200 else seen[:199] + '…'}")
        if not self:
            lines.append("No action is known here.")
        for place, one in enumerate(self[:options], start=1):
            if _unknown(one):
                lines.append(f"{place}. {quoted_line(as_text(one.action))}: nothing known of it")
                continue
            bounds = (
                f"{one.value:.0%} success ({one.low:.0%} to {one.high:.0%})"
                if chance
                else f"return {one.value:.3g} ({one.low:.3g} to {one.high:.3g})"
            )
            tried = f"tried here {_times(one.trials)}" if one.trials else "never tried here"
            alone = f", told by source {quoted_line(one.source)} alone" if one.source else ""
            lines.append(f"{place}. {quoted_line(as_text(one.action))}: {bounds}, {tried}{alone}")
        if len(self) > options:
            lines.append(f"and {len(self) - options} more, worth less")
        # A plan that failed is none to copy: failures have a line of their own.
        ended_well = [one for one in asked.plans if not chance or one[1][0] > FAILED]
        if plans and ended_well:
            lines.append("What ended best for this goal:")
            for plan, (worth, times) in ended_well[:plans]:
                ended = f"outcome {worth:.2f}" if chance else f"return {worth:.3g}"
                often = "" if times == 1 else f", {_times(times)}"
                lines.append(f"- {ended}{often}: {action_chain(plan, _LONGEST_PLAN)}")
        if failures and asked.failures and chance:
            listed = ", ".join(
                f"{quoted_line(action)} ({lost} of {tried})"
                for action, lost, tried in asked.failures[:failures]
            )
            lines.append(f"Episodes that failed after it was done here: {listed}")
        return "\n".join(lines)


def _unknown(option: Option) -> bool:
    """Return whether no episode tells anything of an option, here or anywhere."""
    return option.basis == "everywhere" and not option.trials


def _no_hits(_action: Hashable, _episodes: Sequence[str]) -> tuple[Hit, ...]:
    return ()


def _detached(
    options: Sequence[Option], unit: Unit, decision: int, asked: Asked, chances: Sequence[float]
) -> Advice:
    """Return advice away from its memory: it chooses by the chances that it came with."""
    draw = Random(decision)

    def choose(explore: bool) -> int:
        return draw.choices(range(len(options)), chances)[0] if explore else 0

    return Advice(options, unit, decision, asked, choose, lambda: chances, lambda *_: None)


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"


def as_text(action: Any) -> str:
    """Return an action in words."""
    return action if isinstance(action, str) else str(action)
