"""Fits weights and a floor to some groups of labelled questions; the others measure.

The weights are those of a logistic regression of "answers the question" on the columns of the
candidates, over the questions of the training groups. Its strength of regularisation is chosen by
leaving out one training group after the other. What comes out are plain floats for a `Weighting`.

The floor is fitted to questions that a memory should answer with nothing: of fields it never heard
of, and nonsense. They are made from small tables of terms, seeded, so that everyone measures the
same ones. The fields fall into two halves that share no term: a floor is calibrated on the one and
measured on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from cvx.arguments import among, whole
from cvx.errors import InvalidInputError
from cvx.evaluation.labels import Label, groups_of
from cvx.evaluation.metrics import (
    AT,
    Answer,
    Ranker,
    Report,
    as_json,
    baselines,
    cue_of,
    measure,
    recall_at,
    recalling,
    resolved,
    table,
    where_of,
)
from cvx.recall import Pipeline
from cvx.recall.floor import Answerable, calibrated, floor_features
from cvx.recall.ranking_signals import COLUMNS
from cvx.scoring.logistic import maximum_likelihood

if TYPE_CHECKING:
    from cvx.memory import Memory

STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Values of scikit-learn's C that are tried; smaller is more cautious."""
_DECIMALS = 4
_AT = (5, 10, 20)


class Table(NamedTuple):
    """The candidate table of one question.

    Attributes
    ----------
    columns : ndarray of shape (n, m), float64
        Scaled as they are weighed.
    events : ndarray of shape (n,), int64
        Their ids.
    gold : frozenset of int
        The events that answer.
    names : tuple of str
        Of the columns.
    """

    columns: npt.NDArray[np.float64]
    events: npt.NDArray[np.int64]
    gold: frozenset[int]
    names: tuple[str, ...] = COLUMNS


@dataclass(frozen=True)
class FittedWeights:
    """What was fitted.

    Parameters
    ----------
    weights : mapping of str to float
        By column, for ``default_pipeline(weights)``, or for the formula that was fitted.
    strength : float
        The chosen one of ``STRENGTHS``.
    trained, measured : tuple of str
        Groups of either part.
    """

    weights: Mapping[str, float]
    strength: float
    trained: tuple[str, ...]
    measured: tuple[str, ...]


@dataclass(frozen=True)
class Tuning:
    """What tuning a memory would bring; `apply` lets it recall so.

    Parameters
    ----------
    before, after : Report
        Of all questions; after: each by weights that were fitted to others.
    weights : mapping of str to float
        By column, fitted to all of them.
    keep : callable
        What ``apply`` hands the weights to.
    """

    before: Report
    after: Report
    weights: Mapping[str, float]
    keep: Callable[[Mapping[str, float]], None] = field(repr=False, compare=False)

    def apply(self) -> None:
        """Let the memory recall with these weights from now on, after it is opened again too."""
        self.keep(self.weights)

    def __str__(self) -> str:
        return table([self.before, self.after])


def cross_validated(
    memory: Memory,
    labels: Sequence[Label],
    gold: Sequence[frozenset[int]],
    folds: int = 5,
    *,
    seed: int = 0,
) -> Tuning:
    """Fit weights to questions, and measure them on those that they were not fitted to.

    Parameters
    ----------
    memory : cvx.Memory
        What is asked. Nothing in it changes.
    labels : sequence of Label
        The questions; those of one group are in one fold.
    gold : sequence of frozenset of int
        The events that answer each.
    folds : int, default 5
        Parts, at least 2 and at most as many as there are groups.
    seed : int, default 0
        Of the parts and the intervals.

    Raises
    ------
    InvalidInputError
        Fewer groups than folds; no question has its answer among the candidates.
    """
    groups = groups_of(labels)
    known = list(dict.fromkeys(groups))
    if len(known) < 2:
        raise InvalidInputError(
            "tuning needs at least 2 groups of questions, one to measure what the other fits; "
            f"there is {len(known) or 'none'}: give more questions"
        )
    if not 2 <= folds <= len(known):
        raise InvalidInputError(
            f"folds is {folds}: give 2 to {len(known)}, as many as there are groups of questions"
        )
    plan = memory.learning.weighed()
    found = tables(memory, plan, labels, gold)
    order = [known[at] for at in np.random.default_rng(seed).permutation(len(known)).tolist()]
    rankers: dict[str, Ranker] = {}
    for part in (order[at::folds] for at in range(folds)):
        to = [group for group in known if group not in set(part)]
        weights = _sized(tune(found, labels, to), plan).weights
        rankers |= dict.fromkeys(part, recalling(memory, memory.learning.weighed(weights)))
    group_of = {id(label): group for label, group in zip(labels, groups, strict=True)}

    def tuned(label: Label, k: int) -> Answer:
        return rankers[group_of[id(label)]](label, k)

    before = measure("before", recalling(memory), labels, gold, seed=seed)
    after = measure("after", tuned, labels, gold, seed=seed)
    return Tuning(before, after, _sized(tune(found, labels, known), plan).weights, lambda _: None)


def _sized(fitted: FittedWeights, plan: Pipeline) -> FittedWeights:
    """Return weights of the size of those of a pipeline, which its floor of scores is for."""
    size = sum(map(abs, plan.weighting.weights.values()))
    whole = sum(map(abs, fitted.weights.values())) or 1.0
    weights = {name: round(size * one / whole, _DECIMALS) for name, one in fitted.weights.items()}
    return replace(fitted, weights=weights)


def split(
    labels: Sequence[Label], train: Sequence[str] | None = None, *, seed: int = 0
) -> tuple[list[str], list[str]]:
    """Divide the groups of labels into a training and a measuring part.

    Parameters
    ----------
    labels : sequence of Label
        The questions.
    train : sequence of str, optional
        Groups to train on; by default a seeded half of them.
    seed : int, default 0
        Of the half.

    Raises
    ------
    InvalidInputError
        A group that there is not, or nothing left for one of the parts.
    """
    groups = sorted(set(groups_of(labels)))
    if train is None:
        order = np.random.default_rng(seed).permutation(len(groups))
        chosen = {groups[at] for at in order[: len(groups) // 2].tolist()}
    else:
        chosen = set(train)
        unknown = sorted(chosen - set(groups))
        if unknown:
            raise InvalidInputError(f"there is no group {unknown[0]!r}: there are {groups}")
    rest = [group for group in groups if group not in chosen]
    if not chosen or not rest:
        raise InvalidInputError(
            f"{len(chosen)} groups to train on, {len(rest)} to measure: give labels of at least "
            "two groups, and leave one for measuring"
        )
    return sorted(chosen), rest


def tables(
    memory: Memory,
    pipeline: Pipeline,
    labels: Sequence[Label],
    gold: Sequence[frozenset[int]],
) -> list[Table]:
    """Return the candidates of each question, with the columns that can be weighed.

    Those of the signals, or what another formula adds up.
    """
    own = tuple(pipeline.weighting.weights)
    names, out = COLUMNS if {*own} <= {*COLUMNS} else own, []
    for label, wanted in zip(labels, gold, strict=True):
        found = memory.learning.candidates(
            cue_of(label),
            max(_AT),
            namespace=label.namespace,
            where=where_of(label),
            pipeline=pipeline,
        )
        scaled = pipeline.fusion(found, names)
        columns = np.column_stack([np.nan_to_num(scaled[name]) for name in names])
        out.append(Table(columns, found.event_ids, wanted, names))
    return out


def tune(
    found: Sequence[Table],
    labels: Sequence[Label],
    train: Sequence[str],
    *,
    strengths: Sequence[float] = STRENGTHS,
) -> FittedWeights:
    """Fit weights to the questions of some groups.

    Parameters
    ----------
    found : sequence of Table
        From ``tables``; those of the other groups are not looked at.
    labels : sequence of Label
        The questions, in the same order.
    train : sequence of str
        Groups, from ``split``.
    strengths : sequence of float, default ``STRENGTHS``
        What is tried; with a single training group the middle one is taken.

    Returns
    -------
    FittedWeights

    Raises
    ------
    InvalidInputError
        No question of the training groups has gold among its candidates.
    """
    groups = groups_of(labels)
    chosen = set(train)
    parts: dict[str, list[Table]] = {}
    for one, group in zip(found, groups, strict=True):
        if group in chosen and len(one.events) and _gold(one).any():
            parts.setdefault(group, []).append(one)
    if not parts:
        raise InvalidInputError(
            f"none of the questions of {sorted(chosen)} has its answer among the candidates: "
            "label more of them"
        )
    strength = _best_strength(list(parts.values()), strengths)
    weights = _fit([one for part in parts.values() for one in part], strength)
    rest = tuple(group for group in dict.fromkeys(groups) if group not in chosen)
    named = dict(zip(found[0].names, np.round(weights, _DECIMALS).tolist(), strict=True))
    return FittedWeights(named, strength, tuple(sorted(chosen)), rest)


_fit_to = tune


def _best_strength(parts: Sequence[Sequence[Table]], strengths: Sequence[float]) -> float:
    """Leave out one group after the other, and take what finds most in those left out."""
    if len(parts) < 2:
        return strengths[len(strengths) // 2]
    found = []
    for strength in strengths:
        values = []
        for out, left_out in enumerate(parts):
            weights = _fit(
                [t for at, part in enumerate(parts) if at != out for t in part], strength
            )
            values += [_found(one, weights) for one in left_out]
        found.append(float(np.mean(values)))
    return strengths[int(np.argmax(found))]


def _found(table: Table, weights: npt.NDArray[np.float64]) -> float:
    """Return the mean of recall at 5, 10 and 20."""
    ranked = table.events[np.argsort(-(table.columns @ weights), kind="stable")].tolist()
    return float(np.mean([recall_at(ranked, table.gold, k) for k in _AT]))


def _fit(found: Sequence[Table], strength: float) -> npt.NDArray[np.float64]:
    rows = np.vstack([table.columns for table in found])
    answers = np.concatenate([_gold(table) for table in found])
    spread = rows.std(axis=0)
    spread[spread == 0.0] = 1.0
    standard = (rows - rows.mean(axis=0)) / spread
    coefficients, _ = maximum_likelihood(standard, answers, penalty=1.0 / strength)
    return np.asarray(coefficients / spread)


def _gold(table: Table) -> npt.NDArray[np.bool_]:
    return np.isin(table.events, list(table.gold))


_FIELDS: Mapping[str, tuple[str, ...]] = {
    "metallurgy": (
        "austenite", "martensite", "tempering furnace", "grain boundary", "quench oil",
        "eutectoid steel", "bainite", "annealing twin", "carbide precipitate", "cold rolling mill",
    ),
    "tax law": (
        "depreciation schedule", "withholding certificate", "transfer pricing", "loss carryforward",
        "capital allowance", "thin capitalisation", "input tax credit", "deferred liability",
        "fiscal residence", "excise bond",
    ),
    "orbital mechanics": (
        "Hohmann transfer", "apogee kick motor", "argument of periapsis", "Lagrange point",
        "inclination change", "gravity assist", "patched conic", "mean anomaly",
        "station keeping thruster", "retrograde burn",
    ),
    "network routing": (
        "autonomous system", "BGP prefix", "spanning tree", "multicast group", "ARP cache",
        "MPLS label", "route reflector", "VLAN trunk", "packet jitter", "subnet mask",
    ),
    "parasitology": (
        "liver fluke", "schizont", "oocyst wall", "intermediate host", "trypanosome",
        "cercaria", "proglottid", "tick vector", "merozoite", "anthelmintic dose",
    ),
    "typesetting": (
        "kerning pair", "hyphenation table", "widow line", "ligature glyph", "baseline grid",
        "optical margin", "small capitals", "leading value", "em dash", "bleed margin",
    ),
    "geology": (
        "basalt dyke", "thrust fault", "metamorphic aureole", "turbidite bed", "zircon grain",
        "glacial moraine", "unconformity", "feldspar cleavage", "karst sinkhole", "magma chamber",
    ),
    "chess endings": (
        "Lucena position", "opposite bishops", "zugzwang", "passed pawn", "Philidor defence",
        "rook lift", "triangulation", "fortress draw", "outside passer", "queenside majority",
    ),
    "organic chemistry": (
        "Grignard reagent", "chiral centre", "nucleophilic attack", "ester hydrolysis",
        "boronic acid", "protecting group", "tosylate", "enolate ion", "racemic mixture",
        "palladium catalyst",
    ),
    "medieval law": (
        "manorial court", "frankpledge", "writ of entry", "feudal relief", "wardship",
        "escheat", "tithing man", "assize roll", "villein tenure", "deodand",
    ),
}  # fmt: skip
_HALVES: Mapping[str, tuple[str, ...]] = {
    "calibrate": tuple(_FIELDS)[:5],
    "measure": tuple(_FIELDS)[5:],
}
_FORMS: Mapping[str, tuple[str, ...]] = {
    "calibrate": (
        "How does the {0} affect the {1}?",
        "When was the {0} first described?",
        "Why does a {0} need a {1}?",
        "What is the usual size of a {0}?",
        "Who introduced the {0} to replace the {1}?",
    ),
    "measure": (
        "What happens to the {0} once the {1} is removed?",
        "How many kinds of {0} are there?",
        "Where would one look for a {0}?",
        "Which {0} did they compare with the {1}?",
        "How long does it take to prepare a {0}?",
    ),
}
_SYLLABLES = "bra vok lun tis mer qua zel pod fim gra shu nix wol dri kep".split()  # noqa: SIM905
_NONSENSE_SHARE = 0.2


def foreign_cues(
    count: int, *, half: Literal["calibrate", "measure"] = "measure", seed: int = 0
) -> list[str]:
    """Generate questions that a memory cannot answer: a field's words, some invented.

    Parameters
    ----------
    count : int
        How many, all different; at least 1.
    half : {"calibrate", "measure"}, default "measure"
        Which fields and forms; the halves share none.
    seed : int, default 0
        The same seed gives the same questions.

    Raises
    ------
    InvalidInputError
        Less than one question, or no such half.

    Examples
    --------
    >>> foreign_cues(1, half="measure", seed=1)
    ['Which ester hydrolysis did they compare with the protecting group?']
    """
    whole(1)("count", count)
    among(*_HALVES)("half", half)
    rng = np.random.default_rng([seed, len(half)])
    out = dict[str, None]()
    while len(out) < count:
        terms = _FIELDS[str(rng.choice(_HALVES[half]))]
        if rng.random() < _NONSENSE_SHARE:
            terms = tuple(
                "".join(rng.choice(_SYLLABLES, rng.integers(2, 4), replace=False)) for _ in range(2)
            )
        first, second = (str(term) for term in rng.choice(terms, 2, replace=False))
        out[str(rng.choice(_FORMS[half])).format(first, second)] = None
    return list(out)


FOREIGN = 200


def evidence(
    memory: Memory, pipeline: Pipeline, labels: Sequence[Label]
) -> npt.NDArray[np.float64]:
    """Return the features that the floor is fitted on, of shape (n, 4), one row a question."""
    return np.array(
        [
            floor_features(
                memory.learning.candidates(
                    cue_of(label),
                    namespace=label.namespace,
                    where=where_of(label),
                    pipeline=pipeline,
                ).columns
            )
            for label in labels
        ]
    )


def calibrated_floor(
    memory: Memory,
    pipeline: Pipeline,
    labels: Sequence[Label],
    *,
    most_empty: float = 0.03,
    seed: int = 0,
) -> Answerable:
    """Fit a floor to questions that a memory answers, and to as many others as tell them apart.

    Parameters
    ----------
    memory : cvx.Memory
        Of the embedder that the floor is for.
    pipeline : Pipeline
        One that computes the signals, such as ``default_pipeline()``.
    labels : sequence of Label
        Questions with an answer; at least 10 of them have gold.
    most_empty : float, default 0.03
        Share of them that may come back empty.
    seed : int, default 0
        Of the 200 foreign questions, each asked in the namespace of one of the labels.

    Returns
    -------
    Answerable
        For ``default_pipeline(answerable=...)``.
    """
    asked = [label for label in labels if label.gold]
    return calibrated(
        evidence(memory, pipeline, asked),
        evidence(memory, pipeline, foreign_labels(asked, FOREIGN, half="calibrate", seed=seed)),
        most_empty=most_empty,
    )


def foreign_labels(
    labels: Sequence[Label], count: int, *, half: str = "measure", seed: int = 0
) -> list[Label]:
    """Return unanswerable questions as labels without gold events."""
    namespaces = list(dict.fromkeys(label.namespace for label in labels)) or [""]
    cues = foreign_cues(count, half="calibrate" if half == "calibrate" else "measure", seed=seed)
    return [
        Label(
            query=cue,
            gold=frozenset(),
            group="foreign",
            category="foreign",
            namespace=namespaces[at % len(namespaces)],
        )
        for at, cue in enumerate(cues)
    ]


@dataclass(frozen=True)
class Evaluation:
    """What one evaluation found.

    Parameters
    ----------
    measured : tuple of Report
        The baselines, the memory as it is, and with what was fitted; the floor upon the weights.
    tuned : FittedWeights, optional
        The weights, where they were fitted.
    answerable : Answerable, optional
        The floor, where it was calibrated.
    trained : tuple of str
        The groups that were fitted to and are not measured; empty where nothing was fitted.
    """

    measured: tuple[Report, ...]
    tuned: FittedWeights | None
    answerable: Answerable | None
    trained: tuple[str, ...]

    def fitted(self) -> dict[str, Any]:
        """Return what was fitted, as JSON can hold it."""
        out: dict[str, Any] = {}
        if self.trained:
            out["fitted to"] = list(self.trained)
        if self.tuned is not None:
            out["weights"] = dict(self.tuned.weights)
        if self.answerable is not None:
            out["floor"] = self.answerable.to_dict()
        return out

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        return {"measured": [as_json(one) for one in self.measured], **self.fitted()}


def evaluate(
    memory: Memory,
    labels: Sequence[Label],
    *,
    tune: bool = False,
    floor: bool = False,
    train: Sequence[str] | None = None,
    at: Sequence[int] = AT,
    seed: int = 0,
) -> Evaluation:
    """Measure a memory; what is fitted is fitted to one part of the groups, measured on the other.

    Parameters
    ----------
    memory : cvx.Memory
        What is asked. Nothing in it changes.
    labels : sequence of Label
        The questions.
    tune : bool, default False
        Fit weights.
    floor : bool, default False
        Calibrate when to answer nothing; 200 foreign questions are then measured too.
    train : sequence of str, optional
        Groups to fit to; by default a seeded half.
    at : sequence of int, default (5, 10, 20)
        Where rankings are cut.
    seed : int, default 0
        Of the split, the foreign questions and the intervals.

    Raises
    ------
    InvalidInputError
        A floor for a memory with a preset, which has one of scores.
    """
    groups, gold = groups_of(labels), resolved(memory, labels)
    plan = memory.learning.weighed()
    trained = split(labels, train, seed=seed)[0] if tune or floor else []
    part = [number for number, group in enumerate(groups) if group in set(trained)]
    labelled, answers = [labels[number] for number in part], [gold[number] for number in part]
    found = tables(memory, plan, labelled, answers) if tune else []
    weights = _sized(_fit_to(found, labelled, trained), plan) if tune else None
    answerable = calibrated_floor(memory, plan, labelled, seed=seed) if floor else None

    rest = [number for number, group in enumerate(groups) if group not in set(trained)]
    asked, wanted = [labels[number] for number in rest], [gold[number] for number in rest]
    if floor:
        foreign = foreign_labels(asked, FOREIGN, seed=seed)
        asked, wanted = [*asked, *foreign], [*wanted, *resolved(memory, foreign)]
    rankers = {**baselines(memory), "this memory": recalling(memory)}
    chosen = None if weights is None else weights.weights
    if weights is not None:
        rankers["tuned"] = recalling(memory, memory.learning.weighed(chosen))
    if answerable is not None:
        rankers["with a floor"] = recalling(memory, memory.learning.weighed(chosen, answerable))
    measured = tuple(
        measure(name, ranker, asked, wanted, at=at, seed=seed) for name, ranker in rankers.items()
    )
    return Evaluation(measured, weights, answerable, tuple(trained))
