"""What the agent keeps in mind of the game that it plays."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from cvx.plans import Lexicon, Observation, arguments, mentions, moment, shape


@dataclass(slots=True)
class Sight:
    """What was seen and done in one game.

    Attributes
    ----------
    seen : Observation
        The latest.
    before : tuple of str
        The commands that were admissible one step earlier.
    heard : set of str
        The names that admissible commands named so far.
    done : list of str
        The commands given.
    tried : Counter
        How often each was.
    met : Counter
        How many different commands of a shape named something.
    ways : dict of str to list of str
        The last commands before an instance of one of the goal's things was seen.
    rejected : dict of str to frozenset of str
        Plans that were in vain, with their verbs where the plan itself was wrong.
    """

    seen: Observation
    before: tuple[str, ...] = ()
    heard: set[str] = field(default_factory=set)
    done: list[str] = field(default_factory=list)
    tried: Counter[str] = field(default_factory=Counter)
    met: Counter[tuple[str, str]] = field(default_factory=Counter)
    ways: dict[str, list[str]] = field(default_factory=dict)
    rejected: dict[str, frozenset[str]] = field(default_factory=dict)

    @property
    def commands(self) -> tuple[str, ...]:
        """The admissible commands."""
        return self.seen.admissible_commands

    @property
    def last(self) -> str | None:
        """The command given last."""
        return self.done[-1] if self.done else None

    def do(self, command: str) -> None:
        """Note a command that is about to be given."""
        if not self.tried[command]:
            self.met.update((shape(command), a.word) for a in arguments(command))
        self.tried[command] += 1
        self.before = self.commands
        self.done.append(command)

    def listen(self, lexicon: Lexicon) -> tuple[str, ...]:
        """Take in what is seen and what can be done; return the names of the goal's things."""
        self.heard.update(a.word for c in self.commands for a in arguments(c))
        slots = lexicon.slots(self.seen.goal, self.heard)
        if self.done:
            self.ways.update(dict.fromkeys(mentions(self.seen.text, slots), self.done[-2:]))
        return slots

    def moment(self, subgoal: str | None) -> str:
        """Return what is possible, what is newly so, and what was done last, without names."""
        return moment(self.commands, self.before, self.last, subgoal)
