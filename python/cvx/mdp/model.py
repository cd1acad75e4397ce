"""RegionMDP: what to do where, learned from how episodes went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from cvx.mdp.actions import classify_action
from cvx.mdp.effect import ActionEffect, action_effect
from cvx.mdp.learner import ANYWHERE, RegionLearner
from cvx.mdp.trace import SUCCESS, RegionIndex, Trace, end_of
from cvx.types import Vector


class RegionMDP(RegionLearner):
    """Transitions and outcomes of actions, by region of the vector space.

    A state is a region, an action a kind of action, and the last step of an episode leads into
    ``SUCCESS``, ``FAILURE`` or ``UNKNOWN``. Estimates from few episodes borrow: from all actions,
    to the action anywhere, to the action in this family of goals, to it in ever smaller regions
    around the place, each the prior of the next (``SuccessCounts.estimate`` has the formula).

    Parameters
    ----------
    index : TemporalIndex
        Whose regions are the states.
    level : int, optional
        HNSW level of the regions; ``None`` takes the one whose regions hold some dozens of nodes,
        anew in every epoch. While an index is too small to have a level, its highest below that
        stands in; ``model.level`` tells.
    score : {"beta", "mean"}, default "beta"
        What ``best_action`` and ``region_quality`` return: the smoothed rate of success, or the
        plain mean reward of exactly that region and action.
    prior_strength : float, default 2.0
        How many episodes the more general estimate is worth; above 0.
    success_above : float, default 0.5
        A reward above it is a success.
    classify : callable, default classify_action
        From a command to a kind of action.
    on_stale : {"relearn", "error"}, default "relearn"
        When the index has moved to another epoch of regions: learn again from the remembered
        episodes, or raise ``StaleRegionsError``.

    References
    ----------
    RFC-013, part A. Gelman et al. 2013, Bayesian Data Analysis, chapter 5.
    """

    def _chain(
        self, region: int, task_type: str | None, action: str | None
    ) -> list[tuple[int, int | None, str | None, str | None]]:
        chain: list[tuple[int, int | None, str | None, str | None]] = [(ANYWHERE, None, None, None)]
        if action is not None:
            chain.append((ANYWHERE, None, None, action))
        if task_type is not None:
            chain.append((ANYWHERE, None, task_type, action))
        chain.extend((level, at, task_type, action) for level, at in reversed(self._places(region)))
        return chain

    def assign(self, vec: Vector) -> int:
        """Return the region that a vector lies in.

        Parameters
        ----------
        vec : ndarray of shape (dim,), float32
            An observation.
        """
        self._fresh()
        return self._assign(vec, self.level)

    def region_of(self, node: int) -> int | None:
        """Return the region of a node of a learned episode, None for any other node."""
        self._fresh()
        return self._region_of.get(node)

    def best_action(self, region: int, task_type: str | None = None) -> list[tuple[str, float]]:
        """Return kinds of action with their chance of success there, best first.

        Actions never seen in the region come from the smallest place around it that has seen
        any; with ``score="mean"`` they are left out. A model that has learned nothing returns an
        empty list.

        Parameters
        ----------
        region : int
            As ``assign`` returns it.
        task_type : str, optional
            Only what was seen in this family of goals, while that has seen anything.

        Raises
        ------
        StaleRegionsError
            See ``on_stale``.
        """
        self._fresh()
        scored = [
            (action, value)
            for action in self._actions(region, task_type)
            if (value := self.success(region, action, task_type)) is not None
        ]
        return sorted(scored, key=lambda pair: (-pair[1], pair[0]))

    def _actions(self, region: int, task_type: str | None) -> list[str]:
        places: list[tuple[int, int | None]] = [(self.level, region)]
        if self.score == "beta":
            places = [*self._places(region), (ANYWHERE, None)]
        families = (None,) if task_type is None else (task_type, None)
        for family in families:
            for level, at in places:
                seen = [a for a, n in self._seen.get((level, at, family), {}).items() if n > 0]
                if seen:
                    return seen
        return []

    def success(self, region: int, action: str, task_type: str | None = None) -> float | None:
        """Return the chance of success of one kind of action there.

        ``score="mean"`` gives the mean reward of exactly that, and None if it was never seen.
        """
        if self.score == "mean":
            return self._counts.mean_reward((self.level, region, task_type, action))
        return self._counts.estimate(self._chain(region, task_type, action))

    def region_quality(self, region: int, task_type: str | None = None) -> float:
        """Return the chance of success of an episode that acts in the region, in [0, 1].

        ``score="mean"`` gives the mean reward there, and 0.5 where nothing was seen.
        """
        self._fresh()
        if self.score == "mean":
            mean = self._counts.mean_reward((self.level, region, task_type, None))
            return 0.5 if mean is None else mean
        return self._counts.estimate(self._chain(region, task_type, None))

    def transition_probability(self, s: int, a: str, s_next: int) -> float:
        """Return P(s_next | s, a) as counted; 0 for what was never seen.

        ``s_next`` may be ``SUCCESS``, ``FAILURE`` or ``UNKNOWN``.
        """
        self._fresh()
        counts = self._moves.get((s, a))
        total = counts.total() if counts else 0
        return counts[s_next] / total if counts and total else 0.0

    def moves(self, task_type: str | None = None) -> dict[tuple[int, str], Counter[int]]:
        """Return how often each action led where, by region and action.

        Parameters
        ----------
        task_type : str, optional
            Only within this family of goals.

        Returns
        -------
        dict of (int, str) to Counter of int
            Regions, or ``SUCCESS``, ``FAILURE`` and ``UNKNOWN``, with how often each was reached.
        """
        self._fresh()
        found: dict[tuple[int, str], Counter[int]] = {}
        for trace in self.traces:
            if task_type is None or trace.task_type == task_type:
                for move in trace.moves(self.success_above):
                    found.setdefault((move.region, move.action), Counter())[move.arrived] += 1
        return found

    def strategy_for(self, region: int, task_type: str | None = None) -> tuple[str, ...]:
        """Return the sequence of kinds of action that succeeded most from the region on.

        Runs of one kind count as one. Candidates are the remainders of the episodes from their
        first visit to the region on; if none of them won, whole episodes of the family, then of
        all families. The best is the one with the highest Beta(1, 1) posterior mean of success;
        ties go to the shorter one. Nothing ever won: an empty tuple.
        """
        self._fresh()
        for place, family in ((region, task_type), (None, task_type), (None, None)):
            best = self._strategies.get((place, family))
            if best is None:
                best = _best_template(self._templates.get((place, family), {}))
                self._strategies[(place, family)] = best
            if best:
                return best
        return ()

    def region_sequences(
        self, task_type: str | None = None, n: int = 5
    ) -> list[tuple[tuple[int, ...], int]]:
        """Return the sequences of regions that successful episodes pass through, commonest first.

        Returns
        -------
        list of (tuple of int, int)
            At most ``n`` sequences, stays in one region as one, with how many episodes won so.
        """
        self._fresh()
        tally = Counter(
            trace.path()
            for trace in self.traces
            if trace.rewards
            and (task_type is None or trace.task_type == task_type)
            and end_of(trace.rewards[-1], self.success_above) == SUCCESS
        )
        return sorted(tally.items(), key=lambda pair: (-pair[1], pair[0]))[:n]

    def action_effect(
        self, action: str, task_type: str | None = None, region: int | None = None
    ) -> ActionEffect:
        """Return what a kind of action changes about success, see ``action_effect``."""
        self._fresh()
        return action_effect(
            self.traces,
            action,
            task_type=task_type,
            region=region,
            success_above=self.success_above,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all it knows as plain numbers, strings and lists."""
        return {
            "level": self.level,
            "wanted_level": self._wanted_level,
            "epoch": self.epoch,
            "score": self.score,
            "prior_strength": self.prior_strength,
            "success_above": self.success_above,
            "on_stale": self.on_stale,
            "traces": [trace.to_dict() for trace in self.traces],
        }

    @classmethod
    def from_dict(
        cls,
        index: RegionIndex,
        data: Mapping[str, Any],
        *,
        classify: Callable[[str], str] = classify_action,
    ) -> RegionMDP:
        """Rebuild a model from ``to_dict``; on other regions than its own it learns anew.

        Raises
        ------
        StaleRegionsError
            The index is at another epoch, and the model was told not to learn anew.
        """
        model = cls(
            index,
            data["wanted_level"],
            score=data["score"],
            prior_strength=data["prior_strength"],
            success_above=data["success_above"],
            classify=classify,
            on_stale=data["on_stale"],
        )
        model.traces = [Trace.from_dict(trace) for trace in data["traces"]]
        if (data["epoch"], data["level"]) == (model.epoch, model.level):
            for trace in model.traces:
                model._count(trace)
        else:
            model.epoch = data["epoch"]
            model._fresh()
        return model


def _best_template(tally: Mapping[tuple[str, ...], list[int]]) -> tuple[str, ...]:
    won = [(n, w, template) for template, (n, w) in tally.items() if w and template]
    if not won:
        return ()
    return min(won, key=lambda c: (-(c[1] + 1) / (c[0] + 2), len(c[2]), c[2]))[2]
