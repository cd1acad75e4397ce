"""ActiveMemory: recall, act, close; every close makes the next recall better."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cvx.active.attribution import Outcome
from cvx.active.given import a_shown_step
from cvx.active.learning import learn
from cvx.active.linking import Linking
from cvx.arguments import a_share
from cvx.learn.decay import DecayPolicy
from cvx.learn.decay_report import POLICIES, DecayReport, decay_report
from cvx.learn.episodes import OpenEpisode
from cvx.scoring import logged_calibration
from cvx.types import Episode, Vector


class ActiveMemory(Linking):
    """An agent's memory that learns from every episode what to recall in the next.

    One round: ``begin`` an episode; for each step ``recall`` what was done in moments like this
    one, ``render`` it if the agent reads text, ``act``; then ``close`` the episode with its
    outcome. Closing writes the episode down and learns from it, in one transaction.

    Every part can be replaced, and switched off with ``None``.

    Parameters
    ----------
    index : TemporalIndex
        Where the steps become nodes. It must hold those of ``record``; nodes that somebody else
        inserted are recalled too.
    embedder : Embedder, optional
        For cues without a vector; default ``LexicalEmbedder(dim=index.dim)``.
    record : Record, optional
        Where everything is written down; default one in memory.
    scorer : Scorer, optional
        Makes the score; ``None`` ranks by similarity alone.
    decay : DecayPolicy, optional
        What a failure does to rewards; default ``ContextAwareDecay()``.
    mdp : RegionMDP, optional
        Scores kinds of action by region; default ``RegionMDP(index, on_stale="gradual")``, which
        never learns everything again within one ``close``.
    usage : UsageTracker, optional
        Success of following a memory; default a weak Beta prior.
    weights : LearnedWeights, optional
        Learns the scorer's weights from what was followed; default over all of its features.
    learn_from_failures : bool, default True
        Whether failed episodes go into the index (where they never advise), the MDP, the edges,
        the usage and the weights. Decay is apart from this.
    edges : bool or iterable of str, default True
        Whether outcomes become typed edges, or which of ``cvx.active.ALL_EDGES`` are made.
    edge_boost : mapping of str to float, optional
        Recall follows edges of these kinds too, with these boosts (such as
        ``cvx.active.HELPFUL``), and the default scorer then counts what they add; off by default.
    phase : bool, default False
        Whether kinds of action are scored by what was done just before, too.
    k : int, default 10
        Hits a recall.
    temporal_context : int, default 50
        Steps before and after each hit.
    distinct : {"episode", "entity", None}, default "episode"
        Keep only the best hit of each episode (of each entity among nodes of no episode), of each
        entity, or all.
    pool : int, default 4
        How many times k candidates are scored.
    action_type : callable, default classify_action
        From a command to a kind of action; the default MDP uses it too.
    usage_key : callable, default task_and_entity
        From (hit, family of goals) to the context in which its use is counted; it is counted
        under ("node", node) and under the plain entity id too, where ``usage[entity]`` and
        ``bayesian_search(usage=)`` find it.
    success_above : float, default 0.5
        A reward above it is a success.
    log_decisions : bool, default True
        Whether decisions go into the record.
    clock : callable, optional
        Returns the time of a step in microseconds, by which ages are told in hours; by default
        steps are counted, and ages in steps. The loops of a ``Memory`` have the memory's clock.
    order : PlackettLuce, optional
        Draws the order of the hits, from ``pool`` times as many, and keeps the chance of each, and
        what it was drawn from: the weights then compare with what might have been recalled, and
        ``cvx.scoring.logged_choices`` tells what others would have achieved. Default: the best come
        first.
    namespace : str, default ""
        Who asks and learns where ``begin`` names nobody: it sees its own episodes and events, and
        what others made public.
    also : sequence of str
        Further namespaces, of which what they share is seen too.

    Attributes
    ----------
    unlearned : int
        How often something was put away, brought back or erased: whoever learned from
        ``readable`` episodes learns anew when it has changed.
    on_render : callable or None
        Is told of each text that ``render`` returns: who asked, the text, and the nodes it shows.

    Raises
    ------
    InvalidParameterError
        A parameter outside its bound.
    UnknownFeatureError
        Weights are to be learned for a feature that the scorer does not compute.
    RecordMismatchError
        The record knows nodes that the index does not have.

    References
    ----------
    RFC-013, part F.
    """

    def close(self, run: OpenEpisode, reward: float, *, exposure: float = 1.0) -> Episode:
        """Give an episode its outcome, write it down and learn from it: all of that or nothing.

        A success goes into the index with its reward on every step; a failure goes in too, but
        never advises. What was recalled in a failure decays; the MDP, the weights and the counts
        of use learn; followed advice gets a ``caused_success`` or ``caused_failure`` edge to the
        step that followed it, ignored advice in a failure an ``irrelevant`` one.

        Parameters
        ----------
        run : OpenEpisode
            A running episode.
        reward : float
            The outcome in [0, 1].
        exposure : float, default 1.0
            Below 1 the episode was cut off before its outcome was known: the chance, in [0, 1],
            that a success had shown by then, such as `cvx.scoring.Durations` gives. What was
            followed then counts as failed by as much as is likely, by what ``usage`` expects of
            it; all else learns from the reward as it is, since what was done and what came of it
            was seen.

        Returns
        -------
        Episode
            With the nodes of its steps, if they went into the index.

        Raises
        ------
        EpisodeClosedError
            It is closed already.
        ForeignEpisodeError
            It was begun elsewhere.
        RewardRangeError
            The reward is outside [0, 1].
        InvalidParameterError
            The exposure is outside [0, 1].
        """
        exposure = a_share("exposure", exposure)
        self._running(run)
        episode = self.recorder.outcome(run, reward)
        won = float(reward) > self.success_above
        episode = learn(self, Outcome(episode, self._taken[run.episode_id], won, exposure))
        self.recorder.seal(run, episode)
        self._known.add(episode.episode_id)
        self._end(run)
        return episode

    def discard(self, run: OpenEpisode) -> None:
        """End an episode without an outcome: nothing of it is kept, and nothing is learned.

        Parameters
        ----------
        run : OpenEpisode
            A running episode.

        Raises
        ------
        EpisodeClosedError, ForeignEpisodeError
            The episode is over, or another memory's.
        """
        self._running(run)
        run.closed = True
        self._end(run)

    def _end(self, run: OpenEpisode) -> None:
        taken = self._taken.pop(run.episode_id)
        self._acted.difference_update(one.decision.decision_id for one in taken)
        del self._open[run.episode_id]
        self._own_entities.discard(run.episode_id)
        self._closed.add(run.episode_id)

    def add_demonstration(
        self,
        goal: str,
        steps: Iterable[tuple[str, str | None] | tuple[str, str | None, Vector | None]],
        task_type: str | None = None,
        *,
        reward: float = 1.0,
        entity_id: int | None = None,
        namespace: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        source: str = "",
        trust: float = 1.0,
        visibility: str = "private",
    ) -> Episode:
        """Take in an episode that somebody else played.

        Parameters
        ----------
        goal : str
            What was to be reached.
        steps : iterable of (text, action) or (text, action, vector)
            What was seen and what was done; texts without a vector are embedded.
        task_type : str, optional
            Which family of goals it belongs to.
        reward : float, default 1.0
            The outcome in [0, 1].
        entity_id : int, optional
            Whose timeline; by default one of its own.
        namespace : str, optional
            Which memory it is part of; default the loop's own.
        metadata : mapping, optional
            Kept with the episode; anything JSON can hold.
        source : str, default ""
            Whose demonstration it is: by it ``Memory.audit`` finds the steps, and ``quarantine``
            and ``roll_back`` take them back.
        trust : float, default 1.0
            How far its source is to be believed, in [0, 1].
        visibility : {"private", "shared", "public"}, default "private"
            Who else may read it.

        Returns
        -------
        Episode

        Raises
        ------
        InvalidParameterError
            A step that is no tuple of two or three, or what ``begin`` and ``step`` refuse.
        RewardRangeError
            The reward is outside [0, 1].
        DimensionError, NonFiniteVectorError, ZeroVectorError
            A vector that the index could not hold.
        """
        listed = [a_shown_step(f"steps[{n}]", step) for n, step in enumerate(steps)]
        current = self._current
        run = self.begin(
            goal,
            task_type,
            entity_id=entity_id,
            namespace=namespace,
            kind="demonstration",
            metadata=metadata,
            source=source,
            trust=trust,
            visibility=visibility,
        )
        self._current = current
        try:
            for text, action, *vector in listed:
                self.step(run, text, action, vector[0] if vector else None)
            return self.close(run, reward)
        except BaseException:
            self.discard(run)
            raise

    def decay_report(self, policies: Mapping[str, DecayPolicy] | None = None) -> DecayReport:
        """Return what each policy would have done to which memory in the failures of this loop.

        Rewards begin as they were before any decay; nothing is changed. Failures that were closed
        before this loop was made, or by others, are not in it.

        Parameters
        ----------
        policies : mapping of str to DecayPolicy, optional
            By the name to be shown; default ``cvx.learn.decay_report.POLICIES``.

        Returns
        -------
        DecayReport
            ``cases``, ``memories()`` and ``policies()`` are frames, ``write(path)`` makes a page.
        """
        ledger = self.ledger
        nodes = {one.node for one in ledger.cases if one.node in self.index}
        rewards = {node: ledger.original.get(node, self.index.reward(node)) for node in nodes}
        return decay_report(
            [one for one in ledger.cases if one.node in nodes],
            rewards,
            POLICIES if policies is None else policies,
            label_of=self._described,
        )

    def _described(self, node: int) -> str:
        episode, event = self.history.episode(node), self.history.event(node)
        if episode is None or event is None:
            return f"node {node}"
        said = " | ".join(part for part in (episode.goal, event.text, event.action) if part)
        return f"{episode.kind} {episode.episode_id}: {said or f'node {node}'}"

    def reset_decay(self, nodes: Iterable[int] | None = None) -> dict[int, float]:
        """Restore the rewards that decay lowered, of these nodes or of all.

        Returns
        -------
        dict of int to float
            The restored rewards, by node.
        """
        restored = self.ledger.undecayed(nodes)
        with self.record.transaction() as write:
            write.set_rewards(restored.items())
            write.clear_decays(restored)
        return self.ledger.reset(restored)

    def stats(self) -> dict[str, Any]:
        """Return how much was learned, on what it rests, and how its predictions turned out.

        Returns
        -------
        dict
            ``episodes``, ``won``; ``samples``, ``weights`` and ``selection`` of the learned
            weights; ``calibration`` of the logged decisions. None for what is switched off or
            has nothing to tell.
        """
        learned, found = self.weights, logged_calibration(self.record)
        return {
            "episodes": len(self.episodes),
            "won": sum((one.reward or 0.0) > self.success_above for one in self.episodes),
            "samples": None if learned is None else learned.samples,
            "weights": None if self.scorer is None else dict(self.scorer.weights),
            "selection": None if learned is None else str(learned.selection),
            "calibration": None if found is None else found.to_dict(),
        }
