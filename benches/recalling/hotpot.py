"""HotpotQA: questions that two passages answer together, and 994 passages to find them among."""

from __future__ import annotations

import json
from pathlib import Path

from cvx.embed import Embedder
from cvx.evaluation.labels import Label
from cvx.memory import Memory
from cvx.recall.ranking_signals import MENTIONS, Titles
from cvx.types import Event


def remembered(folder: Path, embedder: Embedder) -> tuple[Memory, list[Label], int]:
    """Put every passage into a memory, linked by what it mentions.

    Returns
    -------
    Memory
        A passage an event, each a session of its own; a link leads from a passage to those whose
        titles occur in it, as it is written.
    list of Label
        The questions; groups are the questions themselves, categories their types.
    int
        Links.
    """
    passages = json.loads((folder / "hotpotqa_train_corpus.json").read_text())
    questions = json.loads((folder / "hotpotqa_train.json").read_text())
    memory = Memory(embedder=embedder)
    memory.admin.declare_edge_kind(MENTIONS)
    texts = {title: f"{title}. {''.join(sentences)}" for title, sentences in passages.items()}
    events = [
        Event(timestamp=0, text=text, metadata={"title": title, "session": title})
        for title, text in texts.items()
    ]
    ids = dict(zip(texts, memory.add_many(events).tolist(), strict=True))
    links = 0
    titles = Titles()
    for title, event in ids.items():
        titles.add(event, title)
    for title, text in texts.items():
        for mention in titles.mentioned(text):
            if mention.about != ids[title]:
                memory.link(ids[title], mention.about, MENTIONS, why=mention.title)
                links += 1
    labels = [
        Label(
            query=one["question"],
            gold=frozenset(ids[title] for title, _ in one["supporting_facts"]),
            category=one["type"],
        )
        for one in questions
    ]
    return memory, labels, links
