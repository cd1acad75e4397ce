"""Causes in news text: EventStoryLine v1.5, sixteen topics of CVX_DATA.

For an event with annotated causes, the other events of its document are ranked. Hidden from every
rule: all links of the query's own document. Seen: the links of the other documents of its topic.
The ranker's weights are learned on the fifteen other topics, for each topic in turn. Which evidence
to keep, and the strength of the regularisation, were chosen on topics 1, 4, 7, 12, 14, 18, 20 and
23 alone; the other eight are printed apart.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from benches.causal.antecedents import candidates_of
from benches.causal.cause_ranker import CauseRanker
from benches.causal.passages import KnownLinks, Passage
from benches.causal.report import Figure, Report
from benches.causal.scenarios import Rows
from cvx.embed import LexicalEmbedder

CHOSEN_ON = frozenset(("1", "4", "7", "12", "14", "18", "20", "23"))
Embed: TypeAlias = Callable[[Sequence[str]], Rows]
Ranking: TypeAlias = Callable[[Passage, int, bool], list[int]]


class Setting(NamedTuple):
    """One way to ask.

    Attributes
    ----------
    name : str
        What the tables call it.
    other_sentence : bool
        Count only causes in another sentence than the effect's.
    leave_own_out : bool
        Leave the effect's own sentence out of the candidates.
    must, aim : tuple of float
        Recall@5 and @10.
    """

    name: str
    other_sentence: bool
    leave_own_out: bool
    must: tuple[float, float]
    aim: tuple[float, float] | None = None


SETTINGS = (
    Setting("all effects", False, False, (0.89, 0.97)),
    Setting("causes in another sentence", True, False, (0.64, 0.88), (0.70, 0.91)),
    Setting("the same, own sentence left out", True, True, (0.82, 0.94)),
)


def read(folder: Path, embed: Embed) -> list[Passage]:
    """Read the documents.

    Parameters
    ----------
    folder : Path
        ``eventstoryline`` of CVX_DATA.
    embed : callable
        Embeds the words of the events.

    Returns
    -------
    list of Passage
        Links point from cause to effect: PRECONDITION as annotated, FALLING_ACTION turned round;
        pairs annotated both ways are dropped.
    """
    told = [_parsed(path) for path in sorted(folder.glob("*/*.xml"))]
    words = sorted({word for events, _, _ in told for _, _, word in events})
    vectors = dict(zip(words, embed(words), strict=True))
    return [
        Passage(
            words=tuple(word for _, _, word in events),
            positions=np.array([position for position, _, _ in events], np.int64),
            sections=np.array([sentence for _, sentence, _ in events], np.int64),
            vectors=np.stack([vectors[word] for _, _, word in events]),
            links=links,
            topic=topic,
        )
        for events, links, topic in told
        if events
    ]


def told_in_sentences(path: Path) -> tuple[list[str], frozenset[tuple[int, int]]]:
    """Return the sentences of a document that tell of events, and which led to which."""
    events, links, _ = _parsed(path)
    words: dict[int, list[str]] = {}
    for token in ET.parse(path).getroot().iter("token"):
        words.setdefault(int(token.get("sentence", "0")), []).append(token.text or "")
    place = {sentence: at for at, sentence in enumerate(sorted({one[1] for one in events}))}
    texts = [" ".join(words[sentence]) for sentence in place]
    ends = ((place[events[a][1]], place[events[b][1]]) for a, b in links)
    return texts, frozenset((a, b) for a, b in ends if a != b)


def _parsed(path: Path) -> tuple[list[tuple[int, int, str]], tuple[tuple[int, int], ...], str]:
    root = ET.parse(path).getroot()
    tokens = {
        token.get("t_id"): (at, int(token.get("sentence", "0")), token.text or "")
        for at, token in enumerate(root.iter("token"))
    }
    events = {}
    for mark in root.iterfind("Markables/*"):
        anchors = [tokens[anchor.get("t_id")] for anchor in mark.iter("token_anchor")]
        if "ACTION" in mark.tag and anchors:
            words = " ".join(word for _, _, word in anchors)
            events[mark.get("m_id")] = (anchors[0][0], anchors[0][1], words)
    order = sorted(events, key=lambda mark: events[mark])
    place = {mark: at for at, mark in enumerate(order)}
    pairs = set()
    for link in root.iter("PLOT_LINK"):
        source, target = (link.find(end) for end in ("source", "target"))
        if source is None or target is None:
            continue
        a, b = place[source.get("m_id")], place[target.get("m_id")]
        kind = link.get("relType")
        if kind in ("PRECONDITION", "FALLING_ACTION"):
            pairs.add((a, b) if kind == "PRECONDITION" else (b, a))
    links = tuple(sorted((a, b) for a, b in pairs if (b, a) not in pairs))
    return [events[mark] for mark in order], links, path.parent.name


def run(report: Report, folder: Path, embed: Embed | None) -> None:
    """Measure adjacency, cosine and the ranker, with MiniLM and with words alone."""
    encoders: list[tuple[str, Embed]] = [("lexical", LexicalEmbedder().embed)]
    if embed is not None:
        encoders.append(("MiniLM", embed))
    for name, encode in encoders:
        passages = read(folder, encode)
        ranker = _ranked_across_topics(passages)
        rules = {"adjacency": _adjacent, f"cosine, {name}": _cosine, f"ranker, {name}": ranker}
        for setting in SETTINGS:
            measured = "learned on other topics, measured on all sixteen"
            report.section(f"EventStoryLine, {setting.name}, {name}", measured)
            for rule, ranking in rules.items():
                must = setting.must if rule == "ranker, MiniLM" else (None, None)
                found = _recall(ranking, passages, setting)
                report.row(rule, *_figures(found, must, setting.aim))
            apart = [one for one in passages if one.topic not in CHOSEN_ON]
            for rule in ("adjacency", f"ranker, {name}"):
                found = _recall(rules[rule], apart, setting)
                report.row(f"{rule}, the eight untouched", *_figures(found, (None, None), None))


def _figures(
    found: tuple[float, float],
    must: tuple[float | None, float | None],
    aim: tuple[float, float] | None,
) -> list[Figure]:
    aims = aim if aim and must[0] is not None else (None, None)
    return [Figure(f"@{k}", found[at], must[at], aims[at]) for at, k in enumerate((5, 10))]


def _recall(ranking: Ranking, passages: Sequence[Passage], setting: Setting) -> tuple[float, float]:
    rows = []
    for passage in passages:
        for effect in sorted({effect for _, effect in passage.links}):
            causes = passage.causes_of(effect)
            if setting.other_sentence:
                own = passage.sections[effect]
                causes = frozenset(at for at in causes if passage.sections[at] != own)
            if causes:
                order = ranking(passage, effect, setting.leave_own_out)
                rows.append([len(causes & set(order[:k])) / len(causes) for k in (5, 10)])
    at5, at10 = np.mean(rows, axis=0).tolist()
    return at5, at10


def _adjacent(passage: Passage, effect: int, leave_own_out: bool) -> list[int]:
    distance = np.abs(passage.positions - passage.positions[effect])
    candidates = candidates_of(passage, effect, other_sections_only=leave_own_out)
    return sorted(candidates, key=lambda at: int(distance[at]))


def _cosine(passage: Passage, effect: int, leave_own_out: bool) -> list[int]:
    cosines = passage.vectors @ passage.vectors[effect]
    candidates = candidates_of(passage, effect, other_sections_only=leave_own_out)
    return sorted(candidates, key=lambda at: -float(cosines[at]))


def _ranked_across_topics(passages: Sequence[Passage]) -> Ranking:
    ranker_of = {
        topic: CauseRanker.fit([one for one in passages if one.topic != topic])
        for topic in sorted({one.topic for one in passages})
    }
    known = {
        id(one): KnownLinks(
            other for other in passages if other is not one and other.topic == one.topic
        )
        for one in passages
    }

    def ranking(passage: Passage, effect: int, leave_own_out: bool) -> list[int]:
        ranked = ranker_of[passage.topic].rank(
            passage, effect, known[id(passage)], other_sections_only=leave_own_out
        )
        return [one.event for one in ranked]

    return ranking
