"""RegionMDP: what to do where, learned from how episodes went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cvx.arguments import wrong
from cvx.errors import StaleRegionsError
from cvx.mdp.actions import classify_action, last_kind
from cvx.mdp.answers import NOTHING, Basis, Strategy
from cvx.mdp.effect import ActionEffect, action_effect
from cvx.mdp.estimates import RegionEstimates
from cvx.mdp.experience import Phase, best_template
from cvx.mdp.frames import Frames, frames_of
from cvx.mdp.trace import RegionIndex, Trace


class RegionMDP(RegionEstimates):
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
    phase_of : callable, default last_kind
        From the kinds of action done so far in an episode to a word for where it stands.
    on_stale : {"relearn", "gradual", "error"}, default "relearn"
        When the index has moved to another epoch of regions: learn all remembered episodes again
        at once; go on with the regions of the epoch before and place a few episodes anew with
        every update, until all are; or raise ``StaleRegionsError``. The first and the last also
        when nodes were deleted; with "gradual", ``leave_out`` those.
    pace : float, default 2.5
        With "gradual", how many remembered steps, at least, are placed anew for each new one; at
        least 2.

    References
    ----------
    RFC-013, part A. Gelman et al. 2013, Bayesian Data Analysis, chapter 5.
    """

    def like(self, node: int) -> Iterator[int]:
        """Yield the nodes at which the same kind of thing was done in the region, newest first.

        Those of the node's own episode are among them, itself too; none for a node that no
        learned episode passes, or at which nothing was done.
        """
        self._fresh()
        return self._book.like(node, self._readers)

    def moves(self, task_type: str | None = None) -> dict[tuple[int, str], Counter[int]]:
        """Return how often each action led where, by region and action.

        Parameters
        ----------
        task_type : str, optional
            Only within this family of goals.

        Returns
        -------
        dict of (int, str) to Counter of int
            Regions, or ``SUCCESS``, ``FAILURE`` and ``UNKNOWN``, with how often each was reached,
            counted by trust: a whole number where all episodes are trusted fully.
        """
        self._fresh()
        found: dict[tuple[int, str], Counter[int]] = {}
        for trace in self.traces:
            if task_type is None or trace.task_type == task_type:
                weight: Any = trace.weight
                for move in trace.moves(self.success_above):
                    found.setdefault((move.region, move.action), Counter())[move.arrived] += weight
        return found

    def strategy_for(self, region: int, task_type: str | None = None) -> Strategy:
        """Return the sequence of kinds of action that succeeded most from the region on.

        Runs of one kind count as one. Candidates are the remainders of the episodes from their
        first visit to the region on; if none of them won, whole episodes of the family, then of
        all families: ``basis`` says which. The best is the one with the highest Beta(1, 1)
        posterior mean of success; ties go to the shorter one. Nothing ever won: an empty one.

        Returns
        -------
        Strategy
            A tuple of str with the attribute ``basis``; its ``trials`` are episodes.

        Raises
        ------
        UnknownRegionError
            No such region.
        """
        self.require(region)
        best, trials = best_template(self._book.remainders(region, task_type, self._readers))
        if best:
            return Strategy(best, Basis("region", task_type, trials))
        for family in dict.fromkeys((task_type, None)):
            best, trials = self._told.best_whole(family)
            if best:
                return Strategy(best, Basis("anywhere", family, trials))
        return Strategy((), NOTHING)

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
            if (task_type is None or trace.task_type == task_type) and trace.won(self.success_above)
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

    def frames(self, task_type: str | None = None) -> Frames:
        """Return what it has counted and believes as polars frames.

        Parameters
        ----------
        task_type : str, optional
            Only this family of goals.

        Returns
        -------
        Frames
            ``regions``, ``actions`` and ``moves``; ``cvx.plot.plot_regions`` draws them.
        """
        return frames_of(self, task_type)

    def to_dict(self) -> dict[str, Any]:
        """Return all it knows as plain numbers, strings and lists."""
        return {
            "level": self.level,
            "wanted_level": self._wanted_level,
            "epoch": self.epoch,
            "hubs": self._book.checksum(),
            "score": self.score,
            "prior_strength": self.prior_strength,
            "success_above": self.success_above,
            "on_stale": self.on_stale,
            "pace": self.pace,
            "traces": [
                trace.to_dict()
                for trace in self._book.traces
                if self._readers is None or trace.readers in self._readers
            ],
            "left_out": sorted(self._books.away),
        }

    @classmethod
    def from_dict(
        cls,
        index: RegionIndex,
        data: Mapping[str, Any],
        *,
        classify: Callable[[str], str] = classify_action,
        phase_of: Phase = last_kind,
    ) -> RegionMDP:
        """Rebuild a model from ``to_dict``; on other regions than its own it learns anew.

        Regions are its own if epoch and level are equal, and every hub is the same node with the
        same vector, by a checksum. Nodes are known by their numbers: an index that was rebuilt
        has to number them as before.

        Raises
        ------
        InvalidParameterError
            Something else than what ``to_dict`` returns.
        StaleRegionsError
            The index has other regions, and the model was told not to learn anew.
        """
        try:
            learned_on = data["epoch"], data["level"], data["hubs"]
            traces = [Trace.from_dict(trace) for trace in data["traces"]]
            left_out = list(data.get("left_out", ()))
            level = data["wanted_level"]
            own = ("score", "prior_strength", "success_above", "on_stale", "pace")
            options = {name: data[name] for name in own}
        except (LookupError, TypeError) as error:
            raise wrong("data", data, f"what to_dict() returned ({error!r})") from error
        model = cls(index, level, classify=classify, phase_of=phase_of, **options)
        book = model._book
        found = book.epoch, book.level, book.checksum()
        if learned_on != found and model.on_stale == "error":
            raise StaleRegionsError(
                f"learned on regions of epoch {learned_on[0]} (checksum {learned_on[2]}), the "
                f"index is at {found[0]} ({found[2]}): load it with another on_stale"
            )
        model.leave_out(left_out)
        for trace in traces:
            book.add(trace)
        if learned_on != found:
            model.relearn()
        return model
