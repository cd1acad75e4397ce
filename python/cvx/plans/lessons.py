"""What a lexicon learns from episodes, and learns again from remembered ones."""

from __future__ import annotations

from collections.abc import Sequence

from cvx.plans.lexicon import Lexicon, rest
from cvx.plans.words import arguments, spans, variables_of, words
from cvx.types import Episode

PLAN, SUBGOAL, MOMENT, FIND = "goal", "subgoal", "explore", "found"
"""Tags of events: the start of an attempt, a step of its plan, an explored step, a find."""

GOAL, COMMANDS, SLOTS = "goal", "commands", "slots"
"""Metadata of episodes: what a demonstration said and did, and a goal's names as understood."""


def read(lexicon: Lexicon, goal: str, commands: Sequence[str]) -> list[str]:
    """Learn how a demonstration speaks; return the names of its goal's things."""
    heard = {a.word for command in commands for a in arguments(command)}
    slots = list(dict.fromkeys(name for name, named in spans(goal, heard) if named))
    lexicon.learn(goal, slots, commands)
    return slots


def terms_of(lexicon: Lexicon, goal: str, slots: Sequence[str]) -> list[str]:
    """Return the words of a goal that name no thing."""
    return [w for w in rest(goal, slots) if w not in lexicon.nouns]


def take_in(lexicon: Lexicon, episode: Episode) -> None:
    """Learn from a closed episode which explored commands led on, and which words are rare.

    An episode that is in no index teaches nothing: the memory has not kept it.
    """
    if not episode.steps or episode.steps[0].node is None:
        return
    for step, after in zip(episode.steps, [*episode.steps[1:], None], strict=True):
        if MOMENT in step.tags and step.action:
            led = after is not None and MOMENT not in after.tags
            lexicon.explored(step.action, led)
            lexicon.moments.note(w for w in step.text.split() if "_" in w)
    if episode.reward == 1.0:
        plan = [s.action for s in episode.steps if s.action and variables_of(s.action)]
        terms = terms_of(lexicon, episode.goal, episode.metadata[SLOTS])
        lexicon.goals.note([*terms, *(words(p)[0] for p in plan)])


def learned(episodes: Sequence[Episode]) -> Lexicon:
    """Return the lexicon of an agent that has these episodes in its memory."""
    lexicon = Lexicon()
    for episode in episodes:
        if COMMANDS in episode.metadata:
            read(lexicon, episode.metadata[GOAL], episode.metadata[COMMANDS])
    for episode in episodes:
        take_in(lexicon, episode)
    return lexicon
