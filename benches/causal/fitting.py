"""Fits word weights on known pairs of cause and effect."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from benches.causal.training import Contrasts, train
from cvx.causal.cause_probability import NAMES, PairModel
from cvx.causal.judges.offline import WordPairs, beginnings
from cvx.errors import InvalidInputError
from cvx.types import Vector

Embed: TypeAlias = Callable[[Sequence[str]], Vector]

_SMOOTHING = 0.01
WORD_PAIRS = 40_000
"""So many pairs of words come with cvx."""


class Example(NamedTuple):
    """A cause and its effect, and what looks like one of the two but is wrong in its place.

    Attributes
    ----------
    cause, effect : str
        The first led to the second.
    wrong : str
        A text like the one that it stands in for.
    wrong_cause : bool
        Whether it stands in for the cause; otherwise for the effect.
    """

    cause: str
    effect: str
    wrong: str
    wrong_cause: bool

    @property
    def true(self) -> tuple[str, str]:
        """The true pair (cause, effect)."""
        return self.cause, self.effect

    @property
    def false(self) -> tuple[str, str]:
        """The pair with the wrong text in it."""
        return (self.wrong, self.effect) if self.wrong_cause else (self.cause, self.wrong)


def read(path: Path) -> list[Example]:
    """Read e-CARE's ``train.jsonl``."""
    examples = []
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        right = row[f"hypothesis{row['label'] + 1}"]
        wrong = row[f"hypothesis{2 - row['label']}"]
        if row["ask-for"] == "cause":
            examples.append(Example(right, row["premise"], wrong, True))
        else:
            examples.append(Example(row["premise"], right, wrong, False))
    return examples


def count_words(
    causes: Sequence[str], effects: Sequence[str], *, limit: int | None = None
) -> WordPairs:
    """Return what the words of causes and effects weigh, counted over pairs that are true.

    Parameters
    ----------
    causes, effects : sequence of str
        Text i of one led to text i of the other.
    limit : int, optional
        Keep only so many pairs of words: those with the largest |weight| * sqrt(count).

    Raises
    ------
    InvalidInputError
        As many causes as effects are needed.
    InvalidInputError
        No texts.
    """
    if len(causes) != len(effects):
        raise InvalidInputError(f"{len(causes)} causes and {len(effects)} effects: pair them")
    if not causes:
        raise InvalidInputError("no pair of texts to count: give some")
    if limit is not None and limit < 1:
        raise InvalidInputError(f"limit is {limit}: give at least 1")
    left, right, both = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    for cause, effect in zip(causes, effects, strict=True):
        ours, theirs = beginnings(cause), beginnings(effect)
        left.update(ours)
        right.update(theirs)
        both.update((a, b) for a in ours for b in theirs)
    weights = {
        (a, b): math.log((n + _SMOOTHING) / (left[a] * right[b] / len(causes) + _SMOOTHING))
        for (a, b), n in both.items()
    }
    if limit is not None and limit < len(weights):
        order = sorted(weights, key=lambda at: (-abs(weights[at]) * math.sqrt(both[at]), at))
        weights = {pair: weights[pair] for pair in order[:limit]}
    return WordPairs(weights)


def groups_by_text(examples: Sequence[Example]) -> list[str]:
    """Return for each example the name of its group: examples of two groups share no text.

    Texts recur, so rows that are split at random teach what they are then asked. A group is named
    by the first of its texts in the order of the alphabet.
    """
    parent: dict[str, str] = {}

    def first(text: str) -> str:
        parent.setdefault(text, text)
        while parent[text] != text:
            parent[text] = parent[parent[text]]
            text = parent[text]
        return text

    for one in examples:
        for text in (one.effect, one.wrong):
            a, b = sorted((first(one.cause), first(text)))
            # The smaller stays the root, so that a root is the smallest text of its group.
            parent[b] = a
    return [first(one.cause) for one in examples]


def base_of(examples: Sequence[Example], embed: Embed | None, name: str) -> PairModel:
    """Fit word pairs, and heads for the space of an embedder; the weights are still to come."""
    words = count_words(
        [one.cause for one in examples], [one.effect for one in examples], limit=WORD_PAIRS
    )
    words = WordPairs.from_arrays(arrays_of(words))
    if embed is None:
        return PairModel(words, {})
    wrong_cause = np.array([one.wrong_cause for one in examples])
    contrasts = Contrasts(
        embed([one.cause for one in examples]),
        embed([one.effect for one in examples]),
        embed([one.wrong for one in examples]),
        wrong_cause,
    )
    return PairModel(words, {}, {name: train(contrasts)})


def arrays_of(pairs: WordPairs) -> dict[str, npt.NDArray[np.generic]]:
    """Return the table as small arrays: words, pairs sorted by both ends, weights in 1/16."""
    seen = {word for row in pairs.weights.values() for word in row}
    words = sorted(seen | set(pairs.weights))
    at = {word: place for place, word in enumerate(words)}
    triples = sorted(
        (at[cause], at[effect], weight)
        for cause, row in pairs.weights.items()
        for effect, weight in row.items()
    )
    weights = np.array([weight for _, _, weight in triples], np.float64)
    return {
        "words": np.frombuffer("\n".join(words).encode(), np.uint8),
        "causes": np.array([cause for cause, _, _ in triples], np.uint16),
        "effects": np.array([effect for _, effect, _ in triples], np.uint16),
        "weights": np.clip(np.round(weights * 16), -127, 127).astype(np.int8),
    }


def save(model: PairModel, path: Path) -> None:
    """Write a model as a compressed npz of plain arrays."""
    arrays: dict[str, Any] = dict(arrays_of(model.words))
    for family, one in model.weights.items():
        columns = [one.centre, one.scale, one.weights, np.full(len(NAMES), one.bias)]
        arrays[f"weights/{family}"] = np.stack(columns).astype(np.float32)
    for embedder, heads in model.heads.items():
        for name, values in heads.weights.items():
            largest = np.abs(values).max(axis=0, keepdims=True) + 1e-9
            rounded = np.round(values / largest * 127).astype(np.int8)
            arrays[f"heads/{name}/{embedder}"] = rounded
            arrays[f"scale/{name}/{embedder}"] = (largest / 127).astype(np.float32)
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)
