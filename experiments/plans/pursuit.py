"""Pursues a goal clause by clause, and closes each attempt with its outcome."""

from __future__ import annotations

from collections.abc import Iterable

from experiments.plans.attempt import Attempt, OpenClauses
from experiments.plans.binding import PastCommand, signature, verbs
from experiments.plans.choices import Search
from experiments.plans.demonstration import Observation, Played
from experiments.plans.memory import PlanMemory
from experiments.plans.words import shape


def complete(score: float) -> bool:
    """Whether rewards add up to 1, as they do when a goal is reached."""
    return score > 1 - 1e-9


class Pursuit:
    """Goes through the clauses of a goal, and closes every attempt whose outcome is known.

    An attempt is a success when it was rewarded, or when the goal is reached; a failure when it
    was carried out and nothing is left to do, or got stuck where another plan then succeeded. One
    that is not carried out when all is over was cut off: see `PlanMemory.close`. What is broken
    off, or of unknown use, leaves nothing in memory.

    Parameters
    ----------
    plans : PlanMemory
    seen : Observation
        The first: its goal is gone after.
    patience : int
        How many doubts make an attempt hopeless.

    Attributes
    ----------
    attempts : int
        Plans that were tried.
    score : float
        The sum of rewards.
    search : Search
        What is explored.
    """

    def __init__(self, plans: PlanMemory, seen: Observation, patience: int) -> None:
        self.plans, self.patience = plans, patience
        self.agenda, self.search = OpenClauses(seen.goal), Search(seen)
        self.attempts, self.score = 0, 0.0
        self._seen, self._played = seen, list[Played]()
        self._attempt: Attempt | None = None
        self._idle_since: int | None = None
        self._held: list[Attempt] = []
        self._stuck: list[Attempt] = []

    @property
    def won(self) -> bool:
        """Whether the goal is reached."""
        return complete(self.score)

    def attempt(self, heard: Iterable[str], texts: Iterable[str]) -> Attempt:
        """Return the attempt to go on with, past clauses for which nothing is to be done.

        Parameters
        ----------
        heard : iterable of str
            The names that commands were heard to name.
        texts : iterable of str
            What was told so far.
        """
        passed = 0
        if self._attempt is not None and self._idle_since == len(set(heard)):
            return self._attempt  # Nothing was heard that a plan could be for.
        while True:
            item = self.agenda.current
            slots = self.plans.lexicon.slots(item.clause, heard)
            if self._attempt is None:
                self._attempt = self.plans.begin(item, slots, texts, self.search)
                self.attempts += not self._attempt.idle
            if not self._attempt.idle or passed == len(self.agenda.items):
                self._attempt.binding.slots = list(slots)
                self._idle_since = len(set(heard)) if self._attempt.idle else None
                return self._attempt
            self._held.append(self._attempt)
            self.agenda.turn(over=True)
            self._attempt, passed = None, passed + 1

    def went(
        self, command: str, reward: float, seen: Observation, before: Iterable[str], *, over: bool
    ) -> bool:
        """Take in how a command of the attempt at hand went.

        Parameters
        ----------
        command : str
        reward : float
            The share of the goal's reward that it brought.
        seen : Observation
            What was seen after it.
        before : iterable of str
            What could be done before it.
        over : bool
            Whether nothing can be done any more.

        Returns
        -------
        bool
            Whether it undid what had been done. If that was by the attempt at hand, the plan waits
            until it is done anew (``redo``).
        """
        attempt, commands = self._attempt, seen.admissible_commands
        assert attempt is not None
        self._played.append(Played(self._seen, command))
        self._seen = seen
        self.score, attempt.earned = self.score + reward, attempt.earned + reward
        attempt.commands += 1
        opened = frozenset(commands).difference(before)
        # What brought a reward was no looking around.
        looked = command if reward > 0 else None
        aim = looked if attempt.explored else attempt.plan[attempt.place - 1]
        self.agenda.current.deeds.append(
            PastCommand(command, self.attempts, aim, opened, command not in commands)
        )
        explored = attempt.explored and command != attempt.redo
        self.search.saw(commands, explored=explored)
        # Without a plan, what earns a share of the reward is what is looked for.
        earned = reward > 0 and not attempt.plan
        if explored and (attempt.goes_on(commands) or self.won or earned):
            self.search.led()
        attempt.redo = None
        undone = attempt.explored and self._undone(attempt, command, opened)
        if undone or reward > 0:
            self._idle_since = None
        if attempt.explored and reward > 0:
            self.plans.rewarded(attempt, command)
        if not attempt.explored:
            attempt.noted(commands)
            if self.plans.lexicon.instructs(command):
                self.agenda.read(seen.text)
        hopeless = bool(attempt.plan) and attempt.doubts > self.patience
        if self.won or over or attempt.done or hopeless:
            self._end(attempt, over=over)
        return undone

    def _undone(self, attempt: Attempt, command: str, opened: frozenset[str]) -> bool:
        if shape(command) not in self.plans.lexicon.moves:
            attempt.redo = attempt.again(sorted(opened))
        return self.agenda.undone(opened) or attempt.redo is not None

    def _end(self, attempt: Attempt, *, over: bool) -> None:
        item, done, won = self.agenda.current, attempt.done, self.won
        if self.agenda.last:
            # Carried out in vain, the plan is wrong; stuck, perhaps only the step that is next.
            # The first is about finding the thing, which all plans need.
            left = attempt.plan[attempt.place : attempt.place + 1] if attempt.place else ()
            why = verbs(attempt.plan) if done else frozenset(map(signature, ([s] for s in left)))
            item.rejected[signature(attempt.plan)] = why
        item.earned = done and attempt.earned > 0
        item.done, item.stuck = (attempt, None) if done else (None, attempt)
        self._attempt = None
        self.search.gave_up()
        if won or item.earned:
            self.plans.composed(attempt, item.deeds)
            item.deeds = []
            self._blame_stuck(attempt)
        if won:
            for own in (attempt, *self._held):
                self.plans.close(own, won=True)
            self._held = []
        elif item.earned:
            self.plans.close(attempt, won=True)
        elif done and not over and not self.agenda.last:
            self._held.append(attempt)
        elif done or over or not attempt.plan:
            self.plans.close(attempt, won=False, cut_off=bool(attempt.plan) and not done)
        else:
            self._stuck.append(attempt)
        if over and not won:
            # Plans that never won before do not have to be stuck again.
            for own in [own for own in self._stuck if self.plans.unproven(own)]:
                self._stuck.remove(own)
                self.plans.close(own, won=False)
        self.agenda.turn(over=done)

    def _blame_stuck(self, winner: Attempt) -> None:
        """Close attempts at the winner's clause that got stuck: another plan was the right one."""
        own = [one for one in self._stuck if one.run.goal == winner.run.goal]
        for one in own:
            self._stuck.remove(one)
            if signature(one.plan) in (signature(winner.plan), winner.lasted):
                self.plans.discard(one)
            else:
                self.plans.close(one, won=False)

    def stop(self) -> None:
        """End: of attempts whose outcome is not known nothing is kept; a win may be shown."""
        left = [*self._held, *self._stuck, *([] if self._attempt is None else [self._attempt])]
        self._attempt, self._held, self._stuck = None, [], []
        for attempt in left:
            self.plans.discard(attempt)
        if self.won:
            self.plans.show_itself(self._seen.goal, self._played)
