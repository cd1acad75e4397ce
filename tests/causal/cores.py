"""Cores over a clock, an embedding model and a language model that tests can foresee."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from cvx.causal import CausalMemoryCore

START = datetime(2026, 1, 1)  # the file's timestamps carry no zone


class Words:
    """An embedding model of the blueprint's shape: one text, one list; a dimension a word."""

    KNOWN: tuple[str, ...] = ("rain", "flood", "cellar", "mould", "books", "cat", "mayor", "storm")

    def embed(self, text: str) -> list[float]:
        low = text.lower()
        return [float(word in low) for word in self.KNOWN] + [0.05]


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


class Model:
    """A language model that answers by a rule, and remembers what it was asked."""

    def __init__(self, answer: Callable[[str], str]) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def complete(self, prompt: str) -> str:
        self.asked.append(prompt)
        return self.answer(prompt)


def core(llm: object = None, path: str = ":memory:", **options: object) -> CausalMemoryCore:
    return CausalMemoryCore(path, llm, Words(), clock=Clock(), **options)  # type: ignore[arg-type]


def yes(_prompt: str) -> str:
    return "Yes. Water came in."


def no(_prompt: str) -> str:
    return "No."


def rows(made: CausalMemoryCore) -> list[tuple[str, int | None, str | None]]:
    return [(e.effect_text, e.cause_id, e.relationship_text) for e in made.events()]
