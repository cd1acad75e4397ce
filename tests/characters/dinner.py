"""A small cast at a dinner, for the tests."""

from __future__ import annotations

from typing import Any

from cvx.characters import Cast
from cvx.memory import Memory

ALEX: dict[str, Any] = {
    "role": "project manager",
    "archetype": "The pragmatist",
    "description": "You keep lists and like things to be settled by eight.",
    "background": (
        "You grew up above a bakery in Lyon. Your father taught you to get up at four. "
        "You studied logistics in Ghent, and ran a warehouse for six years. "
        "Two years ago you moved to the city for a job at a design studio. "
        "You never told anybody that you failed your final exam twice. "
        "Since the accident on the canal you do not swim."
    ),
    "communication": "Short sentences, and you ask for decisions.",
    "decision_style": "You weigh costs first, then ask who is left out.",
    "traits": ["tidy", "impatient", "loyal"],
    "skills": ["planning", "bread", "mental arithmetic"],
    "values": ["punctuality", "fairness"],
}
JORDAN: dict[str, Any] = {
    "archetype": "The host",
    "description": "A tall musician who laughs easily.",
    "background": "You played the cello in Oslo until your hand was hurt.",
    "communication": "You tell stories.",
    "decision_style": "By mood.",
    "traits": ["warm"],
    "skills": ["cello"],
    "values": ["hospitality"],
    "relationships": {"Alex": "You owe Alex forty euros, and Alex does not know it."},
    "goals": ["Find a restaurant that serves Italian food."],
}
SCENE = {
    "location": "Jordan's flat, the kitchen",
    "atmosphere": "warm and a little loud",
    "time": "seven in the evening",
    "description": "Three friends plan a dinner.",
}


def dinner(**options: Any) -> Cast:
    """Return a cast of two with a scene, on a memory that counts turns."""
    cast = Cast(Memory(embedder="lexical", clock="turns"), **options)
    cast.seed("Alex", **ALEX)
    cast.seed("Jordan", **JORDAN)
    cast.scene(**SCENE)
    return cast


def contents(answer: dict[str, Any]) -> list[str]:
    """Return what the memories of an answer say."""
    return [one["content"] for one in answer["memories"]]
