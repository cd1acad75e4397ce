"""The cue: builds the query of a recall from the agent's goal, subtask and open questions."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from numbers import Real
from typing import Any, Protocol

import numpy as np

from cvx.arguments import Check, a_text, a_time, an_event, optional, some_texts, whole, wrong
from cvx.types import Cue, Vector

LONGEST = 4_096
"""Characters of a cue that are used; what comes after them says nothing that these did not."""


class AgentState(Protocol):
    """What a cue is built from; any object with these attributes."""

    @property
    def goal(self) -> str:
        """What is to be reached."""

    @property
    def active_subtask(self) -> str:
        """What is being done right now."""

    @property
    def open_loops(self) -> Any:
        """A sequence of str: what is still open."""


def build_cue(state: AgentState) -> str:
    r"""Describe what the agent is trying to do right now; this is what is embedded.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> state = SimpleNamespace(goal="ship it", active_subtask="run the tests",
    ...                         open_loops=["is staging green?", "who is on call?"])
    >>> print(build_cue(state))
    Goal: ship it
    Current step: run the tests
    Open questions: is staging green?; who is on call?
    """
    return _described(state.goal, state.active_subtask, state.open_loops)


def _described(goal: str, step: str, questions: Iterable[str]) -> str:
    return f"Goal: {goal}\nCurrent step: {step}\nOpen questions: {'; '.join(questions)}"


def cue_of(state: AgentState, utterance: str = "", **more: Any) -> Cue:
    """Return the cue of a state, with what was said literally beside it.

    Parameters
    ----------
    state : AgentState
        Its goal, step and open questions are embedded.
    utterance : str
        The raw words, which the lexical source looks for.
    **more
        Further fields of `Cue`.
    """
    return Cue(
        goal=state.goal,
        step=state.active_subtask,
        questions=tuple(state.open_loops),
        text=utterance,
        **more,
    )


def structured(cue: Cue) -> bool:
    """Return whether a cue describes a state, beside raw words or without."""
    return bool(cue.goal or cue.step or cue.questions)


def dense_text(cue: Cue) -> str:
    """Return what of a cue is embedded: the state where there is one, else the raw words."""
    if structured(cue):
        return _described(cue.goal, cue.step, cue.questions)
    return cue.text


def lexical_text(cue: Cue) -> str:
    """Return what of a cue is looked for literally: the raw words, else everything it says."""
    return cue.text if cue.text.strip() else cue.words()


def checked_cue(cue: Cue) -> Cue:
    """Return a cue whose parts are of the types that they should be.

    Raises
    ------
    InvalidInputError
        No Cue, or a part of it that is no text or no whole number.
    """
    if not isinstance(cue, Cue):
        raise wrong("cue", cue, "a cvx.Cue, such as Cue(text=...)")
    made = {name: check(f"cue.{name}", getattr(cue, name)) for name, check in _PARTS.items()}
    return replace(cue, **made)


_PARTS: dict[str, Check] = {
    "goal": a_text,
    "step": a_text,
    "questions": lambda name, value: tuple(some_texts(name, value)),
    "text": a_text,
    "event": optional(an_event),
    "entity": optional(a_text),
    "task_type": optional(a_text),
    "timestamp": optional(a_time),
    "place": optional(whole()),
}


def sound_cue(cue: str | Cue | Vector) -> Cue:
    """Return a cue that can be asked.

    Control characters become spaces, and what is longer than `LONGEST` characters a part is cut.

    Raises
    ------
    InvalidInputError
        Neither a str, a Cue nor a vector, or a part of it that is no text or no whole number.
    """
    if isinstance(cue, str):
        cue = Cue(cue)
    elif isinstance(cue, np.ndarray) or _are_numbers(cue):
        cue = Cue(vector=_a_vector("cue", cue))
    if not isinstance(cue, Cue):
        raise wrong("cue", cue, "a str, a cvx.Cue or a vector")
    cue = checked_cue(cue)
    return replace(
        cue,
        goal=_clean(cue.goal),
        step=_clean(cue.step),
        questions=tuple(_clean(question) for question in cue.questions),
        text=_clean(cue.text),
        vector=None if cue.vector is None else _a_vector("cue.vector", cue.vector),
    )


def _are_numbers(value: Any) -> bool:
    listed = isinstance(value, list | tuple) and len(value) > 0
    return listed and all(isinstance(one, Real) for one in value)


def _a_vector(name: str, value: Any) -> Vector:
    """Check where a cue lies, an array or a list of numbers, and return it as an array."""
    row = np.asarray(value) if isinstance(value, np.ndarray) or _are_numbers(value) else None
    if row is None or row.ndim != 1 or row.dtype.kind not in "fiu" or not np.isfinite(row).all():
        raise wrong(name, value, "a vector of shape (dim,) of finite numbers")
    if row.dtype == np.float32:
        return row
    # What is too large for this type is infinite in it, and refused as such.
    with np.errstate(over="ignore"):
        row = row.astype(np.float32)
    if not np.isfinite(row).all():
        raise wrong(name, value, "numbers that fit 32-bit floats")
    return row


def _clean(text: str) -> str:
    text = text[:LONGEST]
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if unicodedata.category(sign) in ("Cc", "Cs") else sign for sign in text)


def cue_hash(cue: Cue) -> str:
    """Return what two cues share that ask the same: 16 hexadecimal digits."""
    said = dense_text(cue) + "\0" + cue.text
    if cue.vector is not None:
        said += "\0" + hashlib.blake2b(cue.vector.tobytes(), digest_size=8).hexdigest()
    return hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
