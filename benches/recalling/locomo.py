"""LoCoMo: long conversations of two people, with questions and the turns that answer them.

CC BY-NC 4.0: for evaluation only. Nothing of it is kept in this project, or fitted into its
defaults.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from benches.recalling.precomputed import GivenVectors
from cvx.embed import Embedder, LexicalEmbedder
from cvx.evaluation.labels import Label
from cvx.memory import Memory
from cvx.recall.question import plain_words, without
from cvx.types import Event, Vector

_TURN = re.compile(r"D:?(\d+):0*(\d+)")
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}


@dataclass(frozen=True)
class Turn:
    """One thing that was said.

    Attributes
    ----------
    speaker, text, session : str
        Who, what (with the caption of a picture that was shown), and in which session.
    timestamp : int
        Start of the session and a second for each turn, microseconds since 1970-01-01 UTC.
    vector : ndarray of shape (384,), float32
        MiniLM's, of the text alone.
    """

    speaker: str
    text: str
    session: str
    timestamp: int
    vector: Vector


@dataclass(frozen=True)
class Asked:
    """A question, and what answers it.

    Attributes
    ----------
    text : str
        The question.
    gold : tuple of int
        Numbers of turns.
    category : int
        1 to 5, see ``CATEGORIES``.
    vector, bare : ndarray of shape (384,), float32
        MiniLM's, of the question as asked, and without the names of the speakers.
    """

    text: str
    gold: tuple[int, ...]
    category: int
    vector: Vector
    bare: Vector


@dataclass(frozen=True)
class Conversation:
    """Turns and questions of one pair of speakers."""

    name: str
    turns: tuple[Turn, ...]
    asked: tuple[Asked, ...]

    @property
    def speakers(self) -> list[str]:
        """The two names, in alphabetical order."""
        return sorted({turn.speaker for turn in self.turns})


def load(folder: Path) -> list[Conversation]:
    """Read all conversations; malformed ids of evidence are repaired, unknown ones left out."""
    rows = json.loads((folder / "locomo_dev.json").read_text())
    turn_vectors = iter(_vectors(folder / "minilm" / "turns_text.npy"))
    asked_vectors = iter(_vectors(folder / "minilm" / "questions.npy"))
    bare_vectors = iter(_vectors(folder / "minilm" / "questions_noname.npy"))
    out = []
    for row in rows:
        turns, places = list[Turn](), dict[tuple[int, int], int]()
        said = row["conversation"]
        for number in range(1, len(said)):
            start = _microseconds(said.get(f"session_{number}_date_time", ""))
            for at, turn in enumerate(said.get(f"session_{number}", [])):
                places[_ids(turn["dia_id"])[0]] = len(turns)
                turns.append(
                    Turn(
                        turn["speaker"],
                        " ".join(part for part in (turn["text"], turn.get("blip_caption")) if part),
                        f"{row['sample_id']} {number}",
                        start + at * 1_000_000,
                        next(turn_vectors),
                    )
                )
        asked = [
            Asked(
                one["question"],
                tuple(
                    places[key] for text in one["evidence"] for key in _ids(text) if key in places
                ),
                one["category"],
                next(asked_vectors),
                next(bare_vectors),
            )
            for one in row["qa"]
        ]
        out.append(Conversation(row["sample_id"], tuple(turns), tuple(asked)))
    return out


def _vectors(path: Path) -> Vector:
    return np.asarray(np.load(path), dtype=np.float32)


def _ids(text: str) -> list[tuple[int, int]]:
    return [(int(session), int(turn)) for session, turn in _TURN.findall(text)]


def _microseconds(text: str) -> int:
    if not text:
        return 0
    then = datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    return int(then.timestamp()) * 1_000_000


def remembered(
    conversations: Sequence[Conversation],
    encoder: Embedder | None = None,
    *,
    default: bool = False,
) -> tuple[Memory, list[Label]]:
    """Put every conversation into a namespace of its own, and label its questions.

    Parameters
    ----------
    conversations : sequence of Conversation
        From ``load``.
    encoder : Embedder, optional
        For texts without a given vector.
    default : bool, default False
        Use the embedder that a memory has without one being named, and no given vector.

    Returns
    -------
    Memory
        Turns are events of their speaker, with the vectors that were given. What a question is
        embedded to is given too, as asked and without the names.
    list of Label
        Questions with evidence; groups are conversations.
    """
    vectors = dict[str, Vector]()
    for conversation in conversations:
        names = frozenset(plain_words(" ".join(conversation.speakers)))
        for one in conversation.asked:
            vectors[without(one.text, names)] = one.bare
        vectors.update({one.text: one.vector for one in conversation.asked})
    memory = Memory(embedder=LexicalEmbedder() if default else GivenVectors(vectors, encoder))
    labels = []
    speakers = sorted({(c.name, speaker) for c in conversations for speaker in c.speakers})
    for conversation in conversations:
        events = [
            Event(
                entity_id=speakers.index((conversation.name, turn.speaker)),
                timestamp=turn.timestamp,
                text=turn.text,
                vector=None if default else turn.vector,
                namespace=conversation.name,
                metadata={"speaker": turn.speaker, "session": turn.session},
            )
            for turn in conversation.turns
        ]
        ids = memory.add_many(events, again=True).tolist()
        labels += [
            Label(
                query=one.text,
                gold=frozenset(ids[at] for at in one.gold),
                group=conversation.name,
                category=CATEGORIES[one.category],
                namespace=conversation.name,
            )
            for one in conversation.asked
            if one.gold
        ]
    return memory, labels


def exchanged(labels: Sequence[Label], conversations: Sequence[Conversation]) -> list[Label]:
    """Return questions as asked of the next conversation, with the names of its speakers."""
    names = {conversation.name: conversation.speakers for conversation in conversations}
    following = dict(zip(names, [*list(names)[1:], *list(names)[:1]], strict=True))
    out = []
    for label in labels:
        asked, text = following[label.namespace], str(label.query)
        for own, other in zip(names[label.namespace], names[asked], strict=True):
            text = re.sub(rf"\b{own}\b", other, text)
        out.append(replace(label, query=text, namespace=asked, gold=frozenset()))
    return out
