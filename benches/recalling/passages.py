"""Passages that nobody said and no title names: documents cut up, as a reader of documents has."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from benches.recalling.locomo import Conversation
from cvx.embed import Embedder
from cvx.evaluation.labels import Label
from cvx.memory import Memory
from cvx.types import Event

TURNS = 5


def of_talks(
    conversations: Sequence[Conversation], embedder: Embedder
) -> tuple[Memory, list[Label]]:
    """Cut transcripts into passages of five turns, none over the end of a session.

    A question wants the passages that hold its evidence; conversations are groups.
    """
    memory, labels = Memory(embedder=embedder), list[Label]()
    for talk in conversations:
        holder, texts = list[int](), list[list[str]]()
        for at, turn in enumerate(talk.turns):
            if at == 0 or talk.turns[at - 1].session != turn.session or len(texts[-1]) == TURNS:
                texts.append([])
            texts[-1].append(f"{turn.speaker}: {turn.text}")
            holder.append(len(texts) - 1)
        ids = _remembered(memory, ["\n".join(lines) for lines in texts], talk.name)
        labels += [
            Label(
                query=one.text,
                gold=frozenset(ids[holder[at]] for at in one.gold),
                group=talk.name,
                namespace=talk.name,
            )
            for one in talk.asked
            if one.gold and one.category != 5
        ]
    return memory, labels


def of_articles(folder: Path, embedder: Embedder) -> tuple[Memory, list[Label]]:
    """HotpotQA's passages without their titles as metadata, and without links."""
    passages = json.loads((folder / "hotpotqa_train_corpus.json").read_text())
    questions = json.loads((folder / "hotpotqa_train.json").read_text())
    memory = Memory(embedder=embedder)
    texts = [f"{title}. {''.join(sentences)}" for title, sentences in passages.items()]
    ids = dict(zip(passages, _remembered(memory, texts, ""), strict=True))
    labels = [
        Label(query=one["question"], gold=frozenset(ids[t] for t, _ in one["supporting_facts"]))
        for one in questions
    ]
    return memory, labels


def _remembered(memory: Memory, texts: Sequence[str], namespace: str) -> list[int]:
    # Each a session of its own, so that the windows of the baselines reach over none.
    events = [
        Event(timestamp=0, text=text, namespace=namespace, metadata={"session": f"{at}"})
        for at, text in enumerate(texts)
    ]
    ids: list[int] = memory.add_many(events, again=True).tolist()
    return ids
