"""Keeps the learned models (regions, usage, decay, weights) in step with the record's episodes."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from cvx.errors import DamagedStoreError, InvalidInputError, StoreError
from cvx.index import RawIndex
from cvx.learn.attribution import Outcome, without_gone
from cvx.learn.decay import DecayLedger, DecayPolicy
from cvx.learn.episode_lookup import EpisodeLookup
from cvx.learn.episode_recorder import EpisodeRecorder, OpenEpisode
from cvx.learn.episode_update import EpisodeUpdate
from cvx.learn.namespace_scorer import NamespaceScorer
from cvx.learn.region_mdp import RegionMDP
from cvx.learn.region_mdp.trajectories import timelines
from cvx.scoring import UsageTracker
from cvx.store import Record
from cvx.store.namespaces import least_visible, readers, reads
from cvx.store.replica import Replica
from cvx.store.row_validation import explaining
from cvx.store.rows import AMONG, DISCARDED, OPEN, listed
from cvx.types import Episode, Hit

_IS_CLOSED = f"episodes.kind NOT LIKE '{OPEN}%' AND episodes.kind NOT LIKE '{DISCARDED}%'"
_ADDS = ("episode", "insert", "link", "kind", "reward", "recallable", "step_kind")
"""Changes of the journal after which closed episodes say what they said."""
_CLOSED = (
    "SELECT episode_id, (SELECT timestamp FROM events WHERE episode = episode_id"
    f" ORDER BY event_id DESC LIMIT 1) FROM episodes WHERE {_IS_CLOSED}"
    " ORDER BY recorded, episode_id"
)
"""The closed episodes in the order in which they were closed, with the time of the last step."""


_SLICE, _READ_TOGETHER = 80, 8
"""How many steps the region model learns at the end of an episode while it has more to learn, and
how many episodes are read of the record at once."""


class TakenBackError(StoreError):
    """Learning was rolled back with its transaction: the models must be rebuilt."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Settings of learning: failures, edges, usage contexts, what counts as success."""

    learn_from_failures: bool
    edges: frozenset[str]
    action_type: Callable[[str], str]
    usage_key: Callable[[Hit, str | None], Hashable]
    success_above: float
    log_decisions: bool


class LearnedModels:
    """The closed episodes of a record and the models learned from them, for each asker.

    An outcome is written down first; what is in RAM, the index among it, follows. Where that
    fails, or another process wrote, it follows at the next call.

    Parameters
    ----------
    index : RawIndex
        Where the steps of episodes become nodes. Where no store keeps it, it may hold others too.
    record : Record
        Where everything is written down.
    rules : Rules
        What is learned, and how.
    mdp, usage, decay
        As for ``ActiveMemory``. The region model learns when it is asked for.
    learned : NamespaceScorer
        Of the loop's own namespace.
    also : tuple of str
        Further namespaces, of which what they share is seen too.
    clock : callable, optional
        Returns the time of a step.

    Attributes
    ----------
    history : EpisodeLookup
        The episodes by the nodes of their steps.
    recorder : EpisodeRecorder
        Has the closed episodes in its ``log``, oldest first, and gives out numbers. Those of a
        store are read when they are asked for.
    ledger : DecayLedger
        Rewards before any decay.
    distrusted : frozenset of str
        Sources in quarantine.
    unlearned : int
        How often something was put away, brought back or erased.
    kept_regions : callable
        Returns what ``regions`` returned in an earlier process, if that was kept and still holds.
    mutex : RLock
        Held while an outcome is worked out and taken in.
    asked, outdated, erased : int
        The last decision made; the last one before something was put away, or erased.
    """

    def __init__(
        self,
        index: RawIndex,
        record: Record,
        rules: Rules,
        *,
        mdp: RegionMDP | None,
        usage: UsageTracker | None,
        decay: DecayPolicy | None,
        learned: NamespaceScorer,
        also: tuple[str, ...],
        clock: Callable[[], int] | None,
    ) -> None:
        self.index = index
        self.record = record
        self.rules = rules
        self._mdp = mdp
        self._regions_asked = bool(mdp)
        self.kept_regions: Callable[[], Mapping[str, Any] | None] = lambda: None
        self._came_before: list[Episode] = []
        self.usage = usage
        self.decay = decay
        self.also = also
        self.history = EpisodeLookup(index, self._episode_of_node)
        self.ledger = DecayLedger()
        self.unlearned = 0
        self.asked = self.outdated = self.erased = -1
        self._own = learned.namespace
        self._scorers = {learned.namespace: learned}
        # With one of its own, whoever writes and whoever reads would take the two in either order.
        self.mutex = record.database.follower_lock
        # Blocks of transactions in which something was taken in; and how many were taken back.
        self._blocks: set[int] = set()
        self._blocks_taken_back = len(record.taken_back)
        # Closed episodes that the region model has yet to learn, in the order of their ends.
        self._unread: deque[int] = deque()
        self._rewards: dict[int, float] = {}
        self._open(clock)

    def _open(self, clock: Callable[[], int] | None) -> None:
        """Take in what the record has, and the index besides."""
        self._note_block()
        following = (one for one in self.record.followers if isinstance(one, Replica))
        replica = next((one for one in following if one.index is self.index), None)
        if replica is None:
            replica = Replica(self.record, None, (self.index, 0))
        self._seen = self._noticed = self.record.tail().seq
        # Put away, and in no index.
        self._away_events = self._events_put_away()
        self.history.put_away(self.record.put_away())
        self.distrusted = self.record.quarantined_sources()
        first_episode, first_entity = self.record.next_ids()
        self.recorder = EpisodeRecorder(
            first_episode=first_episode,
            first_entity=first_entity,
            now=clock,
            read=self._read_episodes,
        )
        found = self.record.query(_CLOSED)
        self.recorder.log.note(number for number, _ in found)
        self.recorder.clock = max((last + 1 for _, last in found if last is not None), default=0)
        if found:
            self._restore_counts()
        if replica.fresh is None:
            # Nothing but the record says what this index has to hold.
            self._came_before = self._came_with_the_index()
            self.recorder.log.of(self.recorder.log.numbers)

    @property
    def mdp(self) -> RegionMDP | None:
        """The region model, which has learned from all that was closed."""
        self._learn_regions()
        return self._mdp

    def _learn_regions(self, steps: float = math.inf) -> None:
        """Let the region model learn about so many steps of those that it has yet to learn."""
        log, mdp = self.recorder.log, self._mdp
        if mdp is None or (self._regions_asked and not self._unread):
            return
        with self.record.reading(), self.mutex:
            if not self._regions_asked:
                unread = deque(self._unkept(mdp, log.numbers))
                # That it is of this index is asked for even where nothing came before.
                mdp.learn_from_episodes(self.index, self._came_before)
                mdp.leave_out(self.history.away)
                # Until then other threads wait for this one.
                self._unread, self._regions_asked = unread, True
            while self._unread and steps > 0:
                together = [*islice(self._unread, _READ_TOGETHER)]
                log.of(together)
                for number in together:
                    for episode in filter(_teaches_regions, log.of([number])):
                        mdp.update(episode)
                        steps -= len(episode.steps)
                    self._unread.popleft()
                    if steps <= 0:
                        break

    def _unkept(self, mdp: RegionMDP, numbers: list[int]) -> list[int]:
        """Let the region model know what was kept of it; return the episodes beside those."""
        told = self.kept_regions()
        if told is None:
            return numbers
        try:
            learned = set(told["read"].tolist())
            mdp.restore(told["model"])
        except (InvalidInputError, LookupError, AttributeError):
            return numbers
        return [number for number in numbers if number not in learned]

    @property
    def region_steps(self) -> int:
        """How many steps the region model has learned from so far."""
        return self._mdp.steps if self._mdp is not None and self._regions_asked else 0

    def regions(self) -> dict[str, Any] | None:
        """Return what the region model learned, None where it has yet to learn more."""
        mdp = self._mdp
        if mdp is None or not self._regions_asked or self._unread or mdp.behind or not len(mdp):
            return None
        read = np.array(self.recorder.log.numbers, dtype=np.int64)
        return {"model": mdp.to_dict(counts=True), "read": read}

    def _came_with_the_index(self) -> list[Episode]:
        """Return the timelines of nodes that the record does not have, where something was done.

        New episodes go on after them.
        """
        if not len(self.index):
            return []
        rows = self.record.query("SELECT node FROM events UNION ALL SELECT node FROM aliases")
        nodes = self.index.region_assignments(0)[0].tolist()
        known = {node for (node,) in rows}
        found = timelines(self.index, (node for node in nodes if node not in known))
        for episode in found:
            self.recorder.start_at(0, episode.entity_id + 1)
            self.recorder.clock = max(self.recorder.clock, episode.steps[-1].timestamp + 1)
        return [episode for episode in found if episode.actions]

    def _read_episodes(self, numbers: Collection[int]) -> list[Episode]:
        """Return closed episodes of the record, found by their nodes from now on.

        Their rewards are as they were before any decay.
        """
        before: Mapping[Any, float] = self.ledger.original
        with explaining(self.record):
            found = [
                replace(
                    episode,
                    steps=tuple(
                        replace(step, reward=before[step.node]) if step.node in before else step
                        for step in episode.steps
                    ),
                )
                for episode in self.record.episodes(numbers)
            ]
        for episode in found:
            nodes = (step.node for step in episode.steps)
            unknown = [node for node in nodes if node is not None and node not in self.index]
            if unknown:
                raise StoreError(
                    f"the record has node {unknown[0]}, the index has not: load the index that "
                    "was saved with it"
                )
            self.history.add(episode)
        return found

    def _episode_of_node(self, node: int) -> Episode | None:
        """Return the closed episode that a node is a step of."""
        found = self.record.query("SELECT episode FROM events WHERE node = ?", (node,))
        return next(iter(self.recorder.log.of([row[0] for row in found])), None)

    def _restore_counts(self) -> None:
        if self.usage is not None:
            self.usage.load(self.record)
        self.ledger.load(self.record.decays())
        for namespace, learned in self._scorers.items():
            self._scorers[namespace] = self._restored(learned)

    def _restored(self, learned: NamespaceScorer) -> NamespaceScorer:
        return learned.restored(self, anew=learned.namespace in self.doubted().values())

    def doubted(self) -> dict[int, str]:
        """Return the episodes with steps of a source in quarantine, and their namespaces."""
        if not self.distrusted:
            return {}
        found = self.record.query(
            "SELECT DISTINCT episode, namespace FROM events WHERE source <> ''"
            f" AND source {AMONG} AND episode IS NOT NULL",
            (json.dumps([*self.distrusted]),),
        )
        return dict(found)

    def scorer_of(self, namespace: str | None = None) -> NamespaceScorer:
        """Return the scorer and the weights of a namespace, by default of the loop's own."""
        name = self._own if namespace is None else namespace
        found = self._scorers.get(name)
        if found is None:
            found = self._scorers[name] = self._restored(self._scorers[self._own].of(name))
        return found

    def usage_of(self, namespace: str) -> UsageTracker | None:
        """Return what a namespace may know of the counts of use."""
        if self.usage is None:
            return None
        return self.usage.within(reads(namespace, self.also), self.distrusted)

    def mdp_of(self, namespace: str) -> RegionMDP | None:
        """Return what the region model knows of the episodes that a namespace may read."""
        return None if self.mdp is None else self.mdp.within(reads(namespace, self.also))

    def mdp_so_far(self, namespace: str) -> RegionMDP | None:
        """Return the same of what it has learned so far: after opening, that may be little.

        Each end of an episode lets it learn a slice more, so that none waits for all of it.
        """
        if not self._regions_asked:
            self._learn_regions(_SLICE)
        return None if self._mdp is None else self._mdp.within(reads(namespace, self.also))

    def unchanged_since(self, seq: int) -> bool:
        """Return whether closed episodes say what they said at a number of the journal.

        Others may have been closed since.
        """
        if not self.record.keeps_changes_after(seq):
            return False
        changed = list[int]()
        try:
            changes = self.record.journal(seq, but=_ADDS)
        except DamagedStoreError:
            return False
        for *_, op, body in changes:
            if op == "erase" or (op == "row" and any(one[0] == "events" for one in body)):
                return False
            if op != "row":
                changed += [one[0] for one in body]
        return not self._teach("event_id", changed)

    def _teach(self, column: str, numbers: Collection[int]) -> bool:
        """Return whether any of these nodes or events is a step of a closed episode."""
        # Left to itself, SQLite may begin with all episodes.
        found = numbers and self.record.query(
            f"SELECT 1 FROM json_each(?1) CROSS JOIN events ON {column} = value"
            f" CROSS JOIN episodes ON episode_id = episode WHERE {_IS_CLOSED} LIMIT 1",
            (listed(numbers),),
        )
        return bool(found)

    def readable(
        self,
        namespace: str,
        *,
        also: tuple[str, ...] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> list[Episode]:
        """Return the closed episodes that a namespace may read, without what was put away.

        Parameters
        ----------
        namespace : str
            Who reads.
        also : tuple of str, optional
            Of whom it sees what they share, too; default those of the loop.
        numbers : sequence of int, optional
            Of the episodes to return; default all.
        """
        asker, away = reads(namespace, self.also if also is None else also), self.history.away
        told = []
        log = self.recorder.log
        for episode in log if numbers is None else log.of(numbers):
            seen = readers(
                episode.namespace, least_visible(step.visibility for step in episode.steps)
            )
            left = tuple(
                step
                for step in episode.steps
                if step.node not in away and step.event_id not in self._away_events
            )
            if seen in asker and (left or not episode.steps):
                told.append(episode if left == episode.steps else replace(episode, steps=left))
        return told

    def close(self, run: OpenEpisode, reward: float, exposure: float = 1.0) -> Episode:
        """Write the outcome of an episode down, all of it or nothing; then take it in.

        An error after it was written leaves the episode closed, and the rest for the next call.

        Parameters
        ----------
        run : OpenEpisode
        reward : float
            In [0, 1].
        exposure : float, default 1.0
            Below 1 it was cut off: the chance that a success had shown by then.

        Returns
        -------
        Episode
            With the nodes of its steps, if they are to go into the index.
        """
        closing = self.recorder.outcome(run, reward)
        won = float(reward) > self.rules.success_above
        outcome = Outcome(run, closing, run.taken, won, exposure)
        update = None
        try:
            with ExitStack() as held:
                with self.record.transaction() as write:
                    # Until this outcome is taken in: the next one is worked out from it.
                    held.enter_context(self.mutex)
                    # What others closed since this episode began is learned first.
                    self.catch_up()
                    outcome = self._renumbered(self._still_there(outcome))
                    began = write.tail
                    update = EpisodeUpdate(self, outcome, write)
                    update.write(write)
                    # From here on nobody takes it for the episode of another process.
                    self.recorder.log.note([update.number])
                self._take(run, update)
        except BaseException:
            if update is not None and not run.closed:
                # An error after the commit is as good as none for what was written.
                written = write.tail != began and self.record.reaches(write.tail)
                with self.mutex:
                    if written:
                        self._take(run, update)
                    else:
                        self.recorder.log.renew([update.number], ())
            raise
        self._follow()
        if self._regions_asked:
            self._learn_regions(_SLICE)
        return update.episode

    def reset_decay(self, nodes: Iterable[int] | None = None) -> dict[int, float]:
        """Restore the rewards that decay lowered, of these nodes or of all."""
        with ExitStack() as held:
            with self.record.transaction() as write:
                held.enter_context(self.mutex)
                restored = self.ledger.undecayed(nodes)
                write.set_rewards(restored.items())
                write.clear_decays(restored)
            self.ledger.forget(restored)
            self._rewards.update(restored)
        self._follow()
        return restored

    def _take(self, run: OpenEpisode, update: EpisodeUpdate) -> None:
        episode = update.episode
        self.recorder.seal(run, episode)
        self.history.add(episode)
        self.ledger.note(update.number, update.cases, update.decays)
        self._rewards.update({node: after for _, node, _, after in update.decays})
        if self.usage is not None:
            self.usage.put(update.counts, update.whose)
        self._scorers[episode.namespace] = update.scorer
        if update.teaches and self._regions_asked:
            self._unread.append(update.number)

    def _follow(self) -> None:
        """Let the index take in what was written."""
        with self.record.reading():
            self.record.refresh()
            # What only the index knows has no row whose reward could be followed.
            for node in list(self._rewards):
                if node in self.index:
                    self.index.set_reward(node, self._rewards[node])
                del self._rewards[node]

    def _still_there(self, outcome: Outcome) -> Outcome:
        """Return an outcome whose decisions say and quote nothing of what was erased since."""
        taken = [
            replace(one, decision=replace(one.decision, rendered=""))
            if one.decision.decision_id <= self.erased
            else one
            for one in outcome.taken
        ]
        return without_gone(replace(outcome, taken=taken), lambda node: node not in self.index)

    def _renumbered(self, outcome: Outcome) -> Outcome:
        """Return an outcome with numbers that no other process has used meanwhile."""
        run, episode, number = outcome.run, outcome.episode, outcome.episode.episode_id
        used = self.record.query("SELECT 1 FROM episodes WHERE episode_id = ?", (number,))
        if number is None or run.stored or not used:
            return outcome
        new_number, new_entity = self.record.next_ids()
        entity = new_entity if run.own_entity else episode.entity_id
        name = None if run.own_entity else episode.entity
        steps = (
            replace(step, episode_id=new_number, entity_id=entity, entity=name)
            for step in episode.steps
        )
        episode = replace(
            episode, episode_id=new_number, entity_id=entity, entity=name, steps=tuple(steps)
        )
        taken = [
            replace(one, decision=replace(one.decision, episode_id=new_number))
            for one in outcome.taken
        ]
        self.recorder.start_at(new_number + 1, entity + 1)
        return replace(outcome, episode=episode, taken=taken)

    @property
    def taken_back(self) -> bool:
        """Whether something was taken in within a block of transactions that was taken back."""
        return not self._blocks.isdisjoint(self.record.taken_back)

    def _note_block(self) -> None:
        if self.record.block is not None:
            self._blocks.add(self.record.block)

    def catch_up(self) -> None:
        """Learn from the episodes that others closed in the same record meanwhile.

        Raises
        ------
        TakenBackError
            What this loop has learned from was taken back.
        """
        with self.record.reading():
            self.notice()
            if self.taken_back:
                raise TakenBackError(
                    "what this loop may have learned from was taken back, with all that was "
                    "written together: make a new one"
                )
            if len(self.record.taken_back) != self._blocks_taken_back:
                self._blocks_taken_back = len(self.record.taken_back)
                if self._mdp is not None and self._regions_asked:
                    # The index was built anew, and may have other regions under the same numbers.
                    self._mdp.relearn()
            seq = self.record.tail().seq
            if seq == self._seen:
                return
            if self.record.keeps_changes_after(self._seen):
                changes = self.record.journal(self._seen, op="episode")
                numbers = [number for *_, body in changes for number in body]
            else:
                numbers = [number for number, _ in self.record.query(_CLOSED)]
            log = self.recorder.log
            closed = {number: at for at, number in enumerate(numbers) if number not in log}
            if closed:
                self._restore_counts()
                found = self._read_episodes(closed)
                for episode in sorted(found, key=lambda one: closed[int(one.episode_id or 0)]):
                    log.append(episode)
                    if episode.steps:
                        last = episode.steps[-1].timestamp
                        self.recorder.clock = max(self.recorder.clock, last + 1)
                    if self._regions_asked:
                        self._unread.append(int(episode.episode_id or 0))
                self.recorder.start_at(*self.record.next_ids())
            self._seen = seq
            self._follow()

    def notice(self) -> None:
        """Leave out what was put away or erased in the record since, and take back the rest."""
        with self.record.reading():
            self._note_block()
            self._follow()
            seq = self.record.tail().seq
            if seq != self._noticed:
                after, self._noticed = self._noticed, seq
                self._look_after(after, taken_back=seq < after)

    def _look_after(self, seq: int, *, taken_back: bool) -> None:
        """Leave out and take back what changed after a number of the journal."""
        record = self.record
        kept = record.keeps_changes_after(seq)
        if not kept:
            # Anything may have been erased or renamed since.
            self._read_again((), self.recorder.log.numbers)
            self.unlearned += 1
            self.erased = self.asked
            if self.usage is not None:
                self.usage.load(record, anew=True)
        if not kept or taken_back or self.taken_back:
            away = record.put_away()
            back = {node for node in self.history.away - away if node in self.index}
            self._put_away(away - self.history.away, back)
            self._trust_again()
            return
        states: dict[int, str] = {}
        for *_, body in record.journal(seq, op="state"):
            states.update((event, state) for event, _, state in body)
        gone, back = set[int](), set[int]()
        for event, nodes in record.nodes_of_events([*states]).items():
            (back if states[event] == "active" else gone).update(nodes)
        erasures = record.journal(seq, op="erase")
        erased = [node for *_, nodes in erasures for node in nodes]
        changed = [one[0] for *_, body in record.journal(seq, op="metadata") for one in body]
        found = record.query(
            f"SELECT DISTINCT episode FROM events WHERE event_id {AMONG} AND episode IS NOT NULL",
            (listed(changed),),
        )
        self._read_again(
            erased, self.recorder.log.numbers if erasures else [number for (number,) in found]
        )
        self.unlearned += self._teach("event_id", changed)
        if erased:
            self.erased = self.asked
            if self.usage is not None:
                self.usage.load(record, anew=True)
        self._put_away(gone.union(erased), back)
        self.unlearned += bool(erasures)
        if states:
            self._trust_again()

    def _trust_again(self) -> None:
        """Learn weights anew where other sources are in quarantine than before."""
        before, self.distrusted = self.distrusted, self.record.quarantined_sources()
        if before != self.distrusted:
            for namespace, learned in self._scorers.items():
                self._scorers[namespace] = learned.restored(self, anew=True)

    def _put_away(self, gone: Collection[int], back: Collection[int]) -> None:
        """Leave nodes out of everything, and let others back in; no events but steps teach."""
        before, self._away_events = self._away_events, self._events_put_away()
        steps = self._teach("node", (*gone, *back))
        self.unlearned += steps or before != self._away_events
        if not gone and not back:
            return
        self.history.put_away(gone, back)
        if self._mdp is not None and self._regions_asked:
            self._mdp.leave_out(gone)
            self._mdp.take_back(back)
        self.outdated = self.asked

    def _events_put_away(self) -> frozenset[int]:
        """Return the steps that were put away and are in no index."""
        events = self.record.query(
            "SELECT event_id FROM events JOIN episodes ON episode = episode_id"
            " WHERE state <> 'active' AND node IS NULL AND episodes.kind NOT LIKE ?",
            (f"{DISCARDED}%",),
        )
        return frozenset(event for (event,) in events)

    def _read_again(self, nodes: Iterable[int], episodes: Iterable[int] = ()) -> None:
        """Take the episodes of these nodes as the record has them now, without what was erased."""
        known = (self.history.episode(node) for node in nodes)
        touched = {one.episode_id for one in known if one and one.episode_id is not None}
        touched.update(episodes)
        if not touched:
            return
        log = self.recorder.log
        for episode in log.renew(touched, {number for number, _ in self.record.query(_CLOSED)}):
            self.history.forget(step.node for step in episode.steps if step.node is not None)


def _teaches_regions(episode: Episode) -> bool:
    """Return whether every step of an episode is in the index, and there are some."""
    return bool(episode.steps) and all(step.node is not None for step in episode.steps)
