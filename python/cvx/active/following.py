"""Keeping a loop level with its record: what is there at first, and what others close or erase."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from cvx.active.attribution import Outcome, Taken
from cvx.active.history import History
from cvx.active.weighing import Weighing
from cvx.errors import RecordMismatchError
from cvx.index import TemporalIndex
from cvx.learn.decay import DecayLedger
from cvx.learn.episodes import EpisodeRecorder
from cvx.learn.region_mdp import RegionMDP
from cvx.learn.traces import timelines
from cvx.scoring import UsageTracker
from cvx.store import Record
from cvx.types import Episode


class Following:
    """The part of a loop that takes in what its record has; ``Parts`` makes what it needs."""

    index: TemporalIndex
    record: Record
    mdp: RegionMDP | None
    usage: UsageTracker | None
    success_above: float
    learn_from_failures: bool
    distrusted: frozenset[str]
    history: History
    ledger: DecayLedger
    recorder: EpisodeRecorder
    clock: Callable[[], int] | None
    _weighing: dict[str, Weighing]
    _seen: int
    _noticed: int
    _asked: int
    _outdated: int
    unlearned: int
    _blocks_taken_back: int
    _known: set[int | None]
    _taken: dict[int, list[Taken]]
    _own_entities: set[int]

    def _restore(self) -> None:
        self._seen = self._noticed = self.record.tail().seq
        self._put_away(self.record.put_away(), ())
        self.distrusted = self.record.quarantined_sources()
        episodes = self._recorded()
        first_episode, first_entity = self.record.next_ids()
        self.recorder = EpisodeRecorder(
            first_episode=first_episode, first_entity=first_entity, now=self.clock
        )
        learned = [episode for episode in episodes if self._remember(episode)]
        learned = [*self._came_with_the_index(), *learned]
        if self.mdp is not None and not len(self.mdp) and learned:
            self.mdp.learn_from_episodes(self.index, learned)
            self.mdp.leave_out(self.history.away)
        if episodes:
            self._restore_counts()

    def _came_with_the_index(self) -> list[Episode]:
        """Return the timelines of nodes that the record does not have, where something was done.

        New episodes go on after them.
        """
        if self.record.followed or not len(self.index):
            return []
        rows = self.record.query("SELECT node FROM events UNION ALL SELECT node FROM aliases")
        nodes = self.index.region_assignments(0)[0].tolist()
        known = {node for (node,) in rows}
        found = timelines(self.index, (node for node in nodes if node not in known))
        for episode in found:
            self.recorder.start_at(0, episode.entity_id + 1)
            self.recorder.clock = max(self.recorder.clock, episode.steps[-1].timestamp + 1)
        return [episode for episode in found if episode.actions]

    def _recorded(self, numbers: Iterable[int] | None = None) -> list[Episode]:
        """Return closed episodes of the record, with rewards as they were before any decay."""
        before: dict[int | None, float] = {}
        for _, node, reward, _ in self.record.decays():
            before.setdefault(node, reward)
        return [
            replace(
                episode,
                steps=tuple(
                    replace(step, reward=before[step.node]) if step.node in before else step
                    for step in episode.steps
                ),
            )
            for episode in self.record.episodes(numbers)
        ]

    def _remember(self, episode: Episode) -> bool:
        """Take in a closed episode of the record; tell whether all of it is in the index."""
        nodes = [step.node for step in episode.steps]
        unknown = [node for node in nodes if node is not None and node not in self.index]
        if unknown:
            raise RecordMismatchError(
                f"the record has node {unknown[0]}, the index has not: load the index that "
                "was saved with it"
            )
        self.history.add(episode)
        self.recorder.log.append(episode)
        if episode.steps:
            last = episode.steps[-1].timestamp
            self.recorder.clock = max(self.recorder.clock, last + 1)
        self._known.add(episode.episode_id)
        return bool(nodes) and None not in nodes

    def _restore_counts(self) -> None:
        if self.usage is not None:
            self.usage.load(self.record)
        self.ledger.load(self.record.decays())
        for weighing in self._weighing.values():
            self._restore_weights(weighing)

    def _restore_weights(self, weighing: Weighing) -> None:
        sources = (
            step.source
            for episode in self.recorder.log
            if episode.namespace == weighing.namespace
            for step in episode.steps[:1]
        )
        weighing.restore(self, anew=not self.distrusted.isdisjoint(sources))

    def catch_up(self) -> None:
        """Learn from the episodes that others closed in the same record meanwhile.

        Raises
        ------
        RecordMismatchError
            What this loop has learned from was taken back.
        """
        self.notice()
        if self.record.blocks_taken_back != self._blocks_taken_back:
            raise RecordMismatchError(
                "what this loop may have learned from was taken back, with all that was written "
                "together: make a new one"
            )
        seen, self._seen = self._seen, self.record.tail().seq
        if seen == self._seen:
            return
        changes = self.record.journal(seen, op="episode")
        closed = {number for *_, body in changes for number in body} - self._known
        if not closed:
            return
        for episode in self._recorded(closed):
            if self._remember(episode) and self.mdp is not None:
                self.mdp.update(episode)
        self._restore_counts()
        self.recorder.start_at(*self.record.next_ids())

    def notice(self) -> None:
        """Leave out what was put away or erased in the record since, and take back the rest."""
        self.record.refresh()
        seq = self.record.tail().seq
        if seq == self._noticed:
            return
        after, self._noticed = self._noticed, seq
        if seq < after or self.record.blocks_taken_back != self._blocks_taken_back:
            away = self.record.put_away()
            back = {node for node in self.history.away - away if node in self.index}
            self._put_away(away - self.history.away, back)
            self._trust_again()
            return
        states: dict[int, str] = {}
        for *_, body in self.record.journal(after, op="state"):
            states.update((event, state) for event, _, state in body)
        gone, back = set[int](), set[int]()
        for event, nodes in self.record.nodes_of_events([*states]).items():
            (back if states[event] == "active" else gone).update(nodes)
        erased = [node for *_, nodes in self.record.journal(after, op="erase") for node in nodes]
        changed = [
            event for *_, body in self.record.journal(after, op="metadata") for event, *_ in body
        ]
        renewed = [n for nodes in self.record.nodes_of_events(changed).values() for n in nodes]
        self._read_again([*erased, *renewed])
        if erased:
            self._forget_what_was_shown()
            if self.usage is not None:
                self.usage.load(self.record, anew=True)
        self._put_away(gone.union(erased), back)
        if states:
            self._trust_again()

    def _trust_again(self) -> None:
        """Learn weights anew where other sources are in quarantine than before."""
        before, self.distrusted = self.distrusted, self.record.quarantined_sources()
        if before != self.distrusted:
            for weighing in self._weighing.values():
                weighing.restore(self, anew=True)

    def _put_away(self, gone: Collection[int], back: Collection[int]) -> None:
        if not gone and not back:
            return
        self.history.put_away(gone)
        self.history.bring_back(back)
        if self.mdp is not None:
            self.mdp.leave_out(gone)
            self.mdp.take_back(back)
        self._outdated = self._asked
        self.unlearned += 1

    def renumbered(self, outcome: Outcome) -> Outcome:
        """Return an outcome with numbers that no other process has used meanwhile."""
        episode, number = outcome.episode, outcome.episode.episode_id
        if number is None or number not in self._known:
            return outcome
        new_number, new_entity = self.record.next_ids()
        entity = new_entity if number in self._own_entities else episode.entity_id
        episode = replace(
            episode,
            episode_id=new_number,
            entity_id=entity,
            steps=tuple(
                replace(step, episode_id=new_number, entity_id=entity) for step in episode.steps
            ),
        )
        taken = [
            replace(one, decision=replace(one.decision, episode_id=new_number))
            for one in outcome.taken
        ]
        self.recorder.start_at(new_number + 1, entity + 1)
        return replace(outcome, episode=episode, taken=taken)

    def _forget_what_was_shown(self) -> None:
        """Drop the rendered texts of running episodes: they may quote what was erased."""
        for taken in self._taken.values():
            taken[:] = [replace(one, decision=replace(one.decision, rendered="")) for one in taken]

    def _read_again(self, nodes: Collection[int]) -> None:
        """Take the episodes of these nodes as the record has them now, without what was erased."""
        known = (self.history.episode(node) for node in nodes)
        touched = {one.episode_id for one in known if one and one.episode_id is not None}
        if not touched:
            return
        self.history.forget(nodes)
        left = {episode.episode_id: episode for episode in self._recorded(touched)}
        for episode in left.values():
            self.history.add(episode)
        self.recorder.log[:] = [
            left.get(episode.episode_id, episode)
            for episode in self.recorder.log
            if episode.episode_id not in touched or episode.episode_id in left
        ]
