"""The probability that one event of a log caused another, from words, time and known links."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.causal.fusion import Floats
from cvx.causal.hedging import LEFT_OPEN, REVERSED, reverses
from cvx.causal.judges.offline import (
    Heads,
    WordPairs,
    beginnings,
    content_words,
    function_words,
    leaves_open,
    stems,
)
from cvx.causal.judges.protocol import Judgement, Pair
from cvx.errors import InvalidInputError
from cvx.types import Vector

Matrix: TypeAlias = npt.NDArray[np.float32]

_NUMBER = re.compile(r"\d+")
_TOKEN = re.compile(r"[^\W_](?:[\w.:/-]*[^\W_])?")
_BACKWARD = re.compile(
    r"\b(because(?: of)?|due to|owing to|thanks to|caused by|as a result of|result(?:ed|ing)? from"
    r"|after|following|since|in response to|now that)\b",
    re.IGNORECASE,
)
_ONWARD = re.compile(
    r"\b(led to|leads to|leading to|caused|causing|result(?:ed|ing)? in|forc(?:ed|ing)"
    r"|trigger(?:ed|ing)|so that|brought about|meant that)\b",
    re.IGNORECASE,
)
# "The order was late (no gear wheels came)": what stands in brackets last is the cause.
_BRACKETS = re.compile(r"\(([^()]++)\)\s*+[.!]?+\Z")
# A text without any of these has no word of cause: most have none, and need no search.
_CUE_WORDS = """
because due owing thanks caused as result resulted resulting after following since in now led leads
leading causing forced forcing triggered triggering so brought meant
"""
# What lasts is no event: "The brewery keeps horses" led to nothing that happened.
_LASTING_WORDS = """
is are has have keep keeps belong belongs need needs want wants like likes sell sells show shows
"""
_CUES, _LASTING = frozenset(_CUE_WORDS.split()), frozenset(_LASTING_WORDS.split())
# Words of general English for what goes wrong: trouble leads to trouble more often than calm does.
_TROUBLE_WORDS = """
abandon absent accident alarm alert anger arrest attack ban banned bankrupt bleed bled blew block
bomb break broke broken breach burn burst cancel catch caught clog cold collapse collide complain
conflict confuse corrupt could crack crash crisis crowd cut damage danger dark dead deadlock death
debt decline defect delay delete deny denied destroy die dirt disappear disconnect disease disrupt
drop dropped drought drown dry empty error evacuate evict exceed exhaust expire explode fail fall
fault fear fell fever few fight fine fire fled flee flood fog forgot fraud freeze froze frozen
full garbage hack half halt hang hung hardly hit hole hunger hurt ice idle ill injure infect jam
kill lack late leak left lock long lose loss lost low melt miss mistake mould murder never no
nobody none not nothing only outage outbreak overflow overheat overload panic pile poison poor
power protest quake quarrel queue quit ran reject refuse resign riot rise rose rot ruin rush rust
sack scarce scare severe shake shook shortage shut sick sink sank slid slip slow smoke spill spoil
spoilt spread stall stay stop stopped storm strand stress strike struck stuck suffer suspend swell
swept tear threat throw too tore toxic trap trip trouble unable unpaid violate warn waste weak wet
wither without worry worse wound wreck wrong
"""
_TROUBLE = frozenset(
    (word + ending)[:5] for word in _TROUBLE_WORDS.split() for ending in ("", "s", "d", "ed", "ing")
)
_SAYS_AGAIN, _NAMED = 0.6, 0.6
_FARTHEST = 10_000.0
_BRIEF, _LONG, _MOST_OF_NEWS = 1.5, 7.5, 0.3
# A little above what is kept at all: whoever looks at the candidates may know better.
_MOST_LEFT_OPEN = 0.1

PLAIN = (
    "near",
    "next",
    "together",
    "likeness",
    "likeness among",
    "likest",
    "shared words",
    "shared among",
    "newer alike",
    "names",
    "says it",
    "says another",
    "says onward",
    "known words",
    "known among",
    "heads",
    "heads among",
    "like known",
    "unlike known",
    "followed",
    "failed",
    "twins",
    "length",
    "latest of it",
    "only one of it",
    "words in common",
    "says again",
    "stems in common",
    "lasting",
    "regularly",
    "candidates",
    "trouble",
    "trouble of effect",
    "trouble of both",
    "newer trouble",
    "trouble around",
)
CROSSED = (
    ("near", "likeness among"),
    ("near", "shared among"),
    ("near", "heads among"),
    ("newer alike", "likeness among"),
    ("newer alike", "shared among"),
    ("likeness among", "shared among"),
    ("next", "likeness among"),
    ("next", "shared among"),
    ("length", "shared among"),
    ("length", "likeness among"),
    ("candidates", "near"),
    ("candidates", "shared among"),
    ("trouble of both", "shared among"),
    ("trouble of both", "near"),
)
NAMES = (*PLAIN, *(f"{a} x {b}" for a, b in CROSSED))


class Told(NamedTuple):
    """An event of the log beside the effect: text, vector, distance, repetitions.

    Attributes
    ----------
    text : str
        What it says.
    vector : ndarray of shape (dim,), float32, or None
        Where it lies, of norm 1.
    steps : float
        How many events lie between the two.
    together : bool
        Whether it was told at the same time, before or after the effect.
    followed, failed : float
        How often the like of it was followed by the like of the effect beyond chance, and how
        often it was not.
    """

    text: str
    vector: Vector | None = None
    steps: float = 0.0
    together: bool = False
    followed: float = 0.0
    failed: float = 0.0


class Words(NamedTuple):
    """The stems, names and cause words of a text."""

    stems: frozenset[str]
    tokens: frozenset[str]
    names: frozenset[str]
    form: str
    backward: frozenset[str] | None
    onward: frozenset[str] | None
    trouble: float
    lasting: bool


# What both may hold without speaking of it; the probability goes by its own words.
_SAY_LITTLE_WORDS = """
about above after again against all also always another any because before being below between both
during each else ever every few get gets getting got here however just least less let made make
makes many more most much never now once one ones only other others own same several since some
still such through two under until us very via while within without yet
"""
_SAY_LITTLE = function_words.union(_SAY_LITTLE_WORDS.split())
_ENOUGH = 8
"""Events from which it can be told which words are usual among them."""


@lru_cache(maxsize=16_384)
def words_of(text: str) -> Words:
    """Return the stems, names and cause words of a text."""
    tokens = _TOKEN.findall(text)
    names = {
        token.lower()
        for place, token in enumerate(tokens)
        if any(map(str.isdigit, token)) or (place and token[:1].isupper())
    }
    form = " ".join(_NUMBER.sub("#", text.casefold()).split())
    lowered = frozenset(token.lower() for token in tokens)
    cued = not _CUES.isdisjoint(lowered)
    on = _ONWARD.search(text) if cued else None
    return Words(
        content_words(text),
        lowered,
        frozenset(names),
        form,
        _backward(text) if cued or ")" in text else None,
        None if on is None else frozenset(stems(text[on.end() :])),
        min(2.0, float(len(_TROUBLE.intersection(beginnings(text))))),
        not _LASTING.isdisjoint(lowered),
    )


def _backward(text: str) -> frozenset[str] | None:
    """The stems of what a text names as its cause; None where it names none."""
    if cue := _BACKWARD.search(text):
        return frozenset(stems(_clause(text, cue)))
    if aside := _BRACKETS.search(text):
        return frozenset(stems(aside[1]))
    return None


def without_cause(text: str, cause: str) -> str:
    """Return what a text says happened, without its words about the cause.

    Examples
    --------
    >>> without_cause("The cellar flooded since the drain was blocked", "The drain was blocked")
    'The cellar flooded'
    """
    cue = _BACKWARD.search(text) or _BRACKETS.search(text)
    said = words_of(text).backward
    if cue is None or not said or len(said & words_of(cause).stems) < _NAMED * len(said):
        return text
    before = text[: cue.start()].rstrip(" ,;(")
    return before or text.partition(",")[2].strip() or text


def _clause(text: str, cue: re.Match[str]) -> str:
    """What a word of cause speaks of: up to the comma where it opens the sentence."""
    rest = text[cue.end() :]
    return rest.split(",", 1)[0] if not text[: cue.start()].strip() else rest


class Known(NamedTuple):
    """Known causal links, stated or confirmed, between similar events.

    Attributes
    ----------
    causes, effects : ndarray of shape (m, dim), float32
        Vectors of norm 1.
    """

    causes: Matrix
    effects: Matrix


@dataclass(frozen=True)
class Weights:
    """A logistic regression over ``NAMES``.

    Attributes
    ----------
    centre, scale, weights : ndarray of shape (len(NAMES),), float64
    bias : float
    """

    centre: Floats
    scale: Floats
    weights: Floats
    bias: float

    def odds(self, rows: Floats) -> Floats:
        """Return what each number adds to the log-odds: (n, len(NAMES))."""
        return np.asarray(np.nan_to_num((rows - self.centre) / self.scale) * self.weights)


def kinds_of(rows: Floats) -> dict[str, npt.NDArray[np.bool_]]:
    """Tell which pairs are weighed by themselves, by the name of their weights.

    Told at one time (nothing is known of their order); pairs of which one text has a single word
    that means something, or none; effects that name the cause; long sentences on both sides, as
    news has them; all others.
    """
    at_once = rows[:, NAMES.index("together")] > 0
    words = np.exp(rows[:, NAMES.index("length")]) - 1.0
    brief = ~at_once & (words < _BRIEF)
    said = ~at_once & ~brief & (rows[:, NAMES.index("says it")] >= 0.5)
    long = ~(at_once | brief | said) & (words > _LONG)
    return {
        "": ~(at_once | brief | said | long),
        " brief": brief,
        " long": long,
        " said": said,
        " together": at_once,
    }


class PairModel:
    """Weighs what speaks for one event being the cause of another.

    Parameters
    ----------
    words : WordPairs
        Which words go together in cause and effect.
    weights : mapping of str to Weights
        For vectors of meaning ("semantic") and of words ("lexical").
    heads : mapping of str to Heads, optional
        By the id of the embedder in whose space they were trained.
    """

    name = "cvx"

    def __init__(
        self,
        words: WordPairs,
        weights: Mapping[str, Weights],
        heads: Mapping[str, Heads] | None = None,
    ) -> None:
        self.words, self.weights, self.heads = words, dict(weights), dict(heads or {})

    def evidence(
        self, effect: Told, pool: Sequence[Told], known: Known | None = None, embedder: str = ""
    ) -> Floats:
        """Return what speaks for each event of a pool having led to another one.

        Parameters
        ----------
        effect : Told
            What is to be explained.
        pool : sequence of Told
            n events that may have led to it.
        known : Known, optional
            Links that are known of other events.
        embedder : str
            The id of the embedder of all vectors.

        Returns
        -------
        ndarray of shape (n, len(NAMES)), float64
            NaN where a number needs vectors that are not there.
        """
        if not pool:
            return np.zeros((0, len(NAMES)))
        theirs, own = [words_of(one.text) for one in pool], words_of(effect.text)
        seen = Counter(word for words in theirs for word in words.stems | words.names)
        most = math.log(len(pool) + 2.0)
        # A word that no candidate has is as rare as can be.
        idf: defaultdict[str, float] = defaultdict(lambda: 1.0)
        idf.update((word, 1.0 - math.log(1.0 + count) / most) for word, count in seen.items())
        steps = np.array([one.steps for one in pool])
        newer = steps[None, :] < steps[:, None]
        cosines = _scored(effect, pool, np.matmul)
        likest = _part(cosines)
        whole = _sum(own.stems, idf)
        size = np.array([_sum(one.stems, idf) for one in theirs])
        both = np.array([_sum(one.stems & own.stems, idf) for one in theirs])
        shared = _share(both, np.minimum(size, whole))
        tie = np.nan_to_num(likest) + _part(shared)
        alike = tie[None, :] >= 0.8 * tie[:, None]
        names = [(one.names & own.tokens) | (own.names & one.tokens) for one in theirs]
        latest, only = _holders(theirs, own.stems, steps, idf)
        said = np.array([_said(own.backward, one.stems, idf) for one in theirs])
        met = self._known_words(effect.text, pool)
        heads = self._heads(effect, pool, embedder)
        like_known, unlike_known = transfer(effect, pool, known)
        common = np.array(
            [len(one.tokens & own.tokens) / max(1, len(one.tokens | own.tokens)) for one in theirs]
        )
        trouble = np.array([one.trouble for one in theirs])
        forms = Counter(words.form for words in theirs)
        columns = {
            "near": np.log1p(np.minimum(steps, _FARTHEST)),
            "next": np.array([one.steps < 1.0 for one in pool], np.float64),
            "together": np.array([one.together for one in pool], np.float64),
            "likeness": np.clip(cosines, 0, None),
            "likeness among": _among(cosines),
            "likest": likest,
            "shared words": shared,
            "shared among": _among(shared),
            "newer alike": np.log1p((newer & alike).sum(axis=1)),
            "names": np.array([_sum(named, idf) for named in names]),
            "says it": said,
            "says another": np.where(own.backward is not None, max(said.max(), 0.3) - said, 0),
            "says onward": np.array([_said(one.onward, own.stems, idf) for one in theirs]),
            "known words": met,
            "known among": _among(met),
            "heads": heads,
            "heads among": _among(heads),
            "like known": like_known,
            "unlike known": unlike_known,
            "followed": np.log1p([one.followed for one in pool]),
            "failed": np.log1p([one.failed for one in pool]),
            "twins": np.log([float(forms[words.form]) for words in theirs]),
            "length": np.log1p([min(len(one.stems), len(own.stems)) for one in theirs]),
            "latest of it": latest,
            "only one of it": only,
            "words in common": common,
            "says again": (common > _SAYS_AGAIN).astype(np.float64),
            "stems in common": _share(both, size + whole - both),
            "lasting": np.array([one.lasting and not own.lasting for one in theirs], float),
            "regularly": np.array(
                [one.followed / (one.followed + one.failed + 1.0) for one in pool]
            ),
            "candidates": np.full(len(pool), np.log(len(pool))),
            "trouble": trouble,
            "trouble of effect": np.full(len(pool), own.trouble),
            "trouble of both": np.minimum(trouble, own.trouble),
            "newer trouble": np.log1p((newer & (trouble > 0)).sum(axis=1)),
            "trouble around": np.full(len(pool), float((trouble > 0).mean())),
        }
        columns |= {f"{a} x {b}": columns[a] * columns[b] for a, b in CROSSED}
        return np.stack([columns[name] for name in NAMES], axis=1)

    def parts(self, rows: Floats, family: str, *, alone: bool = False) -> tuple[Floats, Floats]:
        """Return what each number adds to the log-odds, and the chance of each pair.

        Parameters
        ----------
        rows : ndarray of shape (n, len(NAMES))
            From ``evidence``.
        family : {"semantic", "lexical"}
            What the vectors are of.
        alone : bool, default False
            Whether nothing is known of what happened around each pair.

        Returns
        -------
        parts : ndarray of shape (n, len(NAMES)), float64
        chances : ndarray of shape (n,), float64
            In [0, 1].
        """
        parts, bias = np.zeros(rows.shape), np.zeros(len(rows))
        kinds = kinds_of(rows)
        for kind, chosen in kinds.items():
            weights = self.weights[family + (kind if kind == " said" or not alone else " alone")]
            parts[chosen] = weights.odds(rows[chosen])
            bias[chosen] = weights.bias
        chances = 1.0 / (1.0 + np.exp(-(parts.sum(axis=1) + bias)))
        # Whatever was told above this of news, word by word or in long sentences, was not so.
        unsure = (kinds[" brief"] | kinds[" long"]) & (not alone)
        return parts, np.where(unsure, np.minimum(chances, _MOST_OF_NEWS), chances)

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Judge pairs by themselves, without the events around them.

        The chance is that of a pair of which one in six is true: beside each true pair the model
        saw one with a look-alike in it, and four of events that have nothing to do with each other.
        """
        return [self._judged(pair) for pair in pairs]

    def _judged(self, pair: Pair) -> Judgement:
        if pair.lag is not None and pair.lag < 0:
            return Judgement("no", 0.0, "the effect came first")
        if not pair.cause.strip() or not pair.effect.strip():
            return Judgement("unjudged", why="one of the two has no words")
        effect, cause = Told(pair.effect, pair.effect_vector), Told(pair.cause, pair.cause_vector)
        space = next((name for name, heads in self.heads.items() if heads.fits(effect.vector)), "")
        rows = self.evidence(effect, [cause], embedder=space)
        parts, chances = self.parts(rows, "semantic" if space else "lexical", alone=True)
        (chance,) = at_most(effect, [cause], chances)
        # Nothing is known of what happened right before.
        rows[0, NAMES.index("next")] = 0.0
        why = reasons(effect, cause, rows[0])
        weighed = zip(NAMES, parts[0].tolist(), strict=True)
        factors = tuple((name, part) for name, part in weighed if part)
        return Judgement("yes" if chance >= 0.5 else "no", float(chance), why, factors)

    @staticmethod
    @cache
    def shipped() -> PairModel:
        """Return the model that comes with cvx; see ``docs/causal.md`` for what it learned from."""
        with resources.files("cvx.causal").joinpath("pairs.npz").open("rb") as file:
            return PairModel.load(file)

    @classmethod
    def load(cls, path: Any) -> PairModel:
        """Read a file that ``benches.causal.pairing`` wrote.

        Raises
        ------
        InvalidInputError
            A file that is no model, or of another version.
        """
        try:
            with np.load(path, allow_pickle=False) as held:
                arrays = {name: held[name] for name in held.files}
            words, weights = WordPairs.from_arrays(arrays), {}
            heads: dict[str, dict[str, Matrix]] = {}
            for name, values in arrays.items():
                part, _, rest = name.partition("/")
                if part == "weights" and rest:
                    centre, scale, weight, bias = values.astype(np.float64)
                    weights[rest] = Weights(centre, scale, weight, float(bias[0]))
                elif part == "heads":
                    side, _, embedder = rest.partition("/")
                    scaled = values.astype(np.float32) * arrays[f"scale/{rest}"]
                    heads.setdefault(embedder, {})[side] = scaled.reshape(values.shape)
            made = cls(words, weights, {name: Heads(one) for name, one in heads.items()})
        except Exception as error:  # numpy, zipfile and zlib each raise their own
            raise InvalidInputError(f"no pair model in the file ({error}): fit one") from error
        if any(len(one.weights) != len(NAMES) for one in made.weights.values()):
            raise InvalidInputError("the pair model in the file is of another version: fit one")
        return made

    def _known_words(self, effect: str, pool: Sequence[Told]) -> Floats:
        """How much the words of each go with those of the effect, a pair of words."""
        ends = len(beginnings(effect))
        pairs = np.array([len(beginnings(one.text)) * ends for one in pool], np.float64)
        scores = np.array([self.words.score(one.text, effect) for one in pool])
        return np.asarray(scores / np.sqrt(np.maximum(pairs, 1.0)))

    def _heads(self, effect: Told, pool: Sequence[Told], embedder: str) -> Floats:
        heads = self.heads.get(embedder)
        if heads is None:
            return np.full(len(pool), np.nan)
        return _scored(effect, pool, lambda rows, own: heads.score(rows, own[None]))


def _scored(
    effect: Told, pool: Sequence[Told], score: Callable[[Matrix, Vector], npt.NDArray[Any]]
) -> Floats:
    """Score the vectors of a pool against that of the effect; NaN where there is none."""
    out = np.full(len(pool), np.nan)
    there = [at for at, one in enumerate(pool) if one.vector is not None]
    if effect.vector is not None and there:
        rows = np.stack([one.vector for at in there if (one := pool[at]).vector is not None])
        out[there] = score(rows, effect.vector)
    return out


def _among(values: Floats) -> Floats:
    """Where each stands among the others, in standard deviations."""
    there = ~np.isnan(values)
    if there.sum() < 2:
        return np.where(there, 0.0, np.nan)
    spread = values - values[there].mean()
    return np.asarray(spread / (values[there].std() + 0.02))


def _part(values: Floats) -> Floats:
    """Each as a part of the largest, in [0, 1]."""
    clipped = np.clip(values, 0, None)
    largest = np.nanmax(clipped) if (~np.isnan(clipped)).any() else 0.0
    return np.asarray(clipped / largest if largest > 0 else clipped * 0.0)


def _sum(words: Iterable[str], idf: Mapping[str, float]) -> float:
    return sum(map(idf.__getitem__, words))


def _share(part: Floats, whole: Floats) -> Floats:
    return np.asarray(np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0))


def _holders(
    theirs: Sequence[Words], own: frozenset[str], steps: Floats, idf: Mapping[str, float]
) -> tuple[Floats, Floats]:
    """Shares of the effect's words of which each is the latest to speak, and the only one."""
    latest, only = np.zeros(len(theirs)), np.zeros(len(theirs))
    whole = _sum(own, idf) or 1.0
    for word in own:
        having = [at for at, one in enumerate(theirs) if word in one.stems]
        if having:
            weight = idf[word] / whole
            latest[min(having, key=steps.__getitem__)] += weight
            if len(having) == 1:
                only[having[0]] += weight
    return latest, only


def _said(clause: frozenset[str] | None, other: frozenset[str], idf: Mapping[str, float]) -> float:
    if not clause:
        return 0.0
    whole = _sum(clause, idf)
    return _sum(clause & other, idf) / whole if whole > 0 else 0.0


def transfer(effect: Told, pool: Sequence[Told], known: Known | None) -> tuple[Floats, Floats]:
    """Return how like a known pair each is as a cause of the effect, and as its effect."""
    none = np.zeros(len(pool))
    if known is None or not len(known.causes) or effect.vector is None:
        return none, none
    zero = np.zeros(len(effect.vector), np.float32)
    rows = np.stack([zero if one.vector is None else one.vector for one in pool])
    forth = np.clip(rows @ known.causes.T, 0, 1) * np.clip(known.effects @ effect.vector, 0, 1)
    back = np.clip(rows @ known.effects.T, 0, 1) * np.clip(known.causes @ effect.vector, 0, 1)
    return forth.max(axis=1).astype(np.float64), back.max(axis=1).astype(np.float64)


def reasons(effect: Told, cause: Told, row: Floats, pool: Sequence[Told] = ()) -> str:
    """Return the reasons for a pair's probability in words; ``pool`` says which words are usual."""
    if leaves_open(cause.text, effect.text):
        return REVERSED if reverses(cause.text, effect.text) else LEFT_OPEN
    value = dict(zip(NAMES, row.tolist(), strict=True))
    ours, theirs = words_of(cause.text), words_of(effect.text)
    cue, aside = _BACKWARD.search(effect.text), _BRACKETS.search(effect.text)
    clause = cue.group().lower() if cue else aside[1].strip() if aside else ""
    telling = [word for word in _TOKEN.findall(effect.text) if _telling(word, ours, theirs)]
    shared = _unusual(telling, pool)
    names = " and ".join(filter(None, [", ".join(shared[:-1]), *shared[-1:]]))
    strong = (
        (clause and value["says it"] >= 0.3, f'it says "{clause}"'),
        (value["followed"] > 0, "the one has followed the other before"),
        (value["like known"] >= 0.5, "a link between two like them is known"),
        (shared, f"both speak of {names}"),
    )
    weak = (
        (value["next"] and not value["together"], "it happened right before"),
        (value["likeness among"] > 1.5, "of what happened before it is the likest"),
    )
    said = [words for holds, words in strong if holds][:2]
    return " and ".join(said or [words for holds, words in weak if holds][:1])


def at_most(effect: Told, pool: Sequence[Told], chances: Floats) -> Floats:
    """Cap the probability of causes that the effect's words only ask about or deny."""
    left_open = np.array([leaves_open(one.text, effect.text) for one in pool], np.bool_)
    return np.where(left_open, np.minimum(chances, _MOST_LEFT_OPEN), chances)


def _telling(word: str, cause: Words, effect: Words) -> bool:
    names = {*cause.names, *effect.names}
    met = cause.stems & effect.stems & content_words(word)
    return bool(met) or (word.lower() in names and word.lower() in cause.tokens)


def _unusual(words: Iterable[str], pool: Sequence[Told]) -> list[str]:
    """Return the three of some words that the fewest events hold, in their order, each once.

    What every third event holds is left out, whatever the language: "die", "wurde".
    """
    once = {word.lower(): word for word in reversed([*words]) if word.lower() not in _SAY_LITTLE}
    known = [words_of(one.text).tokens for one in pool] if len(pool) >= _ENOUGH else []
    held = {word: sum(word in one for one in known) for word in reversed(once)}
    rare = [word for word in held if 3 * held[word] <= len(known)]
    chosen = sorted(rare, key=held.__getitem__)[:3]
    return [once[word] for word in rare if word in chosen]
