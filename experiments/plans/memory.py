"""`PlanMemory`: stores plans and situations in an `ActiveMemory`, and recalls them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Literal

from cvx.learn.episode_recorder import OpenEpisode
from cvx.learn.loop import ActiveMemory
from cvx.types import Cue, Decision, Filter, Hit
from experiments.plans.attempt import Attempt, Wish
from experiments.plans.binding import Binding, signature
from experiments.plans.clauses import holds
from experiments.plans.command_history import PastCommand, lasting
from experiments.plans.demonstration import Demonstrations
from experiments.plans.lessons import (
    COMPOSED,
    FOLLOWED,
    MOMENT,
    PLAN,
    SLOTS,
    SUBGOAL,
    TOOK,
    Part,
    learned,
    searched,
    take_in,
    take_time,
    take_trials,
    timed,
    understand,
)
from experiments.plans.open_clauses import Item
from experiments.plans.plan_choice import choose
from experiments.plans.searches import Search
from experiments.plans.situations import Advice, Consulted, moment, tally
from experiments.plans.vectors import Space
from experiments.plans.words import filled, shape, template, variables_of


class PlanMemory:
    """Remembers how goals were reached as plans, and closes every attempt with its outcome.

    An attempt is one episode: an event that lies where the goal's words do, then the steps. Two
    kinds of event are told apart by a tag, and each is recalled by ``ActiveMemory.recall``: the
    starts of attempts, whose continuations are plans; moments, in which something was explored.
    What the episodes teach about words (``lexicon``), about where to look (``searches``) and about
    time (``durations``) is counted, and counted again from them when a memory is opened, or when
    one of them was put away.

    Parameters
    ----------
    memory : ActiveMemory
        With ``action_type=shape`` and ``usage_key=use_key``, as `experiments.plans` has them.
    looked_at : int, default 64
        How many episodes are looked at for a plan.
    neighbours : int, default 15
        How many moments have a vote.
    exponent : float, default 1.0
        The vote of a neighbour is its score to this power.
    searching : bool, default True
        Whether what was explored is counted; it is kept all the same.

    Attributes
    ----------
    lexicon : Lexicon
    searches : Searches
    durations : Durations
        How many commands plans took that succeeded, by (form of the goal, plan).
    decisions : int
        How often memory was asked what to do.
    seconds : float
        What the recalls took, embedding apart.
    """

    def __init__(
        self,
        memory: ActiveMemory,
        *,
        looked_at: int = 64,
        neighbours: int = 15,
        exponent: float = 1.0,
        searching: bool = True,
    ) -> None:
        self.memory, self.searching = memory, searching
        self.looked_at, self.neighbours, self.exponent = looked_at, neighbours, exponent
        self.decisions, self.seconds = 0, 0.0
        self._learn()

    def _learn(self) -> None:
        """Learn from the episodes that the agent may read."""
        memory, told = self.memory, self.memory.readable()
        self.lexicon, self.durations = learned(told), timed(told)
        self.searches = searched(told if self.searching else [])
        self._space = Space(memory.embedder, memory.index.dim, self.lexicon)
        self._unlearned = memory.unlearned

    def _notice(self) -> None:
        """Learn anew if something of that was put away, brought back or erased."""
        self.memory.notice()
        if self._unlearned != self.memory.unlearned:
            self._learn()

    def teach(self, demonstrations: Demonstrations) -> None:
        """Remember how somebody else reached goals.

        Parameters
        ----------
        demonstrations : sequence of (goal, steps)
            Each step has an ``observation`` and the ``command`` given on it.

        Raises
        ------
        InvalidInputError
            A demonstration without a goal or without a step; nothing is learned of any.
        """
        self._notice()
        for part in understand(self.lexicon, demonstrations):
            self._observe(part)

    def _observe(self, part: Part) -> None:
        goal, slots, steps, shown, search = part
        binding = Binding(slots, self.lexicon)
        plan = tuple(binding.abstract(step.command) for step in steps if step.aimed)
        run = self.memory.begin(goal, template(goal, slots), kind="demonstration", metadata=shown)
        attempt = Attempt(run, Binding(slots, self.lexicon), search, plan, commands=len(steps))
        with self._discarding(run):
            self.memory.step(run, goal, None, self._space.start(goal, slots, plan), tags=(PLAN,))
            for step in steps:
                text = moment(step.commands, step.before, step.last, attempt.subgoal)
                search.saw(step.commands, explored=attempt.explored)
                ready = attempt.goes_on(step.commands)
                if ready:
                    search.led()
                if step.aimed:
                    self.advance(attempt, step.command, text)
                else:
                    form, vector = shape(step.command), self._space.moment(text)
                    self.memory.step(run, text, form, vector, tags=(MOMENT,))
                    attempt.explored = True
                    if not ready:
                        search.explored(Wish.of(attempt).need, step.command)
            self.close(attempt, won=True)

    @contextmanager
    def _discarding(self, run: OpenEpisode) -> Iterator[None]:
        """Leave no episode open whose steps could not all be recorded."""
        try:
            yield
        except BaseException:
            self.memory.discard(run)
            raise

    def begin(
        self, item: Item, slots: Sequence[str], texts: Iterable[str], search: Search
    ) -> Attempt:
        """Start an attempt at the plan that promises most.

        Parameters
        ----------
        item : Item
            What is to be reached. Its rejected plans are forgotten when no other is left. Where
            the plan begins as its stuck attempt did, it is taken up from there, since the world
            is as that left it.
        slots : sequence of str
            The names of its things, see `Lexicon.slots`.
        texts : iterable of str
            What was told so far.
        search : Search
            What is explored in this game.

        Returns
        -------
        Attempt
            Without a plan if memory knows none, or if what is to be reached holds already.
        """
        self._notice()
        run = self.memory.begin(item.clause, template(item.clause, slots))
        if holds(item.clause, slots, texts):
            return Attempt(run, Binding(slots, self.lexicon), search, (), idle=True, holds=True)
        with self._discarding(run):
            return self._begun(run, item, slots, search)

    def _begun(self, run: OpenEpisode, item: Item, slots: Sequence[str], search: Search) -> Attempt:
        goal, stuck = item.clause, item.stuck
        query = self._space.goal(goal, slots)
        self.decisions += 1
        decision = self._recall(Cue(goal=goal, vector=query), PLAN, self.looked_at)
        hit, plan = choose(decision.hits, self.lexicon, self._nouns, item.rejected)
        followed = () if hit is None else hit
        stored = self._space.start(goal, slots, plan)
        self.memory.act(decision, None, followed, vector=stored, tags=(PLAN,))
        attempt = Attempt(run, Binding(slots, self.lexicon), search, plan)
        attempt.idle = hit is not None and not plan
        same = 0 if stuck is None else stuck.place
        if stuck and same and signature(stuck.plan[:same]) == signature(plan[:same]):
            attempt.binding, attempt.place, attempt.commands = stuck.binding, same, stuck.commands
            attempt.spent, attempt.redo = stuck.spent, stuck.redo
            attempt.explored = stuck.redo is not None
            for step in stuck.steps:
                self._record(attempt, *step)
        return attempt

    def _nouns(self, hit: Hit) -> dict[int, str]:
        episode = self.memory.episode_of(hit)
        return {} if episode is None else filled(episode.task_type or "", episode.goal)

    def advance(self, attempt: Attempt, command: str, text: str) -> None:
        """Record a step of the plan.

        Parameters
        ----------
        attempt : Attempt
        command : str
            What is done.
        text : str
            The moment, see `moment`.
        """
        self._record(attempt, text, attempt.binding.abstract(command, attempt.subgoal))
        attempt.place, attempt.moment = attempt.place + 1, text
        attempt.doubts, attempt.explored = 0, False

    def _record(self, attempt: Attempt, text: str, action: str) -> None:
        attempt.steps.append((text, action))
        self._subgoal(attempt.run, text, action)

    def _subgoal(self, run: OpenEpisode, text: str, action: str) -> None:
        self.memory.step(run, text, action, self._space.moment(text), tags=(SUBGOAL,))

    def consult(self, attempt: Attempt, text: str) -> Consulted:
        """Ask what was done in moments like this one, and what led to what is missing."""
        self._notice()
        self.decisions += 1
        cue = Cue(step=text, vector=self._space.like(text))
        decision = self._recall(cue, MOMENT, self.neighbours)
        votes = tally(((str(h.action), h.score) for h in decision.hits), self.exponent)
        wish = Wish.of(attempt)
        chance = partial(self.searches.chance, attempt.search.origin, wish.need)
        return Consulted(text, decision, Advice(votes, dict(decision.action_scores), chance), wish)

    def explored(self, attempt: Attempt, consulted: Consulted, command: str) -> None:
        """Record a command that was chosen while the next step of the plan was not possible."""
        vector = self._space.moment(consulted.text)
        self.memory.act(consulted.decision, shape(command), vector=vector, tags=(MOMENT,))
        attempt.search.explored(consulted.wish.need, command)
        attempt.explored, attempt.moment = True, consulted.text

    def rewarded(self, attempt: Attempt, command: str) -> None:
        """Record as a step of the plan an explored command that brought a reward.

        Without it the plan that is remembered would end before what reached the goal.
        """
        action = attempt.binding.abstract(command)
        if variables_of(action):
            self._record(attempt, attempt.moment, action)

    def close(self, attempt: Attempt, won: bool, *, cut_off: bool = False) -> None:
        """End an attempt with its outcome, and learn its words if memory kept it.

        Parameters
        ----------
        attempt : Attempt
        won : bool
        cut_off : bool, default False
            Whether time ran out before its plan was carried out. Which explored commands led on was
            seen, and is learned. Whether the plan was wrong was not: that counts as far as plans
            that succeed are through by then (``durations``).
        """
        if attempt.holds:
            self.discard(attempt)
            return
        run = attempt.run
        plan, took = signature(attempt.plan), attempt.commands
        own = {SLOTS: list(attempt.binding.slots), FOLLOWED: plan, TOOK: took}
        run.metadata = {**run.metadata, **own, **attempt.search.told()}
        exposure = self.durations.done_by(took, (run.task_type, plan)) if cut_off else 1.0
        episode = self.memory.close(run, float(won), exposure=exposure)
        take_in(self.lexicon, episode)
        take_time(self.durations, episode)
        if self.searching:
            take_trials(self.searches, episode)

    def composed(self, attempt: Attempt, deeds: Iterable[PastCommand]) -> None:
        """Remember, beside the plan that reached a clause, all that was done for it and lasted.

        After attempts in vain the last plan alone may not have been enough. Nothing is added where
        that is what the plan says, or what was recorded of it. It is a won episode of its own, and
        counts as one; its metadata says that it is composed.

        Parameters
        ----------
        attempt : Attempt
            The last one, before it is closed.
        deeds : iterable of PastCommand
            Of all attempts at this clause.
        """
        if attempt.holds:
            return
        goal, form, slots = attempt.run.goal, attempt.run.task_type, list(attempt.binding.slots)
        steps = lasting(deeds, slots, self.lexicon)
        plan = tuple(action for _, action in steps)
        recorded = tuple(action for _, action in attempt.steps)
        if signature(plan) in ("", signature(recorded), signature(attempt.plan)):
            return
        run = self.memory.begin(goal, form, metadata={SLOTS: slots, COMPOSED: True})
        with self._discarding(run):
            self.memory.step(run, goal, None, self._space.start(goal, slots, plan), tags=(PLAN,))
            for text, action in steps:
                self._subgoal(run, text, action)
            take_in(self.lexicon, self.memory.close(run, 1.0))

    def discard(self, attempt: Attempt) -> None:
        """End an attempt that was broken off: its plan was not followed to the end."""
        self.memory.discard(attempt.run)

    def _recall(self, cue: Cue, tag: str, k: int) -> Decision:
        start = time.perf_counter()
        distinct: Literal["entity"] | None = "entity" if tag == PLAN else None
        decision = self.memory.recall(cue, Filter(tags=(tag,)), k, distinct=distinct)
        self.seconds += time.perf_counter() - start
        return decision
