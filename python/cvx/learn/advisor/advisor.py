"""`Advisor`: begin, step, end; ranks the actions by what they are worth, explores."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError, StoreError
from cvx.learn.advisor.action_values import EpisodeView
from cvx.learn.advisor.goals import GoalTasks
from cvx.learn.advisor.history_evidence import HistoryEvidence
from cvx.learn.advisor.source_trust import SourceTrust
from cvx.learn.advisor.task_model import LOOK_BACK, Actions, Parts, Task
from cvx.learn.advisor.types import (
    LEAST_REWARD,
    MOST_REWARD,
    NO_ROUTES,
    ActionValue,
    Basis,
    Observation,
    Route,
    Run,
    Step,
    Unit,
)
from cvx.types import Vector

__all__ = ["ActionValue", "Advisor", "Observation", "Parts", "Route", "Unit"]

_ALL = Parts()


class Advisor:
    """Learns what to do from episodes: begin, step, end; asked for options in between.

    It holds no files and reads no clock: its state follows from the episodes that were told to
    it, in their order.

    Parameters
    ----------
    seed : int, default 0
        Exploration follows from it and from the episodes alone.
    history : int, optional
        How many of the last actions with their results, and the first text, join what tells
        states of texts apart. Default: two of them in a task where they foretell better what
        comes next, else none.
    embed : callable, optional
        From texts to vectors of shape (n, dim), for actions; default ``LexicalEmbedder``.
    parts : Parts, optional
        Which parts are at work; default those that pay somewhere.
    routes : mapping of str to callable, default none
        What else has an opinion of actions that were never done in a state, such as a region
        model: each counts as much as it is sure, and is told as the basis that it is named by.
    read : callable, optional
        From names of episodes that were closed before it was restored to these episodes.

    References
    ----------
    Strens 2000, A Bayesian framework for reinforcement learning (planning on a posterior).
    Brafman & Tennenholtz 2002, R-max (what is unknown is the best).

    Examples
    --------
    >>> advisor = Advisor(seed=1)
    >>> def play(name):
    ...     advisor.begin(name, task="open the box")
    ...     options = advisor.options(name, Observation("A box."), ["push", "pull", "lift"])
    ...     done = advisor.choose(name, options).action
    ...     advisor.step(name, Observation("A box."), done, float(done == "lift"))
    ...     advisor.end(name)
    ...     return done
    >>> [play(str(number)) for number in range(7)][4:]
    ['lift', 'lift', 'lift']
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        history: int | None = None,
        embed: Callable[[Sequence[str]], Vector] | None = None,
        parts: Parts = _ALL,
        routes: Mapping[Basis, Route] = NO_ROUTES,
        read: Callable[[Sequence[str]], Iterable[Run]] | None = None,
    ) -> None:
        self._read = read
        self.seed, self.parts, self.history, self.routes = seed, parts, history, routes
        self._embed = embed or LexicalEmbedder(256).embed
        self._actions = Actions(self._embed)
        self._tasks: dict[str, Task] = {}
        # As they would be if a goal that was only begun had ended once.
        self._apart: dict[str, Task] = {}
        self._open: dict[str, Run] = {}
        self._past: list[Run] = []
        self.source_trust = SourceTrust()
        self._goals = GoalTasks(lambda source: self.source_trust.beside(source))

    def begin(
        self,
        episode: str,
        *,
        goal: str = "",
        task: str | None = None,
        trust: float = 1.0,
        source: str = "",
    ) -> None:
        """Open an episode.

        Parameters
        ----------
        episode, goal : str
        task : str, optional
            Within which goals learn from each other; by default as `GoalTasks` says.
        trust : float, default 1.0
        source : str, optional
        """
        run = Run(episode, goal, task or "", trust, source, untasked=task is None)
        self._place(run)
        self._open[episode] = run

    def unit(self, episode: str) -> Unit | None:
        """Return how the values of an open episode are told, None where nothing has ended yet."""
        known = self._tasks.get(self.running(episode).task)
        return None if known is None else known.unit

    def settled_unit(self, episode: str) -> Unit | None:
        """Return how an open episode must be told, None where its task, or goal, is new."""
        run = self.running(episode)
        self._place(run)
        settled = not run.untasked or self._goals.settled(run.goal)
        return self.unit(episode) if settled else None

    def _place(self, run: Run, observation: Observation | None = None) -> None:
        """Say in which task an open episode is played that names none."""
        if run.untasked:
            numbers = observation is not None and observation.text is None
            run.task = self._goals.place(run.goal, numbers=numbers)

    def _task(self, name: str) -> Task:
        task = self._tasks.get(name)
        if task is None:
            task = self._tasks[name] = self._new(name, self.history or 0)
            if self.history is None:
                task.history_evidence = HistoryEvidence()
                task.with_history = self._new(name, LOOK_BACK)
        return task

    def _new(self, name: str, history: int) -> Task:
        return Task(
            name,
            self._actions,
            self.parts,
            self.seed,
            history=history,
            others=self._tasks,
            routes=self.routes,
        )

    def _task_of(self, run: Run) -> Task:
        """Return the task of an episode; where its goal is new to it, as goals tell it apart."""
        task = self._task(run.task)
        if not task.is_news(run.goal):
            return task
        apart = self._apart.get(run.task)
        if apart is None or apart.episodes != task.episodes:
            numbers = {past.episode: number for number, past in enumerate(self._past)}
            apart = self._restored(task.saved(numbers), [*numbers])
            apart.tell_goals_apart()
            self._apart[run.task] = apart
        return apart

    def _relearned(self, old: Task) -> Task:
        """Return a task learned again with the history that tells its states apart."""
        task = self._new(old.name, old.wanted_history)
        task.unit, task.goal, task.by_goal = old.unit, old.goal, old.by_goal
        if old.with_history is not None and not task.history:
            task.with_history = self._new(old.name, LOOK_BACK)
        for run in self._whole([run for run in self._past if run.task == old.name]):
            task.learn(run)
        task.history_evidence = old.history_evidence
        return task

    def options(
        self, episode: str, observation: Observation, actions: Sequence[Hashable] | None = None
    ) -> list[ActionValue]:
        """Return the actions by what they are worth from here, best first.

        Parameters
        ----------
        episode : str
            One that is open.
        observation : Observation
        actions : sequence of hashable, optional
            Those that can be done; default those that were done here, else for this goal, else in
            this task.
        """
        run = self.running(episode)
        self._place(run, observation)
        task = self._task_of(run)
        run.menu = None
        if actions is not None:
            actions = list(dict.fromkeys(actions))
            if not actions:
                raise InvalidInputError("no action is admissible: give at least one")
            run.menu = tuple(actions)
        else:
            actions = task.known_actions(run, observation)
            if not actions:
                return []
        found = run.asked = self._offered(run, task, observation, actions)
        explored = self._explored(run, task)
        if explored is not task:
            run.asked = self._offered(run, explored, observation, actions)
        told = [
            replace(option, source=self.source_trust.alone(run, observation, option.action))
            if option.trials
            else option
            for option, _ in found.values()
        ]
        return sorted(told, key=lambda option: (not option.known, -option.value))

    def _offered(
        self, run: Run, task: Task, observation: Observation, actions: Sequence[Hashable]
    ) -> dict[Hashable, tuple[ActionValue, float]]:
        """Return what a task tells of actions, with hearsay behind what is known to pay as well."""
        found = self._view(run, task).options(observation, actions)
        run.behind = self._hearsay(run, observation, found)
        for action, best in run.behind.items():
            (option, bold), (known, hope) = found[action], found[best]
            value = min(option.value, math.nextafter(known.value, -math.inf))
            found[action] = (
                replace(option, value=value, low=min(option.low, value)),
                min(bold, math.nextafter(hope, -math.inf)),
            )
        return found

    def _hearsay(
        self,
        run: Run,
        observation: Observation,
        found: Mapping[Hashable, tuple[ActionValue, float]],
    ) -> dict[Hashable, Hashable]:
        """Return actions that doubted sources alone report, each with what is done before it.

        That is the best of what whoever asks did here, where it is worth about as much.
        """
        trust = self.source_trust
        told = {one for one in found if trust.hearsay(run, observation, one)}
        own = [option for one, (option, _) in found.items() if option.trials and one not in told]
        if not told or not own:
            return {}
        best = max(own, key=lambda option: option.value)
        # What nobody did here is worth a try for what is hoped of it.
        behind = dict[Hashable, Hashable]()
        for one in told:
            option, hope = found[one]
            promised = option.value if option.trials else hope
            if not trust.promises_more(run.named, promised, best.value):
                behind[one] = best.action
        return behind

    def _explored(self, run: Run, task: Task) -> Task:
        """Return what an episode explores by: its task, or the same with a history, by a draw."""
        if run.by_history is None:
            run.by_history = self._draws_history(run, task)
        return (run.by_history and task.with_history) or task

    def _draws_history(self, run: Run, task: Task) -> bool:
        """Draw whether an episode explores by a history; the same each time it is drawn."""
        evidence, other = task.history_evidence, task.with_history
        # Of what is no text it learns nothing; and who knows nothing looks about in plain states.
        if evidence is None or other is None or other.episodes < max(task.episodes, 1):
            return False
        return evidence.draw(random.Random(f"{self.seed} {run.episode} history"))

    def _view(self, run: Run, task: Task) -> EpisodeView:
        """Return what an open episode sees, up to date with its steps and with the others."""
        task.ready()
        view: EpisodeView | None = run.views.get(task.history)
        if view is None or view.version != task.episodes or view.task is not task:
            view = run.views[task.history] = EpisodeView(task, run)
        while view.noted < len(run.steps):
            view.note(view.noted)
        return view

    def choose(
        self, episode: str, options: Sequence[ActionValue], *, explore: bool = True
    ) -> ActionValue:
        """Return the option to take: by the posterior when exploring, else the best.

        Parameters
        ----------
        episode : str
        options : sequence of ActionValue
            As ``options`` returned them last.
        explore : bool, default True
        """
        if not options:
            raise InvalidInputError("no options: give those that options() returned")
        if not explore:
            return options[0]
        run = self.running(episode)
        rng = random.Random(f"{self.seed} {episode} {len(run.steps)}")
        # Of what is worth exactly as much, any.
        worth = [
            (
                run.asked[option.action][1] if option.action in run.asked else option.value,
                rng.random(),
            )
            for option in options
        ]
        return options[worth.index(max(worth))]

    def chances(self, episode: str, options: Sequence[ActionValue]) -> list[float]:
        """Return how likely ``choose(explore=True)`` takes each option, over all its draws.

        An episode keeps one draw of the posterior; these are the chances before it is known which.

        Parameters
        ----------
        episode : str
        options : sequence of ActionValue
            As ``options`` returned them last.
        """
        run = self.running(episode)
        view = self._view(run, self._explored(run, self._task_of(run)))
        return view.chances([option.action for option in options], run.behind)

    def step(
        self,
        episode: str,
        observation: Observation,
        action: Hashable,
        reward: float = 0.0,
        *,
        followed: bool | None = None,  # noqa: ARG002
        actions: Sequence[Hashable] | None = None,
    ) -> None:
        """Take note of what was done in what was seen; the episode itself learns from it at once.

        Parameters
        ----------
        episode : str
        observation : Observation
            What the action was done in.
        action : hashable
        reward : float, default 0
            One of less than 1e-100, of either sign, is none.
        followed : bool, optional
            Whether advice was followed, if known.
        actions : sequence of hashable, optional
            What could be done there; default what the last ``options`` was given.
        """
        if not abs(reward) <= MOST_REWARD:
            raise InvalidInputError(
                f"the reward is {reward}: give a finite number of at most {MOST_REWARD:g}"
            )
        # What cannot be counted is refused now, not when the episode has ended.
        hash(action)
        run = self.running(episode)
        menu = run.menu if actions is None else tuple(actions)
        run.menu = None
        self._place(run, observation)
        paid = reward if abs(reward) >= LEAST_REWARD else 0.0
        run.steps.append(Step(observation, action, paid, menu))
        for view in [*run.views.values()]:
            self._view(run, view.task)

    def end(
        self,
        episode: str,
        outcome: float | None = None,
        *,
        observation: Observation | None = None,
        truncated: bool = False,
    ) -> None:
        """Close an episode: from now on the others learn from it.

        Parameters
        ----------
        episode : str
        outcome : float, optional
            In [0, 1]; None for the sum of its rewards.
        observation : Observation, optional
            What was seen last.
        truncated : bool, default False
            Whether it was broken off from outside, which is no failure.
        """
        run = self.running(episode)
        unit: Unit = "return" if outcome is None else "P(success)"
        run.doubted = self.source_trust.beside(run.source)
        if run.untasked:
            self._goals.settle(run, unit)
        task = self._task_of(run)
        if task.unit is not None and task.unit != unit:
            raise InvalidInputError(
                f"task {run.task!r} is told as {task.unit}: end its episodes all with an outcome, "
                "or all without"
            )
        task.unit = unit
        del self._open[episode]
        run.outcome, run.last, run.truncated = outcome, observation, truncated
        policy = self.parts.decay
        earned = sum(step.reward for step in run.steps) if outcome is None else outcome
        if policy is not None and earned <= 0.5:
            acted = task.pairs_of(run)
            for known in self._tasks.values():
                known.ready()
                known.blame(run.task, policy, acted if known is task else ())
        if not task.episodes:
            # Tasks are as old as what they know, not as the first question about them.
            self._tasks.pop(run.task, None)
        self._tasks[run.task] = task
        self._apart.pop(run.task, None)
        self._reconsider(self.source_trust.close(run))
        task = self._tasks[run.task]
        if task.history_evidence is not None and run.weight > 0.0:
            # Drawn again, as whoever is only told of the episode would.
            task.history_evidence.earn(self._draws_history(run, task), earned)
        task.learn(run)
        if run.views:
            # Whoever asked will ask again: the plan is made now, not while the next one waits.
            task.ready()
        run.forget_view()
        self._past.append(run)
        if task.wanted_history != task.history:
            self._tasks[run.task] = self._relearned(task)

    def _reconsider(self, sources: Collection[str]) -> None:
        """Learn every task again that sources told of: they were left out, or are back."""
        told = [run for run in self._past if run.source in sources] if sources else []
        for run in told:
            run.left_out = self.source_trust.leaves_out(run.source)
        for name in {run.task: None for run in told}:
            self._tasks[name] = self._relearned(self._tasks[name])
            self._apart.pop(name, None)

    def discard(self, episode: str) -> None:
        """Break an episode off: it never happened."""
        self._open.pop(episode, None)

    def _whole(self, runs: list[Run]) -> list[Run]:
        """Return episodes with their steps: those that were restored without are read."""
        bare = {run.episode: run for run in runs if run.bare}
        for told in self._read([*bare]) if bare and self._read is not None else ():
            run = bare.pop(told.episode)
            run.goal, run.trust, run.steps, run.bare = told.goal, told.trust, told.steps, False
            run.outcome, run.last, run.truncated = told.outcome, told.last, told.truncated
        if bare:
            raise StoreError(f"episode {next(iter(bare))} is not in the record any more: open anew")
        return runs

    def saved(self) -> dict[str, Any]:
        """Return what was learned as lists, numbers and arrays: without the steps of episodes.

        Raises
        ------
        TypeError, ValueError
            Actions that are no texts, numbers or tuples of these can be learned, but not saved.
        """
        numbers = {run.episode: number for number, run in enumerate(self._past)}
        return {
            "actions": self._actions.saved(),
            "episodes": [*numbers],
            "runs": [
                [
                    *(run.task, run.source, run.share, run.left_out, run.doubted),
                    run.goal if run.untasked else None,
                ]
                for run in self._past
            ],
            "tasks": [task.saved(numbers) for task in self._tasks.values()],
            "goals": self._goals.saved(),
            "sources": self.source_trust.saved(),
        }

    def restore(self, told: Mapping[str, Any]) -> None:
        """Be as the one that was saved: new, it is told nothing of what that one was told.

        Raises
        ------
        ValueError, TypeError, LookupError, AttributeError
            It is not what ``saved`` returned.
        """
        self._actions.restore(told["actions"])
        names = told["episodes"]
        for name, row in zip(names, told["runs"], strict=True):
            task, source, share, left_out, doubted, goal = row
            run = Run(name, goal or "", task, 1.0, source, untasked=goal is not None, bare=True)
            run.share, run.left_out, run.doubted = share, left_out, doubted
            self._past.append(run)
        for one in told["tasks"]:
            self._tasks[one["task"][0]] = self._restored(one, names)
        self.source_trust = SourceTrust.restored(told["sources"])
        self._goals.restore(told["goals"])

    def _restored(self, told: Mapping[str, Any], episodes: Sequence[str]) -> Task:
        """Return a task as it was when it was saved."""
        name, *_, history = told["task"]
        task = self._new(name, history)
        if told["with_history"] is not None:
            task.with_history = self._new(name, LOOK_BACK)
        task.restore(told, episodes)
        return task

    def running(self, episode: str) -> Run:
        """Return an episode that is open."""
        try:
            return self._open[episode]
        except KeyError:
            raise InvalidInputError(f"episode {episode!r} is not open: begin it") from None
