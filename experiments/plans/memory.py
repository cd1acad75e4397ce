"""`PlanMemory`: stores plans and situations in an `ActiveMemory`, and recalls them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from cvx.learn.episode_recorder import OpenEpisode
from cvx.learn.loop import ActiveMemory
from cvx.memory import Option
from cvx.scoring import Durations
from cvx.types import Cue, Episode, Filter
from experiments.plans.attempt import Attempt, Consulted, Item, Wish
from experiments.plans.binding import Binding, PastCommand, lasting, signature
from experiments.plans.choices import EXPLORED, ORIGIN, Choices, Search, hope, moment
from experiments.plans.clauses import holds
from experiments.plans.demonstration import Demonstrations, Played
from experiments.plans.lessons import (
    COMPOSED,
    DEMONSTRATION,
    FOLLOWED,
    MET,
    OFFERED,
    PLAN,
    SLOTS,
    SUBGOAL,
    TOOK,
    Part,
    kept,
    learned,
    rewarded_by_the_way,
    take_in,
    take_time,
    understand,
)
from experiments.plans.lexicon import Space, positions
from experiments.plans.plan_choice import Offer, Parts, choose, offers, parts_of
from experiments.plans.returns import Returns, Walk
from experiments.plans.words import shape, template, unnumbered, variables_of, words

PLANS = "plans"
"""The task of choosing plans."""

NOTHING = "nothing"
"""The action of a plan without steps."""

FIND, GAME, KIND = "find", "here find", "kind"
"""The tasks of exploring. Before the verb of what is missing: anywhere, and in one game; and which
kind of command."""

_LEAST = 0.01  # what counts less is not told


class PlanMemory:
    """Remembers how goals were reached as plans, and closes every attempt with its outcome.

    An attempt is one episode: an event that lies where the goal's words do, then the steps of the
    plan. The starts are recalled by ``ActiveMemory.recall``, and their continuations are plans.
    What the episodes teach about words (``lexicon``) and about time (``durations``) is counted, and
    counted again from them when a memory is opened, or when one of them was put away. Which plan
    promises most, and which command leads to what is missing, is advised by ``choices``.

    Parameters
    ----------
    memory : ActiveMemory
        With ``action_type=shape`` and ``usage_key=use_key``, as `experiments.plans` has them.
    looked_at : int, default 64
        How many episodes are looked at for a plan.
    choices : Choices, optional
        Which advises; without it plans are chosen by the scores of hits.
    advised : bool, default True
        Whether plans are chosen by advice too.
    searching : bool, default True
        Whether advice is asked where to look; what was explored is kept all the same.
    lending : bool, default True
        Whether plans are made of parts of others, too, where they are chosen by advice.
    returning : bool, default True
        Whether commands are chosen by what they returned, where choices are advised and rewards
        were shown that plans leave out.

    Attributes
    ----------
    lexicon : Lexicon
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
        choices: Choices | None = None,
        advised: bool = True,
        searching: bool = True,
        lending: bool = True,
        returning: bool = True,
    ) -> None:
        self.memory, self.choices = memory, choices
        self.advised = advised and choices is not None
        self.searching = searching and choices is not None
        self.lending = lending and self.advised
        self.looked_at = looked_at
        returning = returning and advised
        self.returns = Returns(memory, choices) if returning and choices is not None else None
        self.decisions, self.seconds, self._won = 0, 0.0, False
        self._learn()

    def _learn(self) -> None:
        """Learn from the episodes that the agent may read."""
        memory, told = self.memory, self.memory.readable()
        self.lexicon, self.durations = learned(told), Durations()
        for episode in told:
            take_time(self.durations, episode)
        self._space = Space(memory.embedder, self.lexicon)
        self._unlearned = memory.unlearned
        self._recount()

    def _recount(self) -> None:
        """Take from the episodes which plans were shown, and which ever won."""
        own = [e for e in self.memory.readable() if kept(e) and e.reward == 1.0]
        told = [(e.kind == DEMONSTRATION, _done(e)) for e in own]
        self._shown = dict.fromkeys(plan for shown, plan in told if shown)
        self._plans = {plan for _, plan in told}
        self._homes = {self._state(e.goal, e.metadata[SLOTS]) for e in own}
        self._played = {e.metadata.get(ORIGIN) for e in self.memory.readable() if kept(e)}

    def _notice(self) -> None:
        """Learn anew if something of that was put away, brought back or erased."""
        self.memory.notice()
        if self._unlearned != self.memory.unlearned:
            self._learn()
            if self.returns is not None:
                self.returns.learn()

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
        if self.returns is not None:
            by_the_way = rewarded_by_the_way(demonstrations)
            for place in by_the_way:
                self.returns.teach(*demonstrations[place])
            demonstrations = [d for n, d in enumerate(demonstrations) if n not in by_the_way]
        shown = [self._observe(part) for part in understand(self.lexicon, demonstrations)]
        if self.returns is not None:
            self.returns.learn()
        self._recount()
        if self.advised:
            self._contrast(shown)

    def show_itself(self, goal: str, steps: Sequence[Played]) -> None:
        """Learn from an own won game as from a demonstration, if none was ever seen."""
        if self._ignorant and self._won:
            self.teach([(goal, steps)])

    @property
    def _ignorant(self) -> bool:
        """Whether nothing was ever shown; then nothing says what a goal's names are."""
        return self.advised and not self.lexicon.verbs

    def _contrast(self, shown: Sequence[Attempt]) -> None:
        """Tell advice what demonstrations say of plans: this one here, and none of the others.

        Wins alone would leave all plans alike. The words of a plan are a goal that it serves too:
        so a goal's word that names a command speaks for plans with it. And advice goes by words
        that it met in more than one state: hence both together.
        """
        assert self.choices is not None
        for one in shown:
            own = signature(one.plan)
            goal = self.lexicon.terms(one.run.goal, one.binding.slots)
            for state in dict.fromkeys(
                " ".join(s) for s in (goal, _said(own), [*goal, *_said(own)])
            ):
                for plan in self._shown:
                    self.choices.tell(PLANS, state or NOTHING, plan or NOTHING, float(plan == own))

    def _tell(self, episode: Episode, plan: str, won: float, trust: float = 1.0) -> None:
        """Tell advice what came of a plan.

        A win for words that had none speaks against the other plans there, and one of a new plan
        against it for other words, as demonstrations do.
        """
        if not (self.advised and self.choices is not None and kept(episode) and trust > _LEAST):
            return
        state = self._state(episode.goal, episode.metadata[SLOTS])
        self.choices.tell(PLANS, state, plan or NOTHING, won, trust)
        if not won:
            return
        if state not in self._homes:
            for other in sorted(self._plans - {plan}):
                self.choices.tell(PLANS, state, other or NOTHING, 0.0)
        if plan not in self._plans:
            said = {" ".join(_said(other)) or NOTHING for other in self._shown}
            for home in sorted((said | self._homes) - {state}):
                self.choices.tell(PLANS, home, plan or NOTHING, 0.0)
        self._plans.add(plan)
        self._homes.add(state)

    def _state(self, goal: str, slots: Sequence[str]) -> str:
        return " ".join(self.lexicon.terms(goal, slots)) or NOTHING

    def _observe(self, part: Part) -> Attempt:
        goal, slots, steps, shown, search = part
        binding = Binding(slots, self.lexicon)
        plan = tuple(binding.abstract(step.command) for step in steps if step.aimed)
        run = self.memory.begin(goal, template(goal, slots), kind=DEMONSTRATION, metadata=shown)
        attempt = Attempt(run, Binding(slots, self.lexicon), search, plan, commands=len(steps))
        ignored = set[tuple[str, str]]()
        with self._discarding(run):
            self.memory.step(run, goal, None, self._space.start(goal, slots, plan), tags=(PLAN,))
            for step in steps:
                text = moment(step.commands, step.before, step.last)
                search.saw(step.commands, explored=attempt.explored)
                ready = attempt.goes_on(step.commands)
                if ready:
                    search.led()
                if step.aimed:
                    self.advance(attempt, step.command)
                else:
                    attempt.explored = True
                    if not ready:
                        need = self._wish(attempt).need
                        search.explored(need, step.command, text)
                        others = {shape(c) for c in step.commands} - {shape(step.command)}
                        ignored.update((_situation(need, text), form) for form in others)
            self.close(attempt, won=True)
        if self.choices is not None:
            # What somebody who knew the way never did led nowhere.
            for state, form in sorted(ignored):
                self.choices.tell(KIND, state, form, 0.0)
        return attempt

    @contextmanager
    def _discarding(self, run: OpenEpisode) -> Iterator[None]:
        """Leave no episode open whose steps could not all be recorded."""
        try:
            yield
        except BaseException:
            self.memory.discard(run)
            raise

    def walk(self, goal: str) -> Walk | None:
        """Start a game in which commands are chosen by what they returned, if goals like it are."""
        self._notice()
        return None if self.returns is None else self.returns.begin(goal)

    def begin(
        self, item: Item, slots: Sequence[str], texts: Iterable[str], search: Search
    ) -> Attempt:
        """Start an attempt at the plan that promises most.

        Parameters
        ----------
        item : Item
            What is to be reached. Its rejected plans are forgotten when no other is left. Where
            the plan begins as its last attempt did, it is taken up from there, since the world
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
        goal, stuck = item.clause, item.stuck or item.done
        query = self._space.goal(goal, slots)
        self.decisions += 1
        with self._timed():
            cue, where = Cue(goal=goal, vector=query), Filter(tags=(PLAN,))
            decision = self.memory.recall(cue, where, self.looked_at, distinct="entity")
        state = self._state(goal, slots)
        advised = partial(self._worth, state) if self.advised else None
        parts = self._parts(state, search, slots) if self.lending else None
        hit, plan = choose(decision.hits, self.lexicon, item.rejected, advised, parts)
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

    def _parts(self, state: str, search: Search, slots: Sequence[str]) -> Parts:
        """Return the steps that plans may be changed by."""
        proven = {step for plan in self._plans for step in plan.split(", ")}
        spoken = {word for home in self._homes for word in words(home)}
        steps = parts_of(offers(search.known, slots) | self.lexicon.offered, self.lexicon)
        unfit = self.lexicon.unfit(slots, search.known)
        return Parts(steps, words(state), len(slots), proven=proven, spoken=spoken, unfit=unfit)

    def _worth(self, state: str, plans: Iterable[str]) -> Mapping[str, Option]:
        assert self.choices is not None
        named = {plan or NOTHING: plan for plan in plans}
        with self._timed():
            told = self.choices.advise(PLANS, state, named)
        return {named[name]: option for name, option in told.items()}

    def advance(self, attempt: Attempt, command: str) -> None:
        """Record a command that does the next step of the plan."""
        self._record(attempt, command, attempt.binding.abstract(command, attempt.subgoal))
        attempt.place, attempt.doubts, attempt.explored = attempt.place + 1, 0, False

    def _record(self, attempt: Attempt, command: str, action: str) -> None:
        attempt.steps.append((command, action))
        self.memory.step(attempt.run, command, action, tags=(SUBGOAL,))

    def consult(self, attempt: Attempt, text: str, commands: Iterable[str]) -> Consulted:
        """Ask what was done in moments like this one, and what of these led to what is missing."""
        self._notice()
        self.decisions += 1
        wish = self._wish(attempt)
        if self.choices is None or not wish.need:
            return Consulted(text, {}, {}, wish if self.advised else Wish())
        state, forms = _situation(wish.need, text), map(shape, commands)
        with self._timed():
            told = self.choices.advise(KIND, state, forms)
            chances = self._chances(self.choices, attempt.search.origin, wish.need, commands)
        return Consulted(text, {form: hope(one) for form, one in told.items()}, chances, wish)

    def _wish(self, attempt: Attempt) -> Wish:
        """Return what an attempt needs next: without a plan, what was rewarded for such a goal."""
        wish = Wish.of(attempt)
        if not attempt.plan and self.advised and not self._ignorant:
            wish.need = f"reach {self._state(attempt.run.goal, attempt.binding.slots)}"
        return wish

    def _chances(
        self, choices: Choices, origin: str, need: str, commands: Iterable[str]
    ) -> Mapping[str, float]:
        """Return how likely each command leads to what is missing.

        That is advised of commands without numbers for the verb of what is missing, and as much for
        its things; and as much as both for the very command in a game that began the same.
        """
        if not self.searching:
            return {}
        verb, names = need.partition(" ")[0], {c: unnumbered(c) for c in commands}
        there = choices.advise(f"{FIND} {verb}", verb, names.values())
        kin = choices.advise(f"{FIND} {verb} things", need, names.values())
        told = {c: hope(there[name]) for c, name in names.items()}
        told.update((c, (hope(kin[n]) + told[c]) / 2) for c, n in names.items() if kin[n].trials)
        if origin in self._played:
            # Things may have moved since: one look in vain does not rule a place out.
            here = choices.advise(f"{GAME} {verb}", f"{origin} {need}", names)
            told.update((c, (hope(one) + told[c]) / 2) for c, one in here.items() if one.trials)
        return told

    def explored(self, attempt: Attempt, consulted: Consulted, command: str) -> None:
        """Record a command that was chosen while the next step of the plan was not possible."""
        attempt.search.explored(consulted.wish.need, command, consulted.text)
        attempt.explored = True

    def rewarded(self, attempt: Attempt, command: str) -> None:
        """Record as a step of the plan an explored command that brought a reward.

        Without it the plan that is remembered would end before what reached the goal.
        """
        action = attempt.binding.abstract(command, command)
        if variables_of(action) and not self._ignorant:
            self._record(attempt, command, action)

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
        slots = list(attempt.binding.slots)
        seen: set[Offer] = set() if self._ignorant else offers(attempt.search.known, slots)
        can = seen - self.lexicon.offered
        fresh = positions(attempt.search.known) - self.lexicon.met
        own = {SLOTS: slots, FOLLOWED: plan, TOOK: took, OFFERED: sorted(map(list, can))}
        own[MET] = sorted([form, at, word] for (form, at), word in fresh)
        told = attempt.search.told()
        run.metadata = {**run.metadata, **own, **told}
        exposure = self.durations.done_by(took, (run.task_type, plan)) if cut_off else 1.0
        # A win without a plan leaves none to follow: it is shown, see `show_itself`.
        shown = self._ignorant and run.kind != DEMONSTRATION
        episode = self.memory.close(run, float(won and not shown), exposure=exposure)
        self._won = won and kept(episode)
        take_in(self.lexicon, episode)
        take_time(self.durations, episode)
        if run.kind != DEMONSTRATION and not shown:
            # What lasted is what won, not the last plan, nor one that was not through.
            if won:
                self._tell(episode, attempt.lasted or plan, 1.0)
            if not won or (attempt.lasted not in ("", plan) and not attempt.done):
                self._tell(episode, plan, 0.0, exposure)
        if self.choices is not None and kept(episode):
            self._tell_trials(self.choices, told[ORIGIN], told[EXPLORED])

    def _tell_trials(self, choices: Choices, origin: str, trials: Iterable[Sequence[Any]]) -> None:
        """Tell advice what was explored: which kinds of command led on, and which commands."""
        self._played.add(origin)
        kinds: dict[tuple[str, str], list[bool]] = defaultdict(list)
        tried: dict[tuple[str, str], bool] = {}
        for need, command, text, led in trials:
            kinds[_situation(need, text), shape(command)].append(led)
            # To look into the same place twice is one look.
            tried[need, command] = led or tried.get((need, command), False)
        for (state, form), all_led in kinds.items():
            choices.tell(KIND, state, form, sum(all_led) / len(all_led))
        for (need, command), led in tried.items() if self.searching else ():
            verb, name = need.partition(" ")[0], unnumbered(command)
            choices.tell(f"{FIND} {verb}", verb, name, float(led))
            choices.tell(f"{FIND} {verb} things", need, name, float(led))
            choices.tell(f"{GAME} {verb}", f"{origin} {need}", command, float(led))

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
        if attempt.holds or self._ignorant:
            return
        goal, form, slots = attempt.run.goal, attempt.run.task_type, list(attempt.binding.slots)
        steps = lasting(deeds, slots, self.lexicon)
        plan = tuple(action for _, action in steps)
        recorded = tuple(action for _, action in attempt.steps)
        attempt.lasted = signature(plan)
        if attempt.lasted in ("", signature(recorded), signature(attempt.plan)):
            return
        run = self.memory.begin(goal, form, metadata={SLOTS: slots, COMPOSED: True})
        with self._discarding(run):
            self.memory.step(run, goal, None, self._space.start(goal, slots, plan), tags=(PLAN,))
            for command, action in steps:
                self.memory.step(run, command, action, tags=(SUBGOAL,))
            take_in(self.lexicon, self.memory.close(run, 1.0))

    def unproven(self, attempt: Attempt) -> bool:
        """Whether nobody ever won with the plan of an attempt."""
        return self.advised and signature(attempt.plan) not in self._plans

    def discard(self, attempt: Attempt) -> None:
        """End an attempt that was broken off: its plan was not followed to the end."""
        self.memory.discard(attempt.run)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Count the time that memory takes."""
        start = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - start


def _done(episode: Episode) -> str:
    """Return the signature of the plan that an episode carried out."""
    return signature([s.action for s in episode.steps if s.action and variables_of(s.action)])


def _situation(need: str, moment: str) -> str:
    """Return a moment with the verb of what is missing in it."""
    return f"need_{need.partition(' ')[0]} {moment}"


def _said(plan: str) -> list[str]:
    """Return the words of a plan's signature without its variables, each once."""
    return [word for word in dict.fromkeys(words(plan)) if not variables_of(word)]
