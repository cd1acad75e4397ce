"""What is learned from demonstrations beside the plans, and rebuilt when a memory is opened."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from cvx.errors import InvalidInputError
from cvx.scoring import Durations
from cvx.types import Episode
from experiments.plans.binding import PastCommand, settled
from experiments.plans.choices import Search
from experiments.plans.clauses import Goal, align, clauses, holds, instructs, names_in
from experiments.plans.demonstration import Demonstrations, Played
from experiments.plans.lexicon import Lexicon
from experiments.plans.place_map import moving
from experiments.plans.words import arguments, shape, variables_of, words

DEMONSTRATION = "demonstration"

PLAN, SUBGOAL = "goal", "subgoal"
"""Tags of events: the start of an attempt, a step of its plan."""

GOAL, COMMANDS, TOLD, MOVES, SLOTS = "goal", "commands", "told", "moves", "slots"
UNDONE, OPENED = "undone", "opened"
"""Metadata of episodes: what a demonstration said, did, undid and was told, a goal's names;
which of its commands made the next one possible."""

FOLLOWED, TOOK, COMPOSED, OFFERED, MET = "plan", "took", "composed", "offered", "met"
"""Metadata of attempts: the plan's signature, how many commands were given, whether it is what
lasted of several attempts, what could be done with the goal's things (see `offers`), and which
names stood at which positions of commands that were possible (see `positions`)."""


class Shown(NamedTuple):
    """One step of a demonstration, as it is remembered.

    Attributes
    ----------
    commands, before : tuple of str
        What could be done then, and one step earlier.
    last : str or None
        What was done one step earlier.
    command : str
        What was done.
    aimed : bool
        Whether it serves the clause itself, not only the way to what does.
    after : tuple of str
        What could be done one step later.
    reward : float
        What it earned, where that was told.
    """

    commands: tuple[str, ...]
    before: tuple[str, ...]
    last: str | None
    command: str
    aimed: bool
    after: tuple[str, ...] = ()
    reward: float = 0.0


class Part(NamedTuple):
    """What a demonstration shows for one clause of its goal, and what is explored in all of it."""

    clause: str
    slots: list[str]
    steps: list[Shown]
    metadata: dict[str, Any]
    search: Search


def understand(lexicon: Lexicon, demonstrations: Demonstrations) -> list[Part]:
    """Learn how demonstrations speak, and part them by the clauses of their goals.

    What was told after a command that mostly brings instructions belongs to the goal, after the
    clause that the command served. A step that serves no clause is on the way to the next one.

    Raises
    ------
    InvalidInputError
        A demonstration without a goal or without a step; nothing is learned of any.
    """
    for number, (said, steps) in enumerate(demonstrations):
        if not clauses(said) or not steps:
            raise InvalidInputError(
                f"demonstration {number} has the goal {said!r} and {len(steps)} steps: give a goal "
                "in words and at least one step"
            )
    goals, places, moves = [], [], []
    for said, steps in demonstrations:
        commands = [step.command for step in steps]
        texts = [step.observation.text for step in steps[1:]]
        told = [i for i, t in enumerate(texts) if instructs(t, commands[i], commands[i + 1 :])]
        lexicon.told(commands, told)
        moves.append(sorted(moving(zip(commands, texts, strict=False))))
        lexicon.moves.update(moves[-1])
        goals.append(Goal(clauses(said), commands))
        places.append(told)
    for goal, (_, steps) in zip(goals, demonstrations, strict=True):
        for step, after in pairwise(steps):
            if lexicon.instructs(step.command):
                insert(goal.clauses, clauses(after.observation.text), step.command)
    back = [undone(steps) for _, steps in demonstrations]
    means = [opened(steps) for _, steps in demonstrations]
    names = [read(lexicon, *told) for told in zip(goals, back, means, strict=True)]
    aimed = {c for goal in goals for c in goal.commands if lexicon.aimed(shape(c))}
    parts = []
    for number, served in enumerate(align(goals, aimed)):
        kept: dict[str, Any] = {
            GOAL: "\n".join(goals[number].clauses),
            COMMANDS: goals[number].commands,
            UNDONE: back[number],
            OPENED: means[number],
            TOLD: places[number],
            MOVES: moves[number],
        }
        shares = _shares(demonstrations[number][1], served, len(names[number]))
        texts = [step.observation.text for step in demonstrations[number][1]]
        search = Search(demonstrations[number][1][0].observation)
        for clause, slots, own in zip(goals[number].clauses, names[number], shares, strict=True):
            # What held without a command does not show that nothing has to be done for it.
            if own or kept or not holds(clause, slots, texts):
                own = _settled(own, slots, lexicon)
                parts.append(Part(clause, slots, own, kept, search))
                kept = {}
    return parts


def rewarded_by_the_way(demonstrations: Demonstrations) -> list[int]:
    """Return the places of demonstrations rewarded for a command that serves none of their clauses.

    A plan would leave it out.
    """
    found, place = set[int](), -1
    if not any(step.reward > 0 for _, steps in demonstrations for step in steps):
        return []
    for part in understand(Lexicon(), demonstrations):
        place += bool(part.metadata)  # the first part of each has what all of it said and did
        if any(step.reward > 0 and not step.aimed for step in part.steps):
            found.add(place)
    return sorted(found)


def insert(said: list[str], told: Sequence[str], command: str) -> None:
    """Put what was told into a goal, after the last clause that names what the command does."""
    named = [a.word for a in arguments(command)]
    place = max((i for i, clause in enumerate(said) if names_in(clause, named)), default=len(said))
    said[place + 1 : place + 1] = told


def _shares(steps: Sequence[Played], served: Sequence[int | None], n: int) -> list[list[Shown]]:
    """Give each clause the steps that serve it, with those on the way to them."""
    shares: list[list[Shown]] = [[] for _ in range(n)]
    before: tuple[str, ...] = ()
    last, waiting, latest = None, [], 0
    later = [*(step.observation.admissible_commands for step in steps[1:]), ()]
    for (seen, command, reward), place, after in zip(steps, served, later, strict=True):
        can = seen.admissible_commands
        waiting.append(Shown(can, before, last, command, place is not None, after, reward))
        before, last = can, command
        if place is not None:
            shares[place] += waiting
            waiting, latest = [], place
    shares[latest] += waiting
    return shares


def _settled(steps: list[Shown], slots: Sequence[str], lexicon: Lexicon) -> list[Shown]:
    """Leave out what the demonstrator did for a clause and undid again."""
    deeds = []
    for place, step in enumerate(steps):
        if step.aimed:
            opened = frozenset(step.after).difference(step.commands)
            spent = step.command not in step.after
            deeds.append(PastCommand(step.command, place, None, opened, spent))
    kept = {deed.attempt for deed in settled(deeds, slots, lexicon)}
    return [step for place, step in enumerate(steps) if not step.aimed or place in kept]


def undone(steps: Sequence[Played]) -> list[int]:
    """Return the places of commands of which the next took the last back, such as taking a thing
    and putting it down where it was: each made the other possible again.
    """
    can = [frozenset(step.observation.admissible_commands) for step in steps]
    left: list[int] = []
    found: list[int] = []
    for place in range(len(steps) - 1):
        if left:
            last = left[-1]
            earlier, later = steps[last].command, steps[place].command
            opened, reopened = can[last + 1] - can[last], can[place + 1] - can[place]
            if later in opened and earlier in reopened and earlier not in can[last + 1]:
                found += [left.pop(), place]
                continue
        left.append(place)
    return sorted(found)


def opened(steps: Sequence[Played]) -> list[int]:
    """Return the places of commands that made the next one possible, as lifting a lid does, and
    of those that made such a command possible again, as putting it back does.
    """
    found: list[int] = []
    for place, (step, after) in enumerate(pairwise(steps)):
        can = set(after.observation.admissible_commands)
        fresh = can.difference(step.observation.admissible_commands)
        if not fresh.isdisjoint([after.command, *(steps[p].command for p in found)]):
            found.append(place)
    return found


def read(
    lexicon: Lexicon, goal: Goal, undone: Collection[int] = (), opened: Collection[int] = ()
) -> list[list[str]]:
    """Learn how a demonstration speaks; return the names of things in each clause."""
    heard = {a.word for command in goal.commands for a in arguments(command)}
    names = [names_in(clause, heard) for clause in goal.clauses]
    for clause, slots in zip(goal.clauses, names, strict=True):
        lexicon.said(clause, slots)
    lexicon.did(goal.commands, {name for slots in names for name in slots}, undone, opened)
    return names


def take_in(lexicon: Lexicon, episode: Episode) -> None:
    """Learn from a closed episode which words are rare, and what plans for goals name.

    An episode that is in no index teaches nothing: the memory has not kept it.
    """
    if not kept(episode):
        return
    lexicon.offered.update((form, own, o) for form, own, o in episode.metadata.get(OFFERED, ()))
    lexicon.met.update(((form, at), word) for form, at, word in episode.metadata.get(MET, ()))
    if episode.reward == 1.0:
        plan = [s.action for s in episode.steps if s.action and variables_of(s.action)]
        lexicon.reached(episode.task_type or "", plan)
        terms = lexicon.terms(episode.goal, episode.metadata[SLOTS])
        lexicon.goals.note([*terms, *(words(p)[0] for p in plan)])


def kept(episode: Episode) -> bool:
    """Whether an episode is in an index, and is an attempt: others have no names of things."""
    return bool(episode.steps) and episode.steps[0].node is not None and SLOTS in episode.metadata


def take_time(durations: Durations, episode: Episode) -> None:
    """Learn from a closed attempt how many commands its plan took, if it succeeded."""
    told = episode.metadata
    if kept(episode) and episode.reward == 1.0 and told.get(FOLLOWED):
        durations.add((episode.task_type, told[FOLLOWED]), told[TOOK])


def learned(episodes: Sequence[Episode]) -> Lexicon:
    """Return the lexicon of an agent that has these episodes in its memory."""
    lexicon = Lexicon()
    for episode in episodes:
        if COMMANDS in episode.metadata:
            told, commands = episode.metadata[TOLD], episode.metadata[COMMANDS]
            lexicon.told(commands, told)
            lexicon.moves.update(episode.metadata[MOVES])
            goal = Goal(episode.metadata[GOAL].split("\n"), commands)
            read(lexicon, goal, episode.metadata[UNDONE], episode.metadata.get(OPENED, ()))
    for episode in episodes:
        take_in(lexicon, episode)
    return lexicon
