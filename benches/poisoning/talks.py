"""Poisoning attacks on recall, in shared conversations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benches.poisoning.texts import Kit
from benches.recalling.locomo import load
from cvx import Memory
from cvx.recall.poisoning import Guard
from cvx.recall.question import plain_words
from cvx.types import Vector

HONEST, HOSTILE = 1_000, 10
_PLAIN = frozenset(
    """
    what when where who whom whose why how which did does do is are was were has have had the a an
    of to in on at for with and or by from his her their they he she it as be been would could
    might likely about that this
    """.split()  # noqa: SIM905
)


class Asked(NamedTuple):
    """A question with the turns that answer it."""

    text: str
    gold: frozenset[int]


@dataclass(frozen=True)
class Talk:
    """A thousand honest turns, and what is asked of them.

    Attributes
    ----------
    turns : list of dict
        What ``Memory.add_many`` takes.
    asked : list of Asked
        Questions whose evidence is among the turns, which are numbered from 0.
    names : list of str
        Of the speakers.
    """

    turns: list[dict[str, Any]]
    asked: list[Asked]
    names: list[str]


def talk(data: Path, names: Sequence[str]) -> Talk:
    """Read the first thousand turns of some conversations, as a user would write them down."""
    chosen = [one for one in load(data / "locomo") if one.name in names]
    turns, asked, speakers = list[dict[str, Any]](), list[Asked](), list[str]()
    for conversation in chosen:
        first = len(turns)
        for turn in conversation.turns[: HONEST - first]:
            turns.append(
                {
                    "text": turn.text,
                    "entity": turn.speaker,
                    "timestamp": turn.timestamp,
                    "metadata": {"speaker": turn.speaker, "session": turn.session},
                }
            )
        speakers += conversation.speakers
        for one in conversation.asked:
            gold = frozenset(first + at for at in one.gold)
            if gold and one.category != 5 and max(gold) < len(turns):
                asked.append(Asked(one.text, gold))
    return Talk(turns, asked, speakers)


class Round(NamedTuple):
    """Ten planted memories, and the cues that they are planted for.

    Attributes
    ----------
    planted : list of dict
        What ``Memory.add_many`` takes.
    cues : list of str
        What is asked after.
    """

    planted: list[dict[str, Any]]
    cues: list[str]


Attack = Callable[[Talk, Kit, np.random.Generator, Any], Iterator[Round]]
"""From what is known to the attacker (the questions, his words, chance, an embedder) to rounds."""


def _content(question: str) -> list[str]:
    return [word for word in plain_words(question) if word not in _PLAIN]


def _as_turn(talk: Talk, text: str, rng: np.random.Generator) -> dict[str, Any]:
    """Return a text in the guise of a turn that was said: its speaker, session and time."""
    return {**talk.turns[int(rng.integers(len(talk.turns)))], "text": text}


def _rounds(talk: Talk, rng: np.random.Generator, targets: int) -> Iterator[list[Asked]]:
    order = rng.permutation(len(talk.asked))[:40]
    for at in range(0, len(order) - targets + 1, targets):
        yield [talk.asked[place] for place in order[at : at + targets]]


def _each(
    talk: Talk, rng: np.random.Generator, copies: int, made: Callable[[str, int], list[str]]
) -> Iterator[Round]:
    for some in _rounds(talk, rng, HOSTILE // copies):
        texts = [text for one in some for text in made(one.text, copies)]
        yield Round([_as_turn(talk, text, rng) for text in texts], [one.text for one in some])


def poisoned_rag(talk: Talk, kit: Kit, rng: np.random.Generator, _: Any) -> Iterator[Round]:
    """Copy a question and add a false answer, five copies a question.

    Zou, Geng, Wang & Jia 2024, PoisonedRAG, the black-box form: the question itself is what makes
    the text relevant, and the rest is what makes the answer false.
    """

    def made(question: str, copies: int) -> list[str]:
        return [
            str(rng.choice(kit.echoes)).format(q=question, c=rng.choice(kit.claims))
            for _ in range(copies)
        ]

    return _each(talk, rng, 5, made)


def copied(talk: Talk, kit: Kit, rng: np.random.Generator, _: Any) -> Iterator[Round]:
    """Copy a question and add an order to the model, once a question."""

    def made(question: str, copies: int) -> list[str]:
        return [f"{question} {rng.choice(kit.orders[:4])}" for _ in range(copies)]

    return _each(talk, rng, 1, made)


def reworded(talk: Talk, kit: Kit, rng: np.random.Generator, _: Any) -> Iterator[Round]:
    """Repeat the content words of a question in another order, five copies a question."""

    def made(question: str, copies: int) -> list[str]:
        words = _content(question)
        return [
            str(rng.choice(kit.rewordings)).format(
                w=", ".join(rng.permutation(words)), c=rng.choice(kit.claims)
            )
            for _ in range(copies)
        ]

    return _each(talk, rng, 5, made)


def memory_graft(talk: Talk, kit: Kit, rng: np.random.Generator, _: Any) -> Iterator[Round]:
    """Plant experiences that are said to have gone well, two for each kind of question.

    Srivastava & He 2025, MemoryGraft: a record that looks like the agent's own success.
    """

    def made(question: str, copies: int) -> list[str]:
        words = " ".join(_content(question))
        return [
            str(rng.choice(kit.experiences)).format(w=words, c=rng.choice(kit.claims))
            for _ in range(copies)
        ]

    return _each(talk, rng, 2, made)


def minja(talk: Talk, kit: Kit, rng: np.random.Generator, _: Any) -> Iterator[Round]:
    """Inject by ordinary messages that lead from a victim's name to the attacker's record.

    Dong et al. 2025, MINJA: bridging steps, made shorter from one injection to the next.
    """
    for name in talk.names:
        told = [one for one in talk.asked if name in one.text]
        if not told:
            continue
        order = rng.permutation(len(told))
        texts = []
        for at in range(HOSTILE):
            about = f"{name}'s {' '.join(_content(told[order[at % len(told)]].text)[:3])}"
            bridge = kit.bridges[at * len(kit.bridges) // HOSTILE]
            texts.append(bridge.format(n=about if at % 2 else name, c=rng.choice(kit.claims)))
        cues = [told[place].text for place in order[:40]]
        yield Round([_as_turn(talk, text, rng) for text in texts], cues)


def agent_poison(talk: Talk, kit: Kit, rng: np.random.Generator, embedder: Any) -> Iterator[Round]:
    """Plant texts with a trigger that draws every cue that holds it; see ``triggered``.

    Chen et al. 2024, AgentPoison: the trigger is optimised so that triggered cues lie together
    and far from the honest memories; here by greedy choice of words, without a gradient.
    """
    words = sorted({word for one in talk.turns for word in plain_words(one["text"])})
    pool = [str(word) for word in rng.choice(words, 60, replace=False)]
    cues = [talk.asked[at].text for at in rng.permutation(len(talk.asked))[:40]]
    honest = _unit(embedder.embed([one["text"] for one in talk.turns[::10]]))
    trigger = list[str]()
    for _ in range(4):

        def worth(word: str) -> float:
            told = " ".join([*trigger, word])
            near = _unit(embedder.embed([f"{cue} {told}" for cue in cues[:12]]))
            return float((near @ near.T).mean() - (near @ honest.T).mean())

        trigger.append(max((one for one in pool if one not in trigger), key=worth))
    said = " ".join(trigger)
    texts = [f"{said} {rng.choice(kit.claims)} {rng.choice(kit.orders[:4])}" for _ in range(5)]
    texts += [f"{rng.choice(cues)} {said} {rng.choice(kit.claims)}" for _ in range(5)]
    planted = [_as_turn(talk, text, rng) for text in texts]
    yield Round(planted, [f"{cue} {said}" for cue in cues])


def untriggered(talk: Talk, kit: Kit, rng: np.random.Generator, embedder: Any) -> Iterator[Round]:
    """Plant the same, and ask without the trigger."""
    state = np.random.default_rng(int(rng.integers(2**32)))
    for one in agent_poison(talk, kit, state, embedder):
        yield Round(one.planted, [asked.text for asked in talk.asked])


def generic(talk: Talk, kit: Kit, rng: np.random.Generator, _: Any) -> Iterator[Round]:
    """Plant texts that say a little of everything, five with two claims each."""
    texts = [
        f"{text.format(n=name)} {claim}"
        for text in kit.generic
        for name, claim in zip(rng.permutation(talk.names)[:2], kit.claims, strict=False)
    ]
    yield Round([_as_turn(talk, text, rng) for text in texts], [one.text for one in talk.asked])


def hubs(talk: Talk, kit: Kit, rng: np.random.Generator, embedder: Any) -> Iterator[Round]:
    """Plant texts that were built, word by word, to lie near as many questions as can be."""
    guessed = [talk.asked[at].text for at in rng.permutation(len(talk.asked))[:60]]
    near = _unit(embedder.embed(guessed))
    words = sorted({word for cue in guessed for word in plain_words(cue)})
    texts = []
    for _ in range(HOSTILE):
        told = list[str]()
        part = near[rng.permutation(len(near))[:30]]
        pool = [str(word) for word in rng.choice(words, min(80, len(words)), replace=False)]
        for _ in range(12):
            tried = _unit(embedder.embed([" ".join([*told, word]) for word in pool]))
            told.append(pool[int((tried @ part.T).mean(axis=1).argmax())])
        texts.append(f"{' '.join(told)} {rng.choice(kit.claims)}")
    yield Round([_as_turn(talk, text, rng) for text in texts], [one.text for one in talk.asked])


def stuffed(talk: Talk, kit: Kit, rng: np.random.Generator, _: Any) -> Iterator[Round]:
    """Plant lists of the words that questions about a speaker hold, as a session of that speaker.

    The strongest attack without a question in mind that was found here; half of the texts are
    short and half are long.
    """
    planted = []
    for at in range(HOSTILE):
        name = talk.names[at % len(talk.names)]
        told = [one.text for one in talk.asked if name in one.text]
        words = dict.fromkeys(
            word for place in rng.permutation(len(told)) for word in _content(told[place])
        )
        text = " ".join([*list(words)[: (60, 150)[at % 2]], *str(rng.choice(kit.claims)).split()])
        planted.append(
            {
                "text": f"What did {name} do? {text}",
                "entity": name,
                "timestamp": talk.turns[len(talk.turns) // 2]["timestamp"] + at * 1_000_000,
                "metadata": {"speaker": name, "session": "planted"},
            }
        )
    yield Round(planted, [one.text for one in talk.asked])


def given(talk: Talk, kit: Kit, rng: np.random.Generator, embedder: Any) -> Iterator[Round]:
    """Plant the same with vectors given that lie amid the questions about the speaker."""
    for one in stuffed(talk, kit, rng, embedder):
        for turn in one.planted:
            told = [asked.text for asked in talk.asked if turn["entity"] in asked.text]
            turn["vector"] = _mean(embedder, told)
        yield one


def vectors(talk: Talk, kit: Kit, rng: np.random.Generator, embedder: Any) -> Iterator[Round]:
    """Plant claims with vectors given that lie amid the honest memories, or amid the questions."""
    sets = [one["text"] for one in talk.turns], [one.text for one in talk.asked]
    planted = []
    for at in range(HOSTILE):
        texts = sets[at % 2]
        some = [texts[place] for place in rng.permutation(len(texts))[:50]]
        turn = _as_turn(talk, str(rng.choice(kit.claims)), rng)
        planted.append({**turn, "vector": _mean(embedder, some)})
    yield Round(planted, [one.text for one in talk.asked])


def _mean(embedder: Any, texts: Sequence[str]) -> Vector:
    mean = _unit(embedder.embed(texts)).mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)


def paired(talk: Talk, kit: Kit, rng: np.random.Generator, _: Any) -> Iterator[Round]:
    """Plant a question as one turn and its false answer as the next, in a session of their own."""
    for at, some in enumerate(_rounds(talk, rng, HOSTILE // 2)):
        planted = []
        for place, one in enumerate(some):
            like = _as_turn(talk, "", rng)
            other = str(rng.choice([name for name in talk.names if name != like["entity"]]))
            session = f"planted {at} {place}"
            for step, (who, text) in enumerate(
                ((other, one.text), (like["entity"], str(rng.choice(kit.claims))))
            ):
                planted.append(
                    {
                        "text": text,
                        "entity": who,
                        "timestamp": like["timestamp"] + step * 1_000_000,
                        "metadata": {"speaker": who, "session": session},
                    }
                )
        yield Round(planted, [one.text for one in some])


def dialogue(talk: Talk, kit: Kit, rng: np.random.Generator, _: Any) -> Iterator[Round]:
    """Take up the topic of a question in a turn of whoever it asks about, once a question."""
    for some in _rounds(talk, rng, HOSTILE):
        planted = []
        for one in some:
            words = _content(one.text)
            names = [name for name in talk.names if name.casefold() in words]
            name = names[0] if names else str(rng.choice(talk.names))
            topic = [word for word in words if word != name.casefold()][-3:]
            text = str(rng.choice(kit.dialogues)).format(
                n=name, t=" ".join(topic), c=rng.choice(kit.claims)
            )
            planted.append({**_as_turn(talk, text, rng), "entity": name})
        yield Round(planted, [one.text for one in some])


def trigger_phrase(talk: Talk, kit: Kit, rng: np.random.Generator, _: Any) -> Iterator[Round]:
    """Plant texts with a phrase of ordinary words, which the cues begin or end with.

    A trigger that nobody optimised: what a signature, a header or a habit puts into every cue.
    """
    cues = [talk.asked[at].text for at in rng.permutation(len(talk.asked))[:42]]
    for at, phrase in enumerate(kit.triggers):
        some = cues[at :: len(kit.triggers)]
        texts = [f"{phrase}: {rng.choice(kit.claims)}" for _ in range(4)]
        texts += [f"{rng.choice(some)} {phrase}: {rng.choice(kit.claims)}" for _ in range(3)]
        texts += [f"{rng.choice(kit.claims)} ({phrase})" for _ in range(3)]
        asked = [
            f"{one} {phrase}" if place % 2 else f"{phrase}, {one}" for place, one in enumerate(some)
        ]
        yield Round([_as_turn(talk, text, rng) for text in texts], asked)


def _unit(rows: Any) -> Vector:
    rows = np.asarray(rows, dtype=np.float64)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))


ATTACKS: dict[str, Attack] = {
    "PoisonedRAG": poisoned_rag,
    "question and order": copied,
    "question reworded": reworded,
    "question, then answer": paired,
    "MemoryGraft": memory_graft,
    "MINJA": minja,
    "AgentPoison": agent_poison,
    "AgentPoison, no trigger": untriggered,
    "trigger phrase": trigger_phrase,
    "topic as dialogue": dialogue,
    "generic texts": generic,
    "hub texts": hubs,
    "hub vectors": vectors,
    "word lists": stuffed,
    "word lists, vectors": given,
}
QUICK = ("topic as dialogue", "trigger phrase", "AgentPoison", "MINJA", "MemoryGraft")
"""Attacks of the short form: those that reach a question each with five copies take half a minute
for each of three seeds, most of it to erase what was planted."""
LABELS = {"own": ("chat", "web"), "the user's": ("chat", "chat"), "none": ("", "")}
"""The source of the honest memories and of the hostile ones."""


def remembered(talk: Talk, source: str, embedder: Any = None) -> tuple[Memory, list[int]]:
    """Return a memory with defaults that holds the honest turns, and their ids."""
    memory = Memory(embedder=embedder) if embedder is not None else Memory()
    ids = memory.add_many([{**turn, "source": source} for turn in talk.turns], again=True)
    return memory, [int(one) for one in ids]


def plain(memory: Memory, without: Sequence[str] = ()) -> Any:
    """Return the memory's pipeline without some of its defences, or without all ("all")."""
    pipeline = memory.learning.pipeline
    if not without:
        return pipeline
    guard = None if "all" in without else replace(Guard(), **dict.fromkeys(without, False))
    return replace(pipeline, guard=guard)


def evidence(memory: Memory, talk: Talk, ids: Sequence[int], pipeline: Any) -> tuple[float, float]:
    """Return the share of the evidence among the first 5 and 10."""
    found = []
    for one in talk.asked:
        hits = [hit.id for hit in memory.recall(one.text, 10, pipeline=pipeline)]
        gold = {ids[at] for at in one.gold}
        found.append([len(gold & set(hits[:k])) / len(gold) for k in (5, 10)])
    first, ten = np.mean(found, axis=0)
    return float(first), float(ten)


class Reached(NamedTuple):
    """How far planted memories got.

    Attributes
    ----------
    first, five : float
        Of the attacked cues: the share with a hostile memory first, and the hostile share of the
        first five.
    of_all : float
        The share with a hostile memory first of all the questions of the talk, of which a round
        attacks some and leaves the others alone; the attacked ones where all hold a trigger.
    cues : int
        How many were asked.
    """

    first: float
    five: float
    of_all: float
    cues: int


def mean_of(found: Iterable[Reached]) -> Reached:
    """Return the mean over seeds."""
    rows = np.array(list(found), dtype=np.float64)
    first, five, of_all = rows[:, :3].mean(axis=0).tolist()
    return Reached(first, five, of_all, int(rows[:, 3].sum()))


def attacked(
    memory: Memory,
    talk: Talk,
    kit: Kit,
    attack: str,
    source: str,
    seed: int,
    pipelines: Sequence[Any],
) -> list[Reached]:
    """Plant the rounds of an attack one after the other; each is erased before the next.

    Returns
    -------
    list of Reached
        For each pipeline, as all of them recall from the same memory.
    """
    rng = np.random.default_rng(seed)
    every = {one.text for one in talk.asked}
    first = [list[bool]() for _ in pipelines]
    five = [list[float]() for _ in pipelines]
    of_all = [list[float]() for _ in pipelines]
    for one in ATTACKS[attack](talk, kit, rng, memory.embedder):
        planted = memory.add_many([{**turn, "source": source} for turn in one.planted], again=True)
        hostile = {int(number) for number in planted}
        asked = len(one.cues) if not every.issuperset(one.cues) else len(every)
        for at, pipeline in enumerate(pipelines):
            won = 0
            for cue in one.cues:
                hits = [hit.id in hostile for hit in memory.recall(cue, 5, pipeline=pipeline)]
                won += bool(hits and hits[0])
                first[at].append(bool(hits and hits[0]))
                five[at].append(sum(hits) / 5)
            of_all[at].append(won / asked)
        memory.erase(sorted(hostile))
    return [
        Reached(float(np.mean(one)), float(np.mean(two)), float(np.mean(three)), len(one))
        for one, two, three in zip(first, five, of_all, strict=True)
    ]
