"""`RegionMDP`: best action, transition probabilities and success by region."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Literal, Self

from cvx.arguments import above_zero, among, wrong
from cvx.errors import InvalidInputError, StaleRegionsError, UnknownError
from cvx.index import RawIndex
from cvx.learn.region_mdp.counts import (
    ANYWHERE,
    AskerCounts,
    Cell,
    Context,
    Reading,
    best_template,
)
from cvx.learn.region_mdp.epochs import Epochs
from cvx.learn.region_mdp.estimates import (
    NOTHING,
    ActionEffect,
    Basis,
    Estimate,
    Frames,
    Place,
    Ranking,
    Strategy,
    action_effect,
    frames_of,
)
from cvx.learn.region_mdp.trajectories import (
    FAILURE,
    SUCCESS,
    UNKNOWN,
    EpisodeLike,
    Trajectory,
    classify_action,
)
from cvx.statistics import Dirichlet
from cvx.types import Vector


class RegionMDP:
    """Transitions and outcomes of actions, by region of the vector space.

    A state is a region, an action a kind of action, and the last step of an episode leads into
    ``SUCCESS``, ``FAILURE`` or ``UNKNOWN``. Estimates from few episodes borrow: from all actions,
    to the action anywhere, to the action in this family of goals, to it in ever smaller regions
    around the place, each the prior of the next (``cvx.statistics.backed_off`` has the formula).

    Parameters
    ----------
    index : RawIndex
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

    def __init__(
        self,
        index: RawIndex,
        level: int | None = None,
        *,
        score: Literal["beta", "mean"] = "beta",
        prior_strength: float = 2.0,
        success_above: float = 0.5,
        classify: Callable[[str], str] = classify_action,
        on_stale: Literal["relearn", "gradual", "error"] = "relearn",
        pace: float = 2.5,
    ) -> None:
        self.index = index
        self.score = among("beta", "mean")("score", score)
        self.prior_strength = above_zero("prior_strength", prior_strength)
        self.success_above = success_above
        self.classify = classify
        reading = Reading(prior_strength, success_above, classify)
        self._epochs = Epochs(index, level, reading, on_stale, pace)
        self._readers: tuple[str, ...] | None = None

    @property
    def epoch(self) -> int:
        """The epoch of regions that the answers are about."""
        return self._epochs.now.epoch

    @property
    def level(self) -> int:
        """The level of the regions that the answers are about."""
        return self._epochs.now.level

    @property
    def trajectories(self) -> list[Trajectory]:
        """The episodes it learned from, as it remembers and counts them, oldest first."""
        return list(self._epochs.now.readable(self._readers))

    @property
    def behind(self) -> int:
        """How many episodes are yet to be placed in the regions of the index's epoch."""
        return self._epochs.behind

    @property
    def steps(self) -> int:
        """How many steps it has learned from."""
        return len(self._epochs.now.region_of)

    @property
    def _known(self) -> AskerCounts:
        return self._epochs.now.known(self._readers)

    def __len__(self) -> int:
        """Return how many episodes it has learned from."""
        return len(self._known)

    def within(self, readers: Collection[str]) -> Self:
        """Return what it knows of the episodes that an asker may read; both learn together.

        Parameters
        ----------
        readers : collection of str
            Whom the asker goes by, see ``cvx.store.namespaces.reads``.
        """
        view = copy.copy(self)
        view._readers = tuple(readers)
        return view

    def leave_out(self, nodes: Iterable[int]) -> None:
        """Count these steps no more, nor what was done there; ``take_back`` counts them again."""
        self._epochs.leave_out(nodes)

    def take_back(self, nodes: Iterable[int]) -> None:
        """Count steps again that were left out."""
        self._epochs.take_back(nodes)

    def relearn(self) -> None:
        """Learn all remembered episodes again on the present regions; deleted nodes drop out."""
        self._epochs.relearn()

    def learn_from_episodes(self, index: RawIndex, episodes: Iterable[EpisodeLike]) -> None:
        """Add episodes to what is known.

        Parameters
        ----------
        index : RawIndex
            Where their nodes are; the one the model was made with.
        episodes : iterable of Episode
            Anything with an ``entity_id``. ``steps`` whose nodes are known are taken as they
            are, rewards of their own included, else the entity's whole timeline is read.
            ``reward`` is the outcome, and the reward of every step that brings none of its own;
            without it, that of each step in the index is both. ``task_type`` and ``namespace`` are
            used if they are there.

        Raises
        ------
        InvalidInputError
            Another index than the model's.
        StaleRegionsError
            See ``on_stale``.
        """
        if index is not self.index:
            raise InvalidInputError(
                "this model belongs to another index: make a RegionMDP for this one"
            )
        self._epochs.learn(episodes)

    def update(self, episode: EpisodeLike) -> None:
        """Add one episode, with the same result as learning it together with all others.

        Raises
        ------
        StaleRegionsError
            See ``on_stale``.
        """
        self._epochs.update(episode)

    def _chain(self, region: int, task_type: str | None, action: str | None) -> list[Context]:
        anywhere = (ANYWHERE, None)
        cells: list[Cell] = [(*anywhere, None)] if action is None else []
        cells += [] if task_type is None else [(*anywhere, task_type)]
        cells += [(*place, task_type) for place in reversed(self._epochs.now.places(region))]
        wider: list[Context] = [((*anywhere, None), None), ((*anywhere, None), action)]
        return [*(wider if action is not None else ()), *((cell, action) for cell in cells)]

    def require(self, region: int) -> None:
        """Raise an ``UnknownError`` unless the number is that of a region."""
        if not self.knows(region):
            raise UnknownError(
                f"{region} is no region of level {self.level} in epoch {self.epoch}: "
                "ask assign for one"
            )

    def assign(self, vec: Vector) -> int:
        """Return the region that a vector lies in.

        Parameters
        ----------
        vec : ndarray of shape (dim,), float32
            An observation.
        """
        return self._epochs.fresh().assign(vec)[0]

    def knows(self, region: int) -> bool:
        """Tell whether a number is that of a region, visited or not."""
        return region in self._epochs.fresh().hubs

    def region_of(self, node: int) -> int | None:
        """Return the region of a node of a learned episode, None for any other node."""
        return self._epochs.fresh().region_of.get(node)

    def best_action(self, region: int, task_type: str | None = None) -> Ranking:
        """Return kinds of action with their chance of success there, best first.

        Actions never seen in the region come from the smallest place around it that has seen
        any, and ``basis`` says so; with ``score="mean"`` they are left out. A model that has
        learned nothing returns an empty list.

        Parameters
        ----------
        region : int
            As ``assign`` returns it.
        task_type : str, optional
            Only what was seen in this family of goals, while that has seen anything.

        Returns
        -------
        Ranking
            A list of (str, float) with the attribute ``basis``.

        Raises
        ------
        UnknownError
            No such region.
        StaleRegionsError
            See ``on_stale``.
        """
        self.require(region)
        actions, basis = self._actions(region, task_type)
        scored = [
            (action, value)
            for action in actions
            if (value := self._success(region, action, task_type)) is not None
        ]
        return Ranking(sorted(scored, key=lambda pair: (-pair[1], pair[0])), basis)

    def _actions(self, region: int, task_type: str | None) -> tuple[list[str], Basis]:
        own: list[tuple[int, int | None]] = [(self.level, region)]
        borrowed = [*self._epochs.now.places(region)[1:], (ANYWHERE, None)]
        families = (None,) if task_type is None else (task_type, None)
        known = self._known
        for family in families:
            for level, at in own + borrowed if self.score == "beta" else own:
                actions = known.seen((level, at, family))
                if actions:
                    trials, *_ = known.totals(((level, at, family), None))
                    return actions, Basis(self._place(level), family, trials)
        return [], NOTHING

    def _place(self, level: int) -> Place:
        if level == self.level:
            return "region"
        return "anywhere" if level == ANYWHERE else "around"

    def estimate(
        self, region: int, action: str | None = None, task_type: str | None = None
    ) -> Estimate:
        """Return what is believed of the chance of success there, and what that rests on.

        Where nothing was counted for exactly what is asked, the belief is the prior that wider
        contexts give it (``trials`` is 0 and ``basis`` names the smallest one with evidence); a
        family of goals never seen is answered by all families.

        Parameters
        ----------
        region : int
            As ``assign`` returns it.
        action : str, optional
            A kind of action; by default all of them, which is the quality of the region.
        task_type : str, optional
            A family of goals.

        Raises
        ------
        UnknownError
            No such region.
        StaleRegionsError
            See ``on_stale``.
        """
        self.require(region)
        contexts, known = self._chain(region, task_type, action), self._known
        basis = NOTHING
        for cell, kind in reversed(contexts):
            trials, *_ = known.totals((cell, kind))
            if trials:
                basis = Basis(self._place(cell[0]), cell[2], trials)
                break
        return Estimate(known.posterior(contexts), basis, *known.totals(contexts[-1])[:2])

    def success(self, region: int, action: str, task_type: str | None = None) -> float | None:
        """Return the chance of success of one kind of action there.

        ``score="mean"`` gives the mean reward of exactly that, and None if it was never seen.
        ``estimate`` tells what the answer rests on.

        Raises
        ------
        UnknownError
            No such region.
        """
        self.require(region)
        return self._success(region, action, task_type)

    def _success(self, region: int, action: str | None, task_type: str | None) -> float | None:
        if self.score == "mean":
            trials, _, rewards = self._known.totals(((self.level, region, task_type), action))
            return rewards / trials if trials else None
        return self._known.posterior(self._chain(region, task_type, action)).mean

    def region_quality(self, region: int, task_type: str | None = None) -> float:
        """Return the chance of success of an episode that acts in the region, in [0, 1].

        ``score="mean"`` gives the mean reward there, and 0.5 where nothing was seen. ``estimate``
        tells what the answer rests on.

        Raises
        ------
        UnknownError
            No such region.
        """
        self.require(region)
        found = self._success(region, None, task_type)
        return 0.5 if found is None else found

    def transition_probability(self, s: int, a: str, s_next: int) -> float:
        """Return P(s_next | s, a) as counted; 0 for what was never seen.

        ``s_next`` may be ``SUCCESS``, ``FAILURE`` or ``UNKNOWN``.
        """
        self._epochs.fresh()
        counts = self._known.moves((self.level, s), a)
        return counts[s_next] / sum(counts.values()) if s_next in counts else 0.0

    def transitions(self, region: int, action: str) -> Dirichlet:
        """Return what is believed of where an action leads.

        The prior, worth ``prior_strength`` moves, is that the episode ends there: in ``SUCCESS``
        with the chance that the model has for the action, else in ``FAILURE``. Unknown outcomes
        count for nothing.

        Raises
        ------
        UnknownError
            No such region.
        """
        self.require(region)
        chance = self._known.posterior(self._chain(region, None, action)).mean
        counts = self._known.moves((self.level, region), action)
        alphas = {there: float(n) for there, n in sorted(counts.items()) if there != UNKNOWN}
        for end, share in ((SUCCESS, chance), (FAILURE, 1.0 - chance)):
            alphas[end] = alphas.get(end, 0.0) + self.prior_strength * share
        return Dirichlet(alphas)

    def doers(self, region: int, action: str) -> Iterator[int]:
        """Yield the nodes at which a kind of action was done in a region, newest first."""
        return self._epochs.fresh().doers(region, action, self._readers)

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
        self._epochs.fresh()
        found: dict[tuple[int, str], Counter[int]] = {}
        for trajectory in self.trajectories:
            if task_type is None or trajectory.task_type == task_type:
                weight: Any = trajectory.weight
                for move in trajectory.moves(self.success_above):
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
        UnknownError
            No such region.
        """
        self.require(region)
        best, trials = best_template(self._epochs.now.remainders(region, task_type, self._readers))
        if best:
            return Strategy(best, Basis("region", task_type, trials))
        for family in dict.fromkeys((task_type, None)):
            best, trials = self._known.best_whole(family)
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
        self._epochs.fresh()
        tally = Counter(
            trajectory.path()
            for trajectory in self.trajectories
            if (task_type is None or trajectory.task_type == task_type)
            and trajectory.won(self.success_above)
        )
        return sorted(tally.items(), key=lambda pair: (-pair[1], pair[0]))[:n]

    def action_effect(
        self, action: str, task_type: str | None = None, region: int | None = None
    ) -> ActionEffect:
        """Return what a kind of action changes about success, see ``action_effect``."""
        self._epochs.fresh()
        return action_effect(
            self.trajectories,
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

    def to_dict(self, *, counts: bool = False) -> dict[str, Any]:
        """Return all it knows as plain numbers, strings and lists.

        Parameters
        ----------
        counts : bool, default False
            Also what was counted: whoever takes it over on the same regions need not count again.
        """
        return {
            "level": self.level,
            "wanted_level": self._epochs.level,
            "epoch": self.epoch,
            "hubs": self._epochs.now.checksum(),
            "score": self.score,
            "prior_strength": self.prior_strength,
            "success_above": self.success_above,
            "on_stale": self._epochs.on_stale,
            "pace": self._epochs.pace,
            "traces": [
                trajectory.to_dict()
                for trajectory in self._epochs.now.trajectories
                if self._readers is None or trajectory.readers in self._readers
            ],
            "left_out": sorted(self._epochs.away),
            **({"counts": self._epochs.now.to_dict(self._readers)} if counts else {}),
        }

    @classmethod
    def from_dict(
        cls,
        index: RawIndex,
        data: Mapping[str, Any],
        *,
        classify: Callable[[str], str] = classify_action,
    ) -> RegionMDP:
        """Rebuild a model from ``to_dict``; on other regions than its own it learns anew.

        Regions are its own if the level is equal, and every hub is the same node with the same
        vector, by a checksum. Nodes are known by their numbers: an index that was rebuilt
        has to number them as before.

        Raises
        ------
        InvalidInputError
            Something else than what ``to_dict`` returns.
        StaleRegionsError
            The index has other regions, and the model was told not to learn anew.
        """
        try:
            level = data["wanted_level"]
            own = ("score", "prior_strength", "success_above", "on_stale", "pace")
            options = {name: data[name] for name in own}
        except (LookupError, TypeError) as error:
            raise wrong("data", data, f"what to_dict() returned ({error!r})") from error
        model = cls(index, level, classify=classify, **options)
        model.restore(data)
        return model

    def restore(self, data: Mapping[str, Any]) -> None:
        """Know what another model knew, whose ``to_dict`` this is, and nothing else.

        Raises
        ------
        InvalidInputError, StaleRegionsError
            As for ``from_dict``; nothing is changed.
        """
        try:
            learned_on, epoch = (data["level"], data["hubs"]), data["epoch"]
            trajectories = [Trajectory(**trajectory) for trajectory in data["traces"]]
            counts = self._epochs.blank(set(data.get("left_out", ())))
            found = counts.level, counts.checksum()
            told = data.get("counts")
            for trajectory in trajectories:
                # On other regions all is counted anew below.
                counts.add(trajectory, count=told is None and learned_on == found)
            if told is not None and learned_on == found:
                counts.restore(told)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise wrong("data", data, f"what to_dict() returned ({error!r})") from error
        if learned_on != found and self._epochs.on_stale == "error":
            raise StaleRegionsError(
                f"learned on regions of epoch {epoch} (checksum {learned_on[1]}), the index is at "
                f"{counts.epoch} ({found[1]}): load it with another on_stale"
            )
        self._epochs.turn_to(counts)
        if learned_on != found:
            self.relearn()
