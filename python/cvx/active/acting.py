"""The acting half of the loop: what was done, and whose advice it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cvx.active.attribution import Taken
from cvx.active.given import a_decision, some_hits
from cvx.active.predicting import expected_success
from cvx.active.recall import Recall
from cvx.arguments import checked
from cvx.errors import (
    DecisionTakenError,
    EpisodeClosedError,
    ForeignEpisodeError,
    InvalidParameterError,
)
from cvx.learn.episodes import OpenEpisode
from cvx.types import Decision, Event, Hit, Vector


class Acting(Recall):
    """What takes down the steps of running episodes."""

    @checked(decision=a_decision)
    def act(
        self,
        decision: Decision,
        action: str | None,
        followed: Hit | Iterable[Hit] | None = None,
        *,
        vector: Vector | None = None,
        tags: Sequence[str] = (),
        rendered: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        reward: float | None = None,
    ) -> Decision:
        """Record what the agent did on a decision: the step, and whose advice it took.

        A decision that is never acted on counts as not asked: nothing is learned from it.

        Parameters
        ----------
        decision : Decision
            From ``recall``, within a running episode.
        action : str or None
            What was done; ``None`` where the decision was not about a single action.
        followed : Hit or iterable of Hit, optional
            The hits whose advice it was; an empty one says that it was nobody's. ``None`` takes
            the hits that name exactly this action.
        vector : ndarray of shape (dim,), float32, optional
            Where the step will be found again; by default where the cue lies.
        tags : sequence of str, optional
            What the node of the step will be tagged with, beside its family of goals.
        rendered : str, optional
            What was shown to the agent, for the record.
        metadata : mapping, optional
            Kept with the step; anything JSON can hold.
        reward : float, optional
            What the step itself brought, in [0, 1], of which the region model keeps the mean; by
            default the outcome of the episode.

        Returns
        -------
        Decision
            With ``action``, ``followed``, ``rendered`` and ``predicted``.

        Raises
        ------
        EpisodeClosedError
            The episode of the decision is over.
        DecisionTakenError
            There was an action on this decision already.
        DimensionError, NonFiniteVectorError, ZeroVectorError
            A vector that the index could not hold.
        ForeignEpisodeError
            The decision was made outside of any episode, or by another memory.
        InvalidParameterError
            A hit was followed that the decision does not have; an empty action.
        RewardRangeError
            The reward is outside [0, 1].
        """
        number = -1 if decision.episode_id is None else decision.episode_id
        if number in self._closed:
            raise EpisodeClosedError(
                f"episode {number} is closed: begin another one for further steps"
            )
        run = self._open.get(number)
        if run is None:
            raise ForeignEpisodeError(
                f"decision {decision.decision_id} belongs to no episode of this memory: "
                "begin an episode before recall"
            )
        if followed is None:
            nodes = [h.node for h in decision.hits if action is not None and h.action == action]
        else:
            nodes = [hit.node for hit in some_hits("followed", followed)]
            own = {hit.node for hit in decision.hits}
            if not own.issuperset(nodes):
                raise InvalidParameterError(
                    f"node {min(set(nodes) - own)} was followed, but decision "
                    f"{decision.decision_id} has no such hit: give hits of this decision"
                )
        if decision.decision_id in self._acted:
            raise DecisionTakenError(
                f"decision {decision.decision_id} was acted on already: recall again, or record "
                "the step without advice with step()"
            )
        place = len(run.steps)
        cue = decision.cue
        self.recorder.step(
            run,
            cue.words(),
            action=action,
            vector=cue.vector if vector is None else self.checked(vector),
            tags=tags,
            metadata=metadata,
            reward=reward,
        )
        done = replace(
            decision,
            action=action,
            followed=tuple(nodes),
            rendered=decision.rendered if rendered is None else rendered,
            predicted=expected_success(self, decision, action, nodes),
        )
        self._taken[run.episode_id].append(Taken(done, place))
        self._acted.add(decision.decision_id)
        return done

    def step(
        self,
        run: OpenEpisode,
        text: str,
        action: str | None = None,
        vector: Vector | None = None,
        *,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        reward: float | None = None,
    ) -> Event:
        """Record a step that was taken without asking memory.

        Parameters
        ----------
        run : OpenEpisode
            A running episode.
        text : str
            What was seen.
        action : str, optional
            What was done.
        vector : ndarray of shape (dim,), float32, optional
            Where it lies; by default the text is embedded.
        tags : sequence of str, optional
            What the node of the step will be tagged with, beside its family of goals.
        metadata : mapping, optional
            Kept with the step; anything JSON can hold.
        reward : float, optional
            As for ``act``.

        Raises
        ------
        EpisodeClosedError, ForeignEpisodeError
            The episode is over, or another memory's.
        DimensionError, NonFiniteVectorError, ZeroVectorError
            A vector that the index could not hold.
        """
        self._running(run)
        vector = self.embedder.embed([text])[0] if vector is None else vector
        vector = self.checked(vector)
        return self.recorder.step(
            run, text, action=action, vector=vector, tags=tags, metadata=metadata, reward=reward
        )
