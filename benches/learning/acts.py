"""Predicts the next act without names: votes of neighbours and recent shares."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from benches.learning.choice_counts import Choice, Shares
from benches.learning.neighbours import Neighbours, votes
from benches.learning.ranking import Columns
from benches.learning.states import State

_VOTES = ((5, 6.0), (15, 6.0), (40, 6.0), (15, 2.0))
_NO_VOTE = 0.02


def contexts(state: State) -> dict[str, str]:
    """Return under what an act is looked up: what was done, is seen, is held, is wanted."""
    one, two, three = (state.named(f"before {back}") for back in (1, 2, 3))
    sees, holds, view = state.named("sees"), state.named("holds"), state.named("view")
    goal, aims, kind = state.named("goal"), state.named("so far"), state.named("at kind")
    own = next((name for name in state.features if name.startswith("at ") and name != kind), "")
    parts = {
        "last": (one,),
        "last two": (one, two),
        "last three": (one, two, three),
        "last, seen": (one, sees),
        "last, seen, held": (one, sees, holds),
        "aims": (aims,),
        "aims, last": (aims, one),
        "aims, seen, held": (aims, sees, holds),
        "kind, last": (kind, one),
        "view": (view,),
        "view, last, held": (view, one, holds),
        "goal, aims": (goal, aims),
        "goal, aims, last": (goal, aims, one),
        "own place, held, seen, last": (own, holds, sees, one),
        "goal, aims, kind, last": (goal, aims, kind, one),
        "kind, held, goal, seen": (kind, holds, goal, sees),
    }
    return {name: "; ".join(part) for name, part in parts.items()}


class Acts:
    """Ranks acts without names.

    Parameters
    ----------
    rows : sequence of State
    features, texts : Neighbours
        By features, and by words.
    apart : mapping of int to sequence of int
        By episode, those that it must not know, itself among them.
    """

    def __init__(
        self,
        rows: Sequence[State],
        features: Neighbours,
        texts: Neighbours,
        apart: Mapping[int, Sequence[int]],
    ) -> None:
        self.rows, self.features, self.texts = rows, features, texts
        self.contexts = [contexts(row) for row in rows]
        self.episodes = list(apart)
        self.shares = Shares(
            (
                Choice(row.episode, row.abstract, context)
                for row, context in zip(rows, self.contexts, strict=True)
            ),
            apart,
        )
        ballots = [f"{k} by features, power {exponent:.0f}" for k, exponent in _VOTES]
        self.names = [*ballots, "15 by words", *self.contexts[0], "at large"]

    def chosen(self, at: int) -> str | None:
        """Return what was done."""
        return self.rows[at].abstract

    def known_without(self, episodes: Collection[int]) -> KnownActs:
        """Return what ranks by the memory of all but these episodes."""
        return KnownActs(self, episodes)


class KnownActs:
    """Acts by what is known."""

    def __init__(self, acts: Acts, hidden: Collection[int]) -> None:
        self._acts, self._hidden = acts, hidden
        self._total = acts.shares.within([e for e in acts.episodes if e not in hidden])

    def columns(self, at: int) -> tuple[list[str], Columns]:
        """Return the acts that neighbours did, and what speaks for each."""
        acts = self._acts
        near, alike = acts.features.of(at, self._hidden), acts.texts.of(at, self._hidden)
        ballots = [votes(near[:k], exponent, _act) for k, exponent in _VOTES]
        ballots.append(votes(alike[:15], 6.0, _act))
        known = acts.shares.known(self._total, acts.rows[at].episode)
        candidates = sorted(set().union(*ballots))
        looked_up = [*acts.contexts[at].items(), ("", "")]
        return candidates, [
            [math.log(ballot[act] + _NO_VOTE) for ballot in ballots]
            + [known.log_share(name, context, act) for name, context in looked_up]
            for act in candidates
        ]


def _act(state: State) -> str:
    return state.abstract
