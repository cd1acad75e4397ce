"""Computes what the end of an episode changes: rewards, edges, usage counts, weights."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from cvx.cue import cue_hash
from cvx.learn.attribution import (
    Outcome,
    Recalled,
    attribution_edges,
    recalled,
    usage_contexts,
    weight_samples,
)
from cvx.learn.decay import DecayCase
from cvx.learn.edges import same_action_edges
from cvx.scoring import UsageCount, UsageTracker, Whose
from cvx.store import Writer
from cvx.store.namespaces import owner, readers
from cvx.store.prompt_injection import tags_with_mark
from cvx.types import Edge, Episode, task_tag

if TYPE_CHECKING:
    from cvx.learn.model_sync import LearnedModels


class EpisodeUpdate:
    """Everything that the end of an episode changes; nothing of it has changed yet.

    Parameters
    ----------
    models : LearnedModels
        What is known so far, which stays as it is.
    outcome : Outcome
        Of an episode whose numbers are free.
    write : Writer
        Gives out the nodes of its steps.

    Attributes
    ----------
    episode : Episode
        With the nodes of its steps, if they are to go into the index.
    teaches : bool
        Whether anything but decay learns from it.
    cases : dict of int to DecayCase
        What was recalled in a failure, by node.
    decays : list of (game, node, before, after)
        What that costs them.
    edges : list of Edge
        What it links.
    whose : Whose
        In whose episodes use is counted.
    counts : dict of context to UsageCount
        The new counts of use.
    scorer : NamespaceScorer
        With the new weights of the episode's namespace.
    """

    def __init__(self, models: LearnedModels, outcome: Outcome, write: Writer) -> None:
        self.models = models
        self.outcome = outcome
        self.teaches = outcome.won or models.rules.learn_from_failures
        self._stored = outcome.run.stored
        self.memories = recalled(outcome.taken)
        self.episode = self._placed(outcome.episode, write) if self.teaches else outcome.episode
        self.cases: dict[int, DecayCase] = {}
        self.decays: list[tuple[int, int, float, float]] = []
        if not outcome.won and outcome.exposure and models.decay is not None:
            self.cases = self._cases()
            self.decays = models.ledger.changes(
                self.number, self.cases, models.decay, models.index.reward
            )
        self.whose = Whose()
        self.counts: dict[Hashable, UsageCount] = {}
        self.edges: list[Edge] = []
        self.scorer = models.scorer_of(self.episode.namespace)
        if self.teaches:
            self._count()
            self.edges = self._edges()
            if self.scorer.weights is not None:
                names = self.scorer.weights.names
                taught = weight_samples(outcome.taken, names, outcome.won)
                self.scorer = self.scorer.after(taught)

    @property
    def number(self) -> int:
        """The number of the episode."""
        return int(self.episode.episode_id or 0)

    def write(self, write: Writer) -> None:
        """Store all of it."""
        outcome, episode = self.outcome, self.episode
        if self._stored:
            write.close_episode(episode, recallable=outcome.won)
        else:
            write.add_episode(episode, recallable=outcome.won)
        write.add_decays(self.decays)
        usage = self.models.usage
        if usage is not None and self.counts:
            usage.save(write, self.counts, self.whose)
        write.add_links(self.edges)
        weights = self.scorer.weights
        if weights is not None and self.scorer is not self.models.scorer_of(episode.namespace):
            write.set_state(self.scorer.name, weights.to_dict())
        if self.models.rules.log_decisions:
            write.add_decisions(
                (replace(one.decision, outcome=episode.reward), self._noted(one.decision))
                for one in outcome.taken
                if one.noted is None
            )
        decided = [
            (
                replace(one.decision, outcome=episode.reward),
                {**one.noted, **self._noted(one.decision)},
            )
            for one in outcome.taken
            if one.noted is not None
        ]
        write.add_decisions(decided, replace=True)

    def _noted(self, decision: Any) -> Mapping[str, Any]:
        helped = self.outcome.won if decision.followed else None
        return {"cue_hash": cue_hash(decision.cue), "helped": helped}

    def _placed(self, episode: Episode, write: Writer) -> Episode:
        family = [] if episode.task_type is None else [task_tag(episode.task_type)]
        kind = "step" if self.outcome.won else "failed_step"
        if self._stored:
            return replace(episode, steps=tuple(replace(one, kind=kind) for one in episode.steps))
        nodes = write.take_nodes(len(episode.steps))
        steps = (
            replace(
                step, node=node, kind=kind, tags=tags_with_mark((*family, *step.tags), step.text)
            )
            for step, node in zip(episode.steps, nodes, strict=True)
        )
        return replace(episode, steps=tuple(steps))

    def _cases(self) -> dict[int, DecayCase]:
        index, namespace = self.models.index, self.episode.namespace
        # A reward is the event's: found by an alias, it decays on the event's own node, from
        # where it reaches all aliases.
        own = self.models.record.own_nodes(list(self.memories))
        mdp, usage = self.models.mdp_so_far(namespace), self.models.usage_of(namespace)

        @cache
        def told(region: int, kind: str | None) -> tuple[float, float]:
            """Return quality of a region and success of a kind of action there, as for a case."""
            assert mdp is not None
            success = None if kind is None else mdp.success(region, kind)
            return mdp.region_quality(region), 0.5 if success is None else success

        cases: dict[int, DecayCase] = {}
        for node, one in self.memories.items():
            # What is another's keeps its reward: a failure here says nothing to others.
            if node in index and owner(index.namespace(node))[0] == namespace:
                region = None if mdp is None else mdp.region_of(node)
                kind = one.hit.action and self.models.rules.action_type(one.hit.action)
                beliefs = (0.5, 0.5) if region is None else told(region, kind)
                cases.setdefault(own.get(node, node), self._case(one, region, beliefs, usage))
        return cases

    def _case(
        self,
        one: Recalled,
        region: int | None,
        beliefs: tuple[float, float],
        usage: UsageTracker | None,
    ) -> DecayCase:
        models, episode, hit = self.models, self.episode, one.hit
        origin = models.history.episode(hit.node)
        place = models.history.place(hit.node)
        used = None if usage is None else usage.count(("node", hit.node))
        return DecayCase(
            expert_task_type=models.history.task_type(hit.node),
            game_task_type=episode.task_type,
            expert_action=hit.action,
            agent_actions=frozenset(episode.actions),
            followed=one.followed,
            region_quality=beliefs[0],
            action_success=beliefs[1],
            helped=used.helped if used else 0,
            uses=used.followed if used else 0,
            expert_place=place / len(origin.steps) if origin and place is not None else None,
            game_place=one.place / len(episode.steps),
            same_region=None if region is None or one.region is None else region == one.region,
        )

    def _count(self) -> None:
        episode, usage = self.episode, self.models.usage_of(self.episode.namespace)
        if usage is None or not self.memories:
            return
        first, key = episode.steps[0], self.models.rules.usage_key
        self.whose = Whose(readers(episode.namespace, first.visibility), first.source)
        contexts = usage_contexts(self.memories.values(), lambda hit: key(hit, episode.task_type))
        for context, (followed, similarity) in contexts.items():
            self.counts[context] = usage.after(
                context,
                followed=followed,
                helped=self.outcome.won,
                exposure=self.outcome.exposure,
                mean=similarity if usage.by_similarity else None,
                whose=self.whose,
                weight=1 if first.trust == 1.0 else first.trust,
            )

    def _edges(self) -> list[Edge]:
        models, episode = self.models, self.episode
        nodes = [step.node for step in episode.steps if step.node is not None]
        if len(nodes) < len(episode.steps):
            # What cannot be found by likeness is no end of a link.
            return []
        made = attribution_edges(
            self.outcome.taken, nodes, float(episode.reward or 0.0), self.outcome.won
        )
        if "same_action_type" in models.rules.edges:
            made += same_action_edges(models, episode)
        away = models.history.away
        return [
            edge
            for edge in made
            if edge.kind in models.rules.edges
            and edge.from_node in models.index
            and edge.from_node not in away
        ]
