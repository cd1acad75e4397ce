"""A made-up talk with questions about it: a figure measured on it says nothing of real memories."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from cvx.evaluation import Label
from cvx.memory import Memory
from cvx.types import Event

_SPEAKERS = ("Ada", "Ben")
_THINGS = (
    ("repaired", "bicycle", "the shed"),
    ("baked", "rye bread", "the kitchen"),
    ("painted", "lighthouse", "the coast"),
    ("sold", "accordion", "the market"),
    ("planted", "walnut tree", "the garden"),
    ("lost", "passport", "the station"),
    ("adopted", "greyhound", "the shelter"),
    ("visited", "planetarium", "the city"),
    ("broke", "telescope", "the attic"),
    ("borrowed", "canoe", "the lake"),
    ("finished", "crossword", "the train"),
    ("wrote", "sonnet", "the library"),
)
_SMALL_TALK = (
    "Nice to hear from you again!",
    "That sounds wonderful.",
    "Thanks, that means a lot.",
    "What a week it has been.",
    "I could not agree more.",
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def generated_talk(memory: Memory, *, sessions: int = 12, seed: int = 0) -> list[Label]:
    """Add a talk to a memory, and return questions about it.

    Parameters
    ----------
    memory : cvx.Memory
        Where the turns go: to the default namespace, as events of two speakers.
    sessions : int, default 12
        Talks on different days, at least 1; each brings two stories and six lines of small talk.
    seed : int, default 0
        The same seed gives the same talk.

    Returns
    -------
    list of Label
        Two a story ("what" and "when"), in four groups by session.
    """
    rng = np.random.default_rng(seed)
    labels: list[Label] = []
    for session in range(sessions):
        day = datetime(2024, 1, 3, 10, tzinfo=UTC) + timedelta(days=11 * session)
        lines = list[tuple[int, str, Sequence[tuple[str, str]]]]()
        for teller in (0, 1):
            verb, thing, place = _THINGS[int(rng.integers(len(_THINGS)))]
            asked = (f"What did {_SPEAKERS[teller]} do at {place} on {day:%d %B %Y}?", "what")
            when = (f"When was {_SPEAKERS[teller]} busy with the {thing} in {day:%B}?", "when")
            lines.append((1 - teller, "And what have you been up to?", ()))
            lines.append((teller, f"I {verb} a {thing} at {place} yesterday.", (asked, when)))
            for _ in range(3):
                said = str(rng.choice(_SMALL_TALK))
                lines.append((int(rng.integers(2)), said, ()))
        ids = memory.add_many(
            [
                Event(
                    entity_id=speaker,
                    timestamp=(day - _EPOCH) // timedelta(microseconds=1) + at * 60_000_000,
                    text=text,
                    metadata={"speaker": _SPEAKERS[speaker], "session": f"day {session}"},
                )
                for at, (speaker, text, _) in enumerate(lines)
            ],
            again=True,
        )
        labels += [
            Label(
                query=question,
                gold=frozenset({event}),
                group=f"quarter {4 * session // sessions + 1}",
                category=kind,
            )
            for event, (_, _, questions) in zip(ids.tolist(), lines, strict=True)
            for question, kind in questions
        ]
    return labels
