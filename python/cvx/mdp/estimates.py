"""Chances of success by region: estimates, rankings, transitions, and what they rest on."""

from __future__ import annotations

from cvx.errors import InvalidParameterError, UnknownRegionError
from cvx.mdp.answers import NOTHING, Basis, Estimate, Place, Ranking
from cvx.mdp.experience import ANYWHERE, Cell
from cvx.mdp.learner import RegionLearner
from cvx.mdp.posteriors import Dirichlet
from cvx.mdp.trace import FAILURE, SUCCESS, UNKNOWN
from cvx.types import Vector


class RegionEstimates(RegionLearner):
    """The half of a region model that answers how likely success is; see ``RegionMDP``."""

    def _chain(
        self, region: int, task_type: str | None, action: str | None, phase: str | None = None
    ) -> list[Cell]:
        chain: list[Cell] = [(ANYWHERE, None, None, None)]
        if action is not None:
            chain.append((ANYWHERE, None, None, action))
        if task_type is not None:
            chain.append((ANYWHERE, None, task_type, action))
        places = reversed(self._book.places(region))
        chain.extend((level, at, task_type, action) for level, at in places)
        if phase is not None:
            chain.append((self.level, region, task_type, action, phase))
        return chain

    def require(self, region: int) -> None:
        """Raise an ``UnknownRegionError`` unless the number is that of a region."""
        self._fresh()
        if region not in self._book.hubs:
            raise UnknownRegionError(
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
        self._fresh()
        return self._book.assign(vec)[0]

    def knows(self, region: int) -> bool:
        """Tell whether a number is that of a region, visited or not."""
        self._fresh()
        return region in self._book.hubs

    def region_of(self, node: int) -> int | None:
        """Return the region of a node of a learned episode, None for any other node."""
        self._fresh()
        return self._book.region_of.get(node)

    def best_action(
        self, region: int, task_type: str | None = None, phase: str | None = None
    ) -> Ranking:
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
        phase : str, optional
            Where the episode stands, as ``phase_of`` names it.

        Returns
        -------
        Ranking
            A list of (str, float) with the attribute ``basis``.

        Raises
        ------
        UnknownRegionError
            No such region.
        StaleRegionsError
            See ``on_stale``.
        """
        self.require(region)
        actions, basis = self._actions(region, task_type)
        scored = [
            (action, value)
            for action in actions
            if (value := self._success(region, action, task_type, phase)) is not None
        ]
        return Ranking(sorted(scored, key=lambda pair: (-pair[1], pair[0])), basis)

    def _actions(self, region: int, task_type: str | None) -> tuple[list[str], Basis]:
        own: list[tuple[int, int | None]] = [(self.level, region)]
        borrowed = [*self._book.places(region)[1:], (ANYWHERE, None)]
        families = (None,) if task_type is None else (task_type, None)
        told = self._told
        for family in families:
            for level, at in own + borrowed if self.score == "beta" else own:
                actions = told.seen((level, at, family))
                if actions:
                    trials = told.counts.trials((level, at, family, None))
                    return actions, Basis(self._place(level), family, trials)
        return [], NOTHING

    def _place(self, level: int) -> Place:
        if level == self.level:
            return "region"
        return "anywhere" if level == ANYWHERE else "around"

    def estimate(
        self,
        region: int,
        action: str | None = None,
        task_type: str | None = None,
        phase: str | None = None,
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
        phase : str, optional
            Where the episode stands; only together with an action.

        Raises
        ------
        UnknownRegionError
            No such region.
        InvalidParameterError
            A phase without an action.
        StaleRegionsError
            See ``on_stale``.
        """
        if phase is not None and action is None:
            raise InvalidParameterError(f"phase {phase!r} without an action: give one")
        self.require(region)
        chain = self._chain(region, task_type, action, phase)
        counts = self._told.counts
        basis = NOTHING
        for context in reversed(chain):
            trials = counts.trials(context)
            if trials:
                basis = Basis(self._place(context[0]), context[2], trials)
                break
        return Estimate(
            counts.posterior(chain), basis, counts.trials(chain[-1]), counts.wins(chain[-1])
        )

    def success(
        self, region: int, action: str, task_type: str | None = None, phase: str | None = None
    ) -> float | None:
        """Return the chance of success of one kind of action there.

        ``score="mean"`` gives the mean reward of exactly that, and None if it was never seen.
        ``estimate`` tells what the answer rests on.

        Raises
        ------
        UnknownRegionError
            No such region.
        """
        self.require(region)
        return self._success(region, action, task_type, phase)

    def _success(
        self, region: int, action: str, task_type: str | None, phase: str | None
    ) -> float | None:
        if self.score == "mean":
            exact = (self.level, region, task_type, action)
            return self._told.counts.mean_reward(exact if phase is None else (*exact, phase))
        return self._told.counts.estimate(self._chain(region, task_type, action, phase))

    def region_quality(self, region: int, task_type: str | None = None) -> float:
        """Return the chance of success of an episode that acts in the region, in [0, 1].

        ``score="mean"`` gives the mean reward there, and 0.5 where nothing was seen. ``estimate``
        tells what the answer rests on.

        Raises
        ------
        UnknownRegionError
            No such region.
        """
        self.require(region)
        if self.score == "mean":
            mean = self._told.counts.mean_reward((self.level, region, task_type, None))
            return 0.5 if mean is None else mean
        return self._told.counts.estimate(self._chain(region, task_type, None))

    def transition_probability(self, s: int, a: str, s_next: int) -> float:
        """Return P(s_next | s, a) as counted; 0 for what was never seen.

        ``s_next`` may be ``SUCCESS``, ``FAILURE`` or ``UNKNOWN``.
        """
        self._fresh()
        counts = self._told.moves(s, a)
        return counts[s_next] / sum(counts.values()) if s_next in counts else 0.0

    def transitions(self, region: int, action: str) -> Dirichlet:
        """Return what is believed of where an action leads.

        The prior, worth ``prior_strength`` moves, is that the episode ends there: in ``SUCCESS``
        with the chance that the model has for the action, else in ``FAILURE``. Unknown outcomes
        count for nothing.

        Raises
        ------
        UnknownRegionError
            No such region.
        """
        self.require(region)
        chance = self._told.counts.estimate(self._chain(region, None, action))
        counts = self._told.moves(region, action)
        alphas = {there: float(n) for there, n in sorted(counts.items()) if there != UNKNOWN}
        for end, share in ((SUCCESS, chance), (FAILURE, 1.0 - chance)):
            alphas[end] = alphas.get(end, 0.0) + self.prior_strength * share
        return Dirichlet(alphas)
