"""Predicts where to go next: places that neighbours went to."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from benches.learning.choice_counts import Choice, Known, Shares
from benches.learning.neighbours import Near, Neighbours, votes
from benches.learning.ranking import Columns
from benches.learning.states import State

_GONE = re.compile(r"go to ([a-z]+)")
_TAKEN = re.compile(r"take ([a-z]+) \d+ from ([a-z]+)")
_NO_VOTE = 0.02
_FEW, _MANY = 8, 25
_EXPONENT = 6.0


def place_of(state: State) -> str:
    """Return the kind of place that an agent went to, empty if it did not go."""
    gone = _GONE.match(state.action)
    return gone[1] if gone else ""


def role(state: State, kind: str) -> str:
    """Return what a kind of place is to the agent, without its name."""
    return "|".join(name for name in state.relations(kind) if not name.startswith("kind"))


def wanted(state: State) -> list[str]:
    """Return the goal's nouns that are no places."""
    return [word for word in state.slots if word not in state.kinds]


def by_name(state: State) -> dict[str, str]:
    """Return under what the name of a place is looked up."""
    holds, things = str(bool(state.held)), wanted(state)
    goal, aims, kind = state.named("goal"), state.named("so far"), state.named("at kind")
    parts = {
        "holds": (holds,),
        "holds, goal": (holds, goal),
        "holds, kind": (holds, kind),
        "holds, first thing": (holds, *things[:1]),
        "holds, things": (holds, *things),
        "holds, task": (holds, state.task),
        "aims, goal": (aims, goal),
        "aims, things": (aims, *things),
        "last, kind, holds": (state.named("before 1"), kind, holds),
        "holds, first thing, kind": (holds, *things[:1], kind),
        "step, first thing, holds": (state.named("steps so far"), *things[:1], holds),
        "goal, nouns, holds": (goal, *state.slots, holds),
        "goal, nouns, aims": (goal, *state.slots, aims),
    }
    return {name: "; ".join(part) for name, part in parts.items()}


def by_role(state: State) -> dict[str, str]:
    """Return under what the role of a place is looked up."""
    one, two = state.named("before 1"), state.named("before 2")
    goal, aims = state.named("goal"), state.named("so far")
    holds, knows = state.named("holds"), state.named("knows")
    parts = {
        "aims": (aims,),
        "held": (holds,),
        "last, held": (one, holds),
        "last two, held": (one, two, holds),
        "goal, aims": (goal, aims),
        "goal, aims, last": (goal, aims, one),
        "known, held": (knows, holds),
        "known, aims": (knows, aims),
    }
    return {name: "; ".join(part) for name, part in parts.items()}


class Places:
    """Ranks the kinds of places that the first view names.

    Parameters
    ----------
    rows : sequence of State
    features : Neighbours
    apart : mapping of int to sequence of int
        By episode, those that it must not know, itself among them.
    """

    def __init__(
        self, rows: Sequence[State], features: Neighbours, apart: Mapping[int, Sequence[int]]
    ) -> None:
        self.rows, self.features, self.episodes = rows, features, list(apart)
        self.name_contexts = [by_name(row) for row in rows]
        self.role_contexts = [by_role(row) for row in rows]
        went = [at for at in range(len(rows)) if self.chosen(at) is not None]
        self.by_name = Shares(
            (Choice(rows[at].episode, place_of(rows[at]), self.name_contexts[at]) for at in went),
            apart,
        )
        self.by_role = Shares(
            (
                Choice(rows[at].episode, role(rows[at], place_of(rows[at])), self.role_contexts[at])
                for at in went
            ),
            apart,
        )
        taken = ((row, _TAKEN.match(row.action)) for row in rows)
        self.found = Shares(
            (Choice(row.episode, one[2], {"thing": one[1]}) for row, one in taken if one), apart
        )
        plain = [
            "relations", "few went", "many went", *self.name_contexts[0], "at large",
            *self.role_contexts[0], "best find", "mean find", "how many", "how many left", "here",
            "here and more", "has a wanted thing", "is in the goal",
        ]  # fmt: skip
        self.names = [f"{name}, {hands}" for hands in ("full", "empty") for name in plain]

    def chosen(self, at: int) -> str | None:
        """Return the kind of place that was gone to, None if none of the first view was."""
        place = place_of(self.rows[at])
        return place if place in self.rows[at].kinds else None

    def known_without(self, episodes: Collection[int]) -> KnownPlaces:
        """Return what ranks by the memory of all but these episodes."""
        return KnownPlaces(self, episodes)


class KnownPlaces:
    """Places by what is known."""

    def __init__(self, places: Places, hidden: Collection[int]) -> None:
        self._places, self._hidden = places, hidden
        known = [episode for episode in places.episodes if episode not in hidden]
        self._names = places.by_name.within(known)
        self._roles = places.by_role.within(known)
        self._finds = places.found.within(known)

    def columns(self, at: int) -> tuple[list[str], Columns]:
        """Return the kinds of places there are, and what speaks for each."""
        places, state = self._places, self._places.rows[at]
        near = [one for one in places.features.of(at, self._hidden) if place_of(one[0])][:_MANY]
        candidates = sorted(state.kinds)
        relations = relation_odds(state, near)
        few, many = (votes(some, _EXPONENT, place_of) for some in (near[:_FEW], near))
        names = places.by_name.known(self._names, state.episode)
        roles = places.by_role.known(self._roles, state.episode)
        finds = places.found.known(self._finds, state.episode)
        alike = Counter(role(state, kind) for kind in candidates)
        by_name = [*places.name_contexts[at].items(), ("", "")]
        by_role = places.role_contexts[at].items()
        rows = []
        for kind in candidates:
            own = role(state, kind)
            rows.append([
                relations[kind],
                math.log(few[kind] + _NO_VOTE),
                math.log(many[kind] + _NO_VOTE),
                *(names.log_share(name, context, kind) for name, context in by_name),
                *(roles.log_share(n, c, own) - math.log(alike[own]) for n, c in by_role),
                *_finds(state, kind, finds),
                *_plain(state, kind),
            ])  # fmt: skip
        full = float(bool(state.held))
        return candidates, [[v * side for side in (full, 1.0 - full) for v in row] for row in rows]


def relation_odds(state: State, near: Near) -> dict[str, float]:
    """Return by kind how often its relations to the agent were chosen where they were on offer."""
    chosen: Counter[str] = Counter()
    offered: Counter[str] = Counter()
    for other, similarity in near:
        weight = max(similarity, 0.0) ** _EXPONENT
        target = place_of(other)
        for kind in other.kinds:
            for relation in other.relations(kind):
                offered[relation] += weight
                chosen[relation] += weight * (kind == target)
    return {
        kind: sum(
            math.log((chosen[name] + 0.3) / (offered[name] + 1.2)) for name in state.relations(kind)
        )
        for kind in state.kinds
    }


def _finds(state: State, kind: str, known: Known) -> list[float]:
    things = wanted(state)
    missing = [t for t in things if all(t != used for used, _ in state.used)] or things or [""]
    shares = [known.log_share("thing", thing, kind) for thing in missing]
    return [max(shares), sum(shares) / len(shares)]


def _plain(state: State, kind: str) -> list[float]:
    there = state.kinds[kind]
    been = sum(place[0] == kind for place in state.visited)
    here = state.here is not None and state.here[0] == kind
    relations = state.relations(kind)
    return [
        math.log(there),
        math.log(max(there - been, 0) + 0.5),
        float(here),
        float(here and been < there),
        float(any(name.startswith("holds") for name in relations)),
        float(any(name.startswith("goal") for name in relations)),
    ]
