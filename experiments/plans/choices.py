"""Choices by the memory's own advice, and what is told it: which plan is tried, where to look."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from hashlib import blake2b
from typing import Any

from cvx.memory import Memory, Option, RunningEpisode
from experiments.plans.demonstration import Observation
from experiments.plans.words import joined, shape

NAMESPACE = "choices"


class Choices:
    """Asks a memory for advice, and tells it what came of what was chosen.

    A choice is an episode of one step. They stand in a namespace of their own: they are no
    attempts, and no plan is recalled from them.

    Parameters
    ----------
    memory : Memory

    Attributes
    ----------
    told : callable, optional
        Hears every advice: its task, its state, its options.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._asking: dict[str, RunningEpisode] = {}
        self.told: Callable[[str, str, Iterable[Option]], None] | None = None

    def advise(self, task: str, state: str, actions: Iterable[str]) -> Mapping[str, Option]:
        """Return what each action is worth in a state of a task.

        Parameters
        ----------
        task, state : str
        actions : iterable of str
            At least one.
        """
        asking = self._asking.get(task)
        if asking is None:
            asking = self._asking[task] = self.memory.episode(task=task, namespace=NAMESPACE)
        advice = asking.advise(state, sorted(set(actions)))
        if self.told is not None:
            self.told(task, state, advice)
        return {str(option.action): option for option in advice}

    def tell(self, task: str, state: str, action: str, outcome: float, trust: float = 1.0) -> None:
        """Remember how a choice ended; it counts as much as it is trusted, from 0 to 1."""
        episode = self.memory.episode(task=task, namespace=NAMESPACE, trust=trust)
        episode.act(action, observation=state)
        episode.end(outcome)

    def rest(self) -> None:
        """Let go of what is open: nothing is asked until the next game."""
        asking, self._asking = self._asking, {}
        for episode in asking.values():
            episode.discard()


def hope(option: Option, above: float = 0.5) -> float:
    """Return what an option is worth: its mean, with its upper bound as the share ``above``.

    When exploring that counts as much as the mean: by the mean alone one look in vain would rule
    out all such places.
    """
    return (1 - above) * option.value + above * option.high


ORIGIN, EXPLORED = "origin", "explored"
"""Metadata of attempts: how the game began, and the explored commands, each as a list: what was
missing (the verb of the next step and the kinds of its things, see `Wish`), the command, in which
`moment` it was given, whether that led to the next step, or after what it made possible."""


class Search:
    """What is explored in one game.

    Parameters
    ----------
    seen : Observation
        The first: games that begin with the same text may be the same.

    Attributes
    ----------
    origin : str
        A short name for that text: a hash of it.
    known : set of str
        The commands that were possible at any time.
    """

    def __init__(self, seen: Observation) -> None:
        text = seen.text.encode(errors="surrogatepass")
        self.origin = blake2b(text, digest_size=8).hexdigest()
        self.known = set(seen.admissible_commands)
        self._opened: frozenset[str] = frozenset()
        self._way: list[tuple[str, str, str, bool]] = []
        self._trials: list[list[Any]] = []

    def explored(self, need: str, command: str, moment: str) -> None:
        """Note a command that is about to be explored; without a plan nothing is missing."""
        if need:
            self._way.append((need, command, moment, command in self._opened))

    def saw(self, commands: Collection[str], *, explored: bool) -> None:
        """Note what is possible after a command, and whether that was explored."""
        self._opened = frozenset(commands).difference(self.known if explored else commands)
        self.known.update(commands)

    def led(self) -> None:
        """Take in that the plan can go on: by the last command, and by what opened that."""
        first = len(self._way) - 1
        while first > 0 and self._way[first][-1]:
            first -= 1
        self._end(first)

    def gave_up(self) -> None:
        """Take in that nothing explored since led on."""
        self._end(len(self._way))

    def _end(self, first: int) -> None:
        for place, (need, command, moment, _) in enumerate(self._way):
            self._trials.append([need, command, moment, place >= first])
        self._way = []

    def told(self) -> dict[str, Any]:
        """Return, as metadata of an attempt, the trials that were not returned before."""
        trials, self._trials = self._trials, []
        return {ORIGIN: self.origin, EXPLORED: trials}


def moment(commands: Iterable[str], before: Collection[str], last: str | None) -> str:
    """Return what was done last, and what is newly possible.

    Parameters
    ----------
    commands : iterable of str
        The admissible ones.
    before : collection of str
        Those that were admissible one step earlier.
    last : str or None
        The command given then.

    Examples
    --------
    >>> moment(["walk to peg 1", "grab hat 1 from nook 2"], ["walk to peg 1"], None).split()
    ['last\ua78fnothing', 'new\ua78fgrab\ua78fx\ua78ffrom\ua78fx']
    """
    known = frozenset(before)
    new = sorted({shape(c) for c in commands if c not in known})
    named = [f"last {shape(last) if last else 'nothing'}", *(f"new {form}" for form in new)]
    return " ".join(joined(name.replace("#", "x")) for name in named)
