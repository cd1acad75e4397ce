"""Plays the dinner; each speaker can only say what is in its prompt."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cvx.characters import Cast, Character
from cvx.memory import Memory
from cvx.recall import Budget

SCRIPT: dict[str, Any] = tomllib.loads(
    (Path(__file__).parent / "dinner.toml").read_text(encoding="utf-8")
)
BUDGET = 500
"""Tokens of memories in a prompt."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the dialogue, and what it took.

    Attributes
    ----------
    turn : int
        Its number, from 1.
    speaker, text : str
        Who says what.
    fact : {"", "definition", "dialogue"}
        Where the words come from that the speaker must have in its prompt; "" for none.
    with_memory, with_definition : bool
        Whether they stand in the prompt with memories, and in the one with the full definition.
    recalled : tuple of str
        What the speaker had in mind.
    tokens, definition_tokens : int
        Size of the two prompts.
    """

    turn: int
    speaker: str
    text: str
    fact: str
    with_memory: bool
    with_definition: bool
    recalled: tuple[str, ...]
    tokens: int
    definition_tokens: int


def seeded(memory: Memory) -> Cast:
    """Return the cast of the dinner over a memory, ready to begin."""
    cast = Cast(memory)
    for name, fields in SCRIPT["characters"].items():
        cast.seed(name, **fields)
    cast.scene(**SCRIPT["scene"])
    cast.initialize()
    return cast


def play(cast: Cast, budget_tokens: int = BUDGET) -> Iterator[Line]:
    """Let the characters speak, one turn each line.

    A speaker whose prompt does not hold the words that its line needs says something else, and that
    is what the others hear. On its first turn it asks who and where it is.
    """
    count = Budget().count
    met: set[str] = set()
    for turn, said in enumerate(SCRIPT["lines"], 1):
        one = cast[said["speaker"]]
        block = one.context(turn, budget_tokens)
        prompt = "\n".join([one.prompt, *_discovered(one, met), block])
        needs = said.get("needs", [])
        knows = all(words in prompt for words in needs)
        text = said["says"] if knows else said.get("else", "...")
        one.said(text, turn, said.get("heard_by"))
        definition = one.definition
        yield Line(
            turn,
            one.name,
            text,
            said.get("from", ""),
            knows,
            all(words in definition for words in needs),
            tuple(hit.text for hit in block.hits),
            count(prompt),
            count(definition),
        )


def _discovered(one: Character, met: set[str]) -> list[str]:
    """Return what a character asks before its first turn."""
    if one.name in met:
        return []
    met.add(one.name)
    answers = one.query_self(), one.query_scene()
    return [memory["content"] for answer in answers for memory in answer["memories"]]


def who_knows(cast: Cast) -> dict[str, dict[int, bool]]:
    """Return of each character which turns it remembers, and whether it was the one who spoke."""
    known: dict[str, dict[int, bool]] = {}
    for name, one in cast.items():
        lines = one.memory.events({"kind": "episodic", "metadata": {"category": "dialogue"}})
        known[name] = {
            line.metadata["turn"]: line.metadata["speaker"] == name
            for line in lines
            if line.namespace == name
        }
    return known
