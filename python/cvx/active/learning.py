"""What one outcome teaches: all of it is done, or none of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cvx.active.attribution import (
    Outcome,
    Recalled,
    attribution_edges,
    recalled,
    usage_contexts,
    weight_samples,
)
from cvx.active.edges import same_action_edges
from cvx.active.erased import without_gone
from cvx.learn.decay import DecayCase
from cvx.recall.cue import cue_hash
from cvx.scoring import Whose
from cvx.store.spaces import owner, readers, space
from cvx.store.suspicion import tags_with_mark
from cvx.types import Episode, Hit, task_tag

if TYPE_CHECKING:
    from cvx.active.parts import Parts
    from cvx.store import Writer


def learn(memory: Parts, outcome: Outcome) -> Episode:
    """Write an outcome down and learn from it, in one transaction of the record.

    If any part fails, the parts before it are taken back, and the error is raised again.

    Returns
    -------
    Episode
        With the nodes of its steps, if they went into the index.
    """
    undo: list[Callable[[], object]] = []
    try:
        with memory.record.transaction() as write:
            # What others closed since this episode began was learned first, and has its numbers.
            memory.catch_up()
            here = without_gone(outcome, lambda node: node not in memory.index)
            return _Lesson(memory, memory.renumbered(here), write, undo).run()
    except BaseException:
        for take_back in reversed(undo):
            take_back()
        raise


class _Lesson:
    def __init__(
        self,
        memory: Parts,
        outcome: Outcome,
        write: Writer,
        undo: list[Callable[[], object]],
    ) -> None:
        self.memory = memory
        self.outcome = outcome
        self.write = write
        self.undo = undo
        self.memories = recalled(outcome.taken)

    def run(self) -> Episode:
        memory, outcome = self.memory, self.outcome
        teaches = outcome.won or memory.learn_from_failures
        episode = self._insert(outcome.episode) if teaches else outcome.episode
        self.write.add_episode(episode, recallable=outcome.won)
        if not outcome.won:
            self._decay(episode)
        if teaches:
            self._count(episode)
            self._link(episode)
            self._weigh(episode)
        if memory.log_decisions:
            self.write.add_decisions(
                (
                    replace(one.decision, outcome=episode.reward),
                    {
                        "cue_hash": cue_hash(one.decision.cue),
                        "helped": outcome.won if one.decision.followed else None,
                    },
                )
                for one in outcome.taken
            )
        return episode

    def _insert(self, episode: Episode) -> Episode:
        memory, won = self.memory, self.outcome.won
        if not episode.steps:
            return episode
        family = [] if episode.task_type is None else [task_tag(episode.task_type)]
        tags = [list(tags_with_mark((*family, *step.tags), step.text)) for step in episode.steps]
        nodes = memory.index.bulk_insert(
            [step.entity_id for step in episode.steps],
            [step.timestamp for step in episode.steps],
            np.stack([step.vector for step in episode.steps if step.vector is not None]),
            rewards=[step.reward for step in episode.steps],
            namespaces=space(episode.namespace, episode.steps[0].visibility),
            tags=tags,
            actions=[step.action for step in episode.steps],
            recallable=won,
        ).tolist()
        self.undo.append(lambda: memory.index.delete(nodes))
        episode = replace(
            episode,
            steps=tuple(
                replace(
                    step,
                    node=node,
                    kind="step" if won else "failed_step",
                    # An index built from the record has the same tags.
                    tags=tuple(own),
                )
                for step, node, own in zip(episode.steps, nodes, tags, strict=True)
            ),
        )
        memory.history.add(episode)
        self.undo.append(lambda: memory.history.remove(episode))
        return episode

    def _decay(self, episode: Episode) -> None:
        memory = self.memory
        if memory.decay is None:
            return
        actions = frozenset(episode.actions)
        # A reward is the event's: found by an alias, it decays on the event's own node, from
        # where it reaches all aliases.
        own = memory.record.own_nodes(list(self.memories))
        cases: dict[int, DecayCase] = {}
        for node, one in self.memories.items():
            # What is another's keeps its reward: a failure here says nothing to others.
            if node in memory.index and owner(memory.index.namespace(node))[0] == episode.namespace:
                cases.setdefault(own.get(node, node), self._case(episode, actions, one))
        game = int(episode.episode_id or 0)
        changes = memory.ledger.apply(game, cases, memory.decay)
        self.undo.append(lambda: memory.ledger.revert(game, changes))
        self.write.add_decays(changes)

    def _case(self, episode: Episode, actions: frozenset[str], one: Recalled) -> DecayCase:
        memory, hit = self.memory, one.hit
        origin = memory.history.episode(hit.node)
        place = memory.history.place(hit.node)
        quality = success = 0.5
        region = None
        mdp = memory.mdp_of(episode.namespace)
        if mdp is not None:
            region = mdp.region_of(hit.node)
            if region is not None:
                quality = mdp.region_quality(region)
                if hit.action is not None:
                    estimate = mdp.success(region, memory.action_type(hit.action))
                    success = 0.5 if estimate is None else estimate
        usage = memory.usage_of(episode.namespace)
        used = None if usage is None else usage.count(("node", hit.node))
        return DecayCase(
            expert_task_type=memory.history.task_type(hit.node),
            game_task_type=episode.task_type,
            expert_action=hit.action,
            agent_actions=actions,
            followed=one.followed,
            region_quality=quality,
            action_success=success,
            helped=used.helped if used else 0,
            uses=used.followed if used else 0,
            expert_place=place / len(origin.steps) if origin and place is not None else None,
            game_place=one.place / len(episode.steps),
            same_region=None if region is None or one.region is None else region == one.region,
        )

    def _link(self, episode: Episode) -> None:
        memory, index = self.memory, self.memory.index
        nodes = [step.node for step in episode.steps if step.node is not None]
        made = attribution_edges(
            self.outcome.taken, nodes, float(episode.reward or 0.0), self.outcome.won
        )
        if "same_action_type" in memory.edges:
            made += same_action_edges(memory, episode)
        away = memory.history.away
        edges = [
            edge
            for edge in made
            if edge.kind in memory.edges and edge.from_node in index and edge.from_node not in away
        ]
        # Edges end on the new nodes: deleting those takes the edges back as well.
        for edge in edges:
            index.add_edge(edge.from_node, edge.to_node, edge.kind, edge.weight)
        self.write.add_links(edges)

    def _count(self, episode: Episode) -> None:
        memory = self.memory
        if memory.mdp is not None and episode.steps:
            memory.mdp.update(episode)
            self.undo.append(memory.mdp.retract)
        usage = memory.usage_of(episode.namespace)
        if usage is None or not self.memories:
            return
        first = episode.steps[0]
        whose = Whose(readers(episode.namespace, first.visibility), first.source)
        weight = 1 if first.trust == 1.0 else first.trust

        def key(hit: Hit) -> Hashable:
            return memory.usage_key(hit, episode.task_type)

        contexts = usage_contexts(self.memories.values(), key)
        before = usage.counted(contexts, whose)

        def restore() -> None:
            for context, count in before.items():
                usage.restore(context, count, whose)

        self.undo.append(restore)
        won, exposure = self.outcome.won, self.outcome.exposure
        for context, (followed, similarity) in contexts.items():
            mean = similarity if usage.by_similarity else None
            usage.add(
                context,
                followed=followed,
                helped=won,
                exposure=exposure,
                mean=mean,
                whose=whose,
                weight=weight,
            )
        usage.save(self.write, contexts, whose)

    def _weigh(self, episode: Episode) -> None:
        weighing = self.memory.weighing(episode.namespace)
        if weighing.weights is not None:
            names, outcome = weighing.weights.names, self.outcome
            taught = weight_samples(outcome.taken, names, outcome.won)
            self.undo.append(weighing.learn(taught, self.write))
