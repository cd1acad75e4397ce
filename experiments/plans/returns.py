"""Chooses commands by what commands like them returned, where rewards come along the way.

A plan says what is done with the things that a goal names. Where a demonstrator was rewarded for
more than that (going somewhere, pointing at a thing of a kind), a plan leaves out what wins. Then
commands are chosen themselves. The state is what was rewarded last, what was done last that changed
most of what can be done, and what was done last; the outcome is the discounted sum of the rewards
that followed. A command that ended the game in vain returned nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from random import Random

from cvx.learn.episode_recorder import OpenEpisode
from cvx.learn.loop import ActiveMemory
from cvx.memory import Option
from experiments.plans.choices import Choices, hope
from experiments.plans.clauses import names_in
from experiments.plans.demonstration import Played
from experiments.plans.lessons import COMMANDS, DEMONSTRATION
from experiments.plans.words import arguments, joined, shape, template, unnumbered, words

FORM = "form"
"""Metadata of an episode whose commands were chosen by their returns: its goal, with gaps."""

COMMANDS_OF, SHAPES_OF, THINGS_OF = "commands of", "shapes of", "things of"
"""The tasks of choosing. Before a form of goals, or a shape of commands."""

_DISCOUNT = 0.9  # of a reward, for each command that comes before it
_BOLD = 0.25  # how much of an upper bound counts, beside the mean
_OTHER = 0.5  # how likely a command returns in another state what it returned in those like it
_UNHEARD = 0.05  # what a command is worth of a shape that was never given for such a goal
_NOBODY = "nobody"
_IT = "{99}"  # the gap of what the command named first that was rewarded last, if the goal does not


class Returns:
    """Remembers games in which commands are chosen by their returns.

    Parameters
    ----------
    memory : ActiveMemory
        Each game is one of its episodes.
    choices : Choices
        Which advises, and is told what commands returned.

    Attributes
    ----------
    known : dict of str to set of str
        Which commands and shapes were given, by the form of the goal.
    named : dict of str to set of str
        Which words commands of a shape named, by the shape and the form of the goal.
    """

    def __init__(self, memory: ActiveMemory, choices: Choices) -> None:
        self.memory, self.choices = memory, choices
        self.learn()

    def learn(self) -> None:
        """Take from the episodes that may be read which commands were given for which goals."""
        self.known, self.named = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        self._planned = set[str]()
        for episode in self.memory.readable():
            told = episode.metadata
            if FORM in told:
                self.take_in(told[FORM], [s.action or "" for s in episode.steps])
            if COMMANDS in told:
                self._planned.add(episode.task_type or "")

    def take_in(self, form: str, commands: Iterable[str]) -> None:
        """Note which commands were given for a goal of a form."""
        for command in commands:
            self.known[form].update((command, shape(command)))
            self.named[f"{shape(command)} for {form}"].update(_named(command))

    def teach(self, goal: str, steps: Sequence[Played]) -> None:
        """Remember a demonstration that was rewarded along its way."""
        form = form_of(goal, steps)
        walk = self._walk(goal, form, kind=DEMONSTRATION)
        later = [*(step.observation.admissible_commands for step in steps[1:]), ()]
        for (seen, command, reward), after in zip(steps, later, strict=True):
            walk.went(command, reward, seen.admissible_commands, after)
        walk.close(1.0)

    def begin(self, goal: str) -> Walk | None:
        """Start a game; None where the goal is most like one that plans serve, or like none."""
        forms = sorted(self._planned.union(self.known))
        form = max(forms, key=lambda form: _alike(form, goal), default="")
        return self._walk(goal, form) if form in self.known else None

    def _walk(self, goal: str, form: str, kind: str = "experience") -> Walk:
        return Walk(self, self.memory.begin(goal, form, kind=kind, metadata={FORM: form}))


class Walk:
    """One game whose commands are chosen by their returns.

    Parameters
    ----------
    returns : Returns
    run : OpenEpisode
        Its episode.
    """

    def __init__(self, returns: Returns, run: OpenEpisode) -> None:
        self.returns, self.run = returns, run
        self.form = run.metadata[FORM]
        self._gaps = gaps(self.form, run.goal)
        self._rewarded = self._there = self._last = _NOBODY
        self._score, self._it = 0.0, _NOBODY
        self._could: Counter[tuple[str, str]] = Counter()
        self._path: list[tuple[str, str, str, float]] = []
        self._given: Counter[tuple[str, str, str]] = Counter()

    def _state(self) -> str:
        parts = {"rewarded": self._rewarded, "there": self._there, "last": self._last}
        return " ".join(joined(f"{name} {part}") for name, part in parts.items())

    def _kind(self) -> str:
        """The state of what commands earn by their shapes and names: the same in all places."""
        rewarded = joined(f"rewarded {shape(self._rewarded)}")
        return f"{rewarded} score_{round(10 * self._score)}"

    def _without_names(self, command: str) -> str:
        said = f" {unnumbered(command)} "
        for name, gap in (*self._gaps.items(), (self._it, _IT)):
            said = said.replace(f" {name} ", f" {gap} ")
        return said.strip()

    def choose(self, commands: Iterable[str], rng: Random) -> str:
        """Return the command that promises the most; ``rng`` decides between equals."""
        by_name: dict[str, str] = {}
        for command in commands:
            by_name.setdefault(self._without_names(command), command)
        state, known = self._state(), self.returns.known[self.form]
        forms = {form for form in map(shape, by_name) if form in known}
        exact = self._advised(COMMANDS_OF, self.form, state, known.intersection(by_name))
        like = self._advised(SHAPES_OF, self.form, self._kind(), forms)
        earning = self._earning(by_name, forms)

        def worth(name: str) -> float:
            form = shape(name)
            if name in exact and exact[name].trials:
                value = hope(exact[name], _BOLD)
            else:
                value = _OTHER * exact[name].value if name in exact else _UNHEARD
                if form in like:
                    here = 1.0 if like[form].trials else _OTHER
                    value = max(value, here * earning.get(name, 0.0) * like[form].value)
            return value / (1 + self._given[self._rewarded, self._there, name])

        return by_name[max(sorted(by_name), key=lambda name: (worth(name), rng.random()))]

    def _advised(
        self, what: str, of: str, state: str, actions: Iterable[str]
    ) -> Mapping[str, Option]:
        told = list(actions)
        return self.returns.choices.advise(f"{what} {of}", state, told) if told else {}

    def _earning(self, names: Iterable[str], forms: Iterable[str]) -> Mapping[str, float]:
        """Return how likely commands of these shapes earn a reward, by the words that they name."""
        found = {}
        for form in sorted(forms):
            own = {name: _named(name) for name in names if shape(name) == form and _named(name)}
            heard = self.returns.named[f"{form} for {self.form}"].intersection(
                *[set().union(*own.values())]
            )
            told = (
                self._advised(THINGS_OF, f"{form} for {self.form}", self._kind(), {*heard, _NOBODY})
                if own
                else {}
            )
            odds = {word: one.value for word, one in told.items()}
            for name, said in own.items():
                each = [odds[word] for word in said if word in odds] or [odds[_NOBODY]]
                found[name] = sum(each) / len(each)
        return found

    def went(
        self, command: str, reward: float, before: Iterable[str], after: Iterable[str]
    ) -> None:
        """Take in how a command went, and what could be done before it and after."""
        name, state, left = self._without_names(command), self._state(), set(after)
        if self.run.kind == DEMONSTRATION:
            self._could.update((self._kind(), form) for form in set(map(shape, before)))
        self.returns.memory.step(self.run, command, name)
        self._path.append((state, self._kind(), name, reward))
        self._given[self._rewarded, self._there, name] += 1
        self._score += reward
        if reward > 0:
            self._it = next((a.word for a in arguments(name) if a.word[0] != "{"), self._it)
        name = self._without_names(command)
        self._last = name
        if left and 2 * len(left.intersection(before)) < len(left):
            self._there = name
        if reward > 0:
            self._rewarded = name

    def close(self, score: float) -> None:
        """End the game with the sum of its rewards, and tell what its commands returned."""
        returns = self.returns
        episode = returns.memory.close(self.run, min(max(score, 0.0), 1.0))
        if not episode.steps or episode.steps[0].node is None:
            return
        told, earned = dict[tuple[str, str], float](), dict[tuple[str, str, str], float]()
        paid, follows = defaultdict[tuple[str, str], list[float]](list), 0.0
        for state, kind, name, reward in reversed(self._path):
            follows = min(reward + _DISCOUNT * follows, 1.0)
            told[state, name] = follows
            if reward > 0:
                paid[kind, shape(name)].append(follows)
            said = _named(name)
            # What such commands never named before tells what the next new thing may earn.
            new = returns.named[f"{shape(name)} for {self.form}"].isdisjoint(said)
            for word in (*said, _NOBODY) if said and new else said:
                key = shape(name), kind, word
                earned[key] = max(earned.get(key, 0.0), float(reward > 0))
        # What somebody who knew the way could do and did not would have earned nothing.
        given = {shape(name) for _, _, name, _ in self._path}
        for (kind, form), times in sorted(self._could.items()):
            if form in given:
                earned[form, kind, _NOBODY] = len(paid.get((kind, form), ())) / times
        for (state, name), value in told.items():
            returns.choices.tell(f"{COMMANDS_OF} {self.form}", state, name, value)
        for (kind, form), values in paid.items():
            mean = sum(values) / len(values)
            returns.choices.tell(f"{SHAPES_OF} {self.form}", kind, form, mean)
        for (form, kind, word), share in earned.items():
            returns.choices.tell(f"{THINGS_OF} {form} for {self.form}", kind, word, share)
        returns.take_in(self.form, [name for _, _, name, _ in self._path])

    def rest(self) -> None:
        """Let go of what was asked."""
        self.returns.choices.rest()

    def discard(self) -> None:
        """Leave nothing of a game that was broken off."""
        self.returns.memory.discard(self.run)


def form_of(goal: str, steps: Iterable[Played]) -> str:
    """Return a goal with gaps in the place of what commands could name, numbered by its name."""
    could = {c for step in steps for c in (step.command, *step.observation.admissible_commands)}
    return template(goal, names_in(goal, {a.word for c in could for a in arguments(c)}))


def gaps(form: str, goal: str) -> dict[str, str]:
    """Return which words of a goal stand where a form of goals has a gap.

    Examples
    --------
    >>> gaps("put the hat on the {0}", "Put the hat on the high hook.")
    {'high hook': '{0}'}
    """
    old, new = words(form), words(goal)
    found = {}
    for kind, first, last, start, end in _matched(old, new).get_opcodes():
        gap = [word for word in old[first:last] if word.startswith("{")]
        if kind == "replace" and gap:
            found[" ".join(new[start:end])] = gap[0]
    return found


def _matched(old: Sequence[str], new: Sequence[str]) -> SequenceMatcher[str]:
    return SequenceMatcher(None, old, new, autojunk=False)


def _alike(form: str, goal: str) -> tuple[int, int]:
    """Return how few words of a form a goal is without, and how many it has; gaps are none."""
    old = words(form)
    found = sum(block.size for block in _matched(old, words(goal)).get_matching_blocks())
    return found - sum(not word.startswith("{") for word in old), found


def _named(command: str) -> list[str]:
    """Return the words in the names that a command has, each once."""
    return sorted({word for a in arguments(command) for word in a.word.split()})
