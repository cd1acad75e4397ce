"""Parses a question: words and their forms, names, dates, and what kind of answer it wants.

A word is a run of letters and digits, folded in case; stems are the business of the full-text
index. Scripts written without spaces are cut into overlapping pairs, as that index does. Words that
carry no content (articles, pronouns, auxiliaries, question words, greetings) are left out.

Questions are asked with the base of a verb ("when did she *buy* it?") and answered with its past
("I *bought* it"). A stemmer joins regular forms; `forms_of_word` knows the irregular verbs of
English that are in common use, the irregular plurals, and the numbers up to twelve. Nor does it
join what was derived from the same root, such as "allergies" and "allergic": see `holders_of`.

What kind of answer a question wants (`answer_wanted`), and what kinds a text could hold
(`forms_of`), are read from the surface, in English, and are bits of one mask, so that a whole pool
of candidates is compared with a question by one ``&``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from cvx.dates import MICROSECONDS_A_DAY, DateNamed, read_dates
from cvx.store.fulltext import pairs
from cvx.types import Column, IntArray

if TYPE_CHECKING:
    from cvx.recall.visible_events import VisibleEvents

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W\d_]+)?")

QUESTION_WORDS = frozenset("what when where which who whom whose why how".split())  # noqa: SIM905
"""Words that ask and do not describe what is asked for."""

_CONTENTLESS = QUESTION_WORDS | frozenset(
    """
    a an the this that these those there here it its he him his she her hers they them their theirs
    we us our ours you your yours i me my mine myself yourself himself herself itself themselves
    ourselves one ones someone somebody anyone anybody everyone everybody something anything nothing
    everything am is are was were be been being do does did doing done have has had having will
    would shall should can could may might must ought let lets and or but nor so if then than as at
    by for from in into of off on onto out over to up with without about after before during until
    while because since between through under above below again against both each few more most
    other others some any such no not only own same too very just also ever never yet still already
    even though although however when whether yes yeah yep nope ok okay oh ah hey hi hello wow well
    really quite much many lot lots kind kinds sort sorts type types example examples item
    items bit thing things way ways mention mentioned mentions s t d m ll re ve don didn doesn
    isn aren wasn weren won wouldn couldn shouldn hasn haven hadn ain cannot
    """.split()  # noqa: SIM905
)


def content_words(text: str) -> list[str]:
    """Return the words that carry content, in order, with repetitions.

    Parameters
    ----------
    text : str
        Anything.

    Returns
    -------
    list of str

    Examples
    --------
    >>> content_words("When did Ann's sisters go painting?")
    ['ann', 'sisters', 'go', 'painting']
    >>> content_words("東京都 2023")
    ['2023', '東京', '京都']
    """
    words = [word for word in plain_words(text) if word not in _CONTENTLESS]
    if text.isascii():
        return words
    spaced = [word for word in words if not pairs(word)]
    if len(spaced) < len(words):
        found = pairs(text)
        spaced += [gram for gram in found if len(gram) == 2] or found
    return spaced


def plain_words(text: str, *, fold: bool = True) -> list[str]:
    """Return every word without the ending of a genitive, in order.

    Parameters
    ----------
    text : str
        Anything.
    fold : bool, default True
        Fold the case.

    Examples
    --------
    >>> plain_words("Ann's sister")
    ['ann', 'sister']
    """
    return [_stripped(word, fold=fold) for word in _WORD.findall(text)]


def without(text: str, words: frozenset[str]) -> str:
    """Return a text without some words, and without the genitives of them.

    Parameters
    ----------
    text : str
        Anything.
    words : frozenset of str
        Folded in case.

    Examples
    --------
    >>> without("When did Ann's sister call Bob?", frozenset({"ann", "bob"}))
    'When did sister call ?'
    """

    def kept(match: re.Match[str]) -> str:
        return "" if _stripped(match.group()) in words else match.group()

    return " ".join(_WORD.sub(kept, text).split())


def _stripped(word: str, *, fold: bool = True) -> str:
    """Drop what follows an apostrophe."""
    bare = word if word.isalnum() else word.replace("\u2019", "'").partition("'")[0]
    return bare.casefold() if fold else bare


_FORMS = """
    become became; begin began begun; bend bent; bite bit bitten; blow blew blown; break broke
    broken; bring brought; build built; burn burnt; buy bought; catch caught; choose chose
    chosen; come came; deal dealt; dig dug; draw drew drawn; dream dreamt; drink drank drunk;
    drive drove driven; eat ate eaten; fall fell fallen; feed fed; feel felt; fight fought; find
    found; fly flew flown; forget forgot forgotten; forgive forgave forgiven; freeze froze
    frozen; get got gotten; give gave given; go went gone; grow grew grown; hang hung; hear
    heard; hide hid hidden; hold held; keep kept; know knew known; lay laid; lead led; learn
    learnt; leave left; lend lent; lose lost; make made; mean meant; meet met; pay paid; ride
    rode ridden; ring rang rung; rise rose risen; run ran; say said; see saw seen; seek sought;
    sell sold; send sent; shake shook shaken; shine shone; shoot shot; show shown; shrink shrank
    shrunk; sing sang sung; sink sank sunk; sit sat; sleep slept; slide slid; speak spoke
    spoken; speed sped; spend spent; spin spun; stand stood; steal stole stolen; stick stuck;
    strike struck; swear swore sworn; sweep swept; swim swam swum; swing swung; take took taken;
    teach taught; tear tore torn; tell told; think thought; throw threw thrown; understand
    understood; wake woke woken; wear wore worn; weave wove woven; win won; wind wound; write
    wrote written; child children; foot feet; goose geese; knife knives; leaf leaves; life
    lives; man men; mouse mice; person people; shelf shelves; tooth teeth; wife wives; wolf
    wolves; woman women; one 1; two 2; three 3; four 4; five 5; six 6; seven 7; eight 8; nine 9;
    ten 10; eleven 11; twelve 12
"""


def _table() -> dict[str, tuple[str, ...]]:
    out: dict[str, tuple[str, ...]] = {}
    for group in _FORMS.split(";"):
        words = tuple(group.split())
        for word in words:
            out[word] = tuple(dict.fromkeys((word, *out.get(word, ()), *words)))
    return out


IRREGULAR = _table()
_ENDINGS = ("ing", "s")
_DERIVED = tuple(
    """
    ations ation ities ists isms ments ness ical ally ance ence able ible ions ings ers ors ist ism
    ity ive ion ing ful ious ous ies ied ier est ment ic al er or ed es ly y s e
    """.split()  # noqa: SIM905
)
_SHORTEST_ROOT = 5


@lru_cache(maxsize=1 << 14)
def forms_of_word(word: str) -> tuple[str, ...]:
    """Return a word, and the words that are forms of the same one and do not share its stem.

    Parameters
    ----------
    word : str
        Folded in case.

    Examples
    --------
    >>> forms_of_word("buy"), forms_of_word("bought"), forms_of_word("lake")
    (('buy', 'bought'), ('bought', 'buy'), ('lake',))
    >>> forms_of_word("writing")
    ('writing', 'write', 'wrote', 'written')
    """
    if word in IRREGULAR:
        return IRREGULAR[word]
    for ending in _ENDINGS:
        if word.endswith(ending):
            bare = word.removesuffix(ending)
            # "writing" lost an e, "winning" doubled a consonant.
            for base in (bare, f"{bare}e", bare[:-1]):
                if len(base) > 1 and base in IRREGULAR:
                    return (word, *IRREGULAR[base])
    return (word,)


@lru_cache(maxsize=1 << 14)
def root_of_word(word: str) -> str:
    """Return what words derived like this one begin with, "" where that would say too little.

    It has five letters at least: "allergies", "allergic" and "allergen" share theirs, "rating" and
    "ratify" do not.

    Parameters
    ----------
    word : str
        Folded in case.

    Examples
    --------
    >>> root_of_word("allergies"), root_of_word("baker"), root_of_word("bake")
    ('allerg', 'baker', '')
    """
    if not word.isalpha() or len(word) < _SHORTEST_ROOT:
        return ""
    bare = (word.removesuffix(ending) for ending in _DERIVED if word.endswith(ending))
    return next((one for one in bare if len(one) >= _SHORTEST_ROOT), word)


def holders_of(word: str, view: VisibleEvents) -> IntArray | None:
    """Return the rows that hold a form of a word; where none does, those that hold a relative.

    A relative begins with the same root. None where too many rows hold one of them.
    """
    if word not in view.held:
        held = [view.postings(form) for form in forms_of_word(word)]
        found = [rows for rows in held if rows is not None]
        whole = None
        if len(found) == len(held):
            whole = found[0]
            if len(found) > 1:
                joined = np.sort(np.concatenate(found))
                whole = joined[np.diff(joined, prepend=-1) > 0]
            root = "" if whole.size else root_of_word(word)
            whole = view.postings(f"{root}*") if root else whole
        view.held[word] = whole
    return view.held[word]


_SHORTEST_MISSPELT, _LONG = 6, 8


def spelt_alike(word: str, other: str) -> bool:
    """Return whether a word of a question may be another one with a slip of the pen.

    One letter of six or more is changed, left out, added or swapped with the next, and of less than
    eight not the first; or it is written together with what follows.

    Examples
    --------
    >>> spelt_alike("dentst", "dentist"), spelt_alike("secatuers", "secateurs")
    (True, True)
    >>> spelt_alike("garden", "warden"), spelt_alike("kopenhagen", "copenhagen")
    (False, True)
    >>> spelt_alike("cinnamonbuns", "cinnamon")
    True
    """
    if min(len(word), len(other) + 1) < _SHORTEST_MISSPELT or not word.isalpha():
        return False
    if word.startswith(other):
        return len(other) >= _SHORTEST_MISSPELT
    pairs_of = zip(word, other, strict=False)
    at = next((at for at, (one, two) in enumerate(pairs_of) if one != two), len(word))
    if at == 0 and len(word) < _LONG:
        return False
    one, two = word[at:], other[at:]
    swapped = one[:2] == two[1::-1] and one[2:] == two[2:]
    return swapped or two[1:] in (one[1:], one) or two == one[1:]


ASKS: Final = 1
"""The text asks something."""
TIME: Final = 2
"""It says when: a day, a month, a year, "yesterday", "last week"."""
SPAN: Final = 4
"""It says how long: a number of minutes to years, "since", "for ages"."""
NUMBER: Final = 8
"""It counts: digits or number words."""
REASON: Final = 16
"""It gives a reason: "because", "so that", "to help", "thanks to"."""
PERSON: Final = 32
"""It speaks of people: relations, or names within a sentence."""
PLACE: Final = 64
"""It says where: "in", "at", "near" before a name, or words for places."""

_UNIT = r"(?:second|minute|hour|day|night|week|weekend|month|year|decade)s?"
_COUNT = (
    r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozens?|hundreds?"
    r"|thousands?|twice|thrice|once|couple|several|few)"
)
_MONTHS = (
    r"(?:january|february|march|april|june|july|august|september|october|november|december"
    r"|(?<!\w)in may|(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
)
_PATTERNS: Final = {
    ASKS: re.compile(r"\?"),
    TIME: re.compile(
        rf"\b(?:yesterday|today|tonight|tomorrow|ago|{_MONTHS}|(?:19|20)\d\d"
        rf"|(?:last|next|this|past|coming|earlier|other)\s+(?:\w+\s+)?"
        rf"(?:{_UNIT}|morning|evening|afternoon|summer|winter|spring|fall|autumn)"
        r"|recently|soon)\b",
        re.IGNORECASE,
    ),
    SPAN: re.compile(rf"\b(?:{_COUNT}\s+(?:\w+\s+)?{_UNIT}|since|for\s+(?:ages|years))\b", re.I),
    NUMBER: re.compile(rf"\b{_COUNT}\b", re.IGNORECASE),
    REASON: re.compile(
        r"\b(?:because|since|reason|so\s+that|in\s+order|thanks\s+to|due\s+to|inspired|motivat\w*"
        r"|wanted\s+to|to\s+(?:help|make|get|show|see|learn|improve|find|keep))\b",
        re.IGNORECASE,
    ),
    PERSON: re.compile(
        r"\b(?:mother|mom|mum|father|dad|parents?|sisters?|brothers?|wife|husband|sons?|daughters?"
        r"|kids?|friends?|family|aunts?|uncles?|cousins?|grand\w+|colleagues?|neighbou?rs?|boss"
        r"|teachers?|girlfriend|boyfriend|partner|(?i:by))\b|(?<=[a-z,] )[A-Z][a-z]+"
    ),
    PLACE: re.compile(
        r"\b(?:in|at|near|from|to|around)\s+(?:the\s+)?[A-Z][a-z]+"
        r"|\b(?:city|town|country|park|beach|mountains?|museum|school|restaurant|caf[eé]|store|shop"
        r"|lake|forest|home|house|street|abroad|downtown)\b"
    ),
}
_WANTED: Final = (
    (re.compile(r"\bhow\s+(?:long|old|often)\b", re.IGNORECASE), SPAN),
    (re.compile(r"\bhow\s+(?:many|much)\b", re.IGNORECASE), NUMBER),
    (
        re.compile(
            r"\b(?:when|(?:what|which|whose)\s+(?:day|date|month|year|time)|since\s+when)\b", re.I
        ),
        TIME,
    ),
    (re.compile(r"\b(?:why|what\s+(?:made|motivated|inspired|caused)|reason)\b", re.I), REASON),
    (re.compile(r"\b(?:who|whom|whose)\b", re.IGNORECASE), PERSON),
    (re.compile(r"\b(?:where|(?:what|which)\s+(?:city|country|place|state|town))\b", re.I), PLACE),
)


def forms_of(text: str) -> int:
    """Return the mask of what a text could answer, and whether it asks itself.

    Examples
    --------
    >>> forms_of("Who came?") & ASKS == ASKS
    True
    >>> forms_of("We moved two years ago.") == TIME | SPAN | NUMBER
    True
    """
    return sum(bit for bit, pattern in _PATTERNS.items() if pattern.search(text))


def answer_wanted(question: str) -> int:
    """Return the mask of what would answer a question; 0 where its form does not tell.

    Examples
    --------
    >>> answer_wanted("How long did it take?") == SPAN
    True
    >>> answer_wanted("What did she paint?")
    0
    """
    return next((bit for pattern, bit in _WANTED if pattern.search(question)), 0)


_ASKS_FOR_TIME = re.compile(
    r"\bhow\s+(?:long|much\s+time|many\s+(?:turn|tick|hour|day|week|month|year)s)\b", re.IGNORECASE
)
_VERBS = frozenset({"did", "was", "were"})
_SIDES: Final = {"between": {"and"}, "after": {*_VERBS, "until"}, "before": _VERBS}
_TIME_PASSES = frozenset(
    """
    break delay elapse elapsed gap go gone interval lay lie lies pass passed pause spend spent take
    taken time took wait waited went
    """.split()  # noqa: SIM905
)
"""What else may stand before "between": "how long is the road between" asks for no time."""


def two_sides(question: str) -> tuple[str, ...]:
    """Return the two things between which a question asks for the time; nothing if it does not.

    Examples
    --------
    >>> two_sides("How long was it between the flood and the repair?")
    ('the flood', 'the repair')
    >>> two_sides("How many days after the flood did we fix the pump?")
    ('the flood', 'we fix the pump')
    >>> two_sides("What is between the house and the lake?"), two_sides(
    ...     "How long is the road between the house and the lake?")
    ((), ())
    >>> two_sides("How long did we wait before the doctor was ready?")
    ()
    """
    asked = _ASKS_FOR_TIME.search(question)
    words = question[asked.end() :].rstrip(" ?!.").split() if asked else []
    folded = [word.casefold() for word in words]
    for first, seconds in _SIDES.items():
        begin = folded.index(first) + 1 if first in folded else len(folded)
        lead = folded[: begin - 1]
        if not _TIME_PASSES.issuperset(content_words(" ".join(lead))):
            continue
        for at in range(begin + 1, len(words) - 1):
            # "How long did we wait before the doctor was ready", "how many days between the flood
            # and the repair were dry": the verb is of a clause, or of the days.
            clause = (
                folded[at] in _VERBS
                if lead
                else first == "between"
                and {"are", "did", "do", "had", "have", "were"}.intersection(folded[at:])
            )
            if folded[at] in seconds and not clause:
                return " ".join(words[begin:at]), " ".join(words[at + 1 :])
    return ()


_MOST_WORDS = 32


@dataclass(frozen=True)
class Question:
    """What a question asks, taken apart.

    Parameters
    ----------
    asked : str
        As it was asked.
    text : str
        What is looked for literally: its content words, or all of it where there are none.
    bare : str
        Without the names of entities: what is to be embedded, because a name pulls up what is
        said *to* its bearer. The question as asked, where nothing else is left.
    words : tuple of str
        Its content words without names and dates, each once, 32 at the most.
    entities : frozenset of int
        Who is named.
    dates : tuple of DateNamed
        When.
    wanted : int
        The form of the answer, see ``forms``.
    sides : tuple of (tuple of str)
        Content words of the two things between which it asks for the time; see `two_sides`.
    """

    asked: str
    text: str
    bare: str
    words: tuple[str, ...]
    entities: frozenset[int] = frozenset()
    dates: tuple[DateNamed, ...] = ()
    wanted: int = 0
    sides: tuple[tuple[str, ...], ...] = ()

    @property
    def of_a_day(self) -> bool:
        """Whether it asks for nothing but what was at a time that it names.

        A month or a year alone ("2019") is no question: it is looked for as a word.
        """
        asks = bool(self.words) or not QUESTION_WORDS.isdisjoint(plain_words(self.asked))
        named = any(asks or date.day is not None for date in self.dates)
        return named and not self.entities and _SAY_NOTHING.issuperset(self.words)


@dataclass(frozen=True, slots=True)
class PlainQuestion:
    """A cue as two texts.

    Parameters
    ----------
    text : str
        The raw words, for the lexical source.
    bare : str
        What is embedded.
    words : tuple of str
        Content words; none, since it is not taken apart.
    dates : tuple
        None either, and so it is never ``of_a_day``.
    """

    text: str
    bare: str
    words: tuple[str, ...] = ()
    dates: tuple[DateNamed, ...] = ()
    of_a_day: bool = False


AnyQuestion: TypeAlias = Question | PlainQuestion
"""What a reader makes of a cue: taken apart, or as two texts."""

_SAY_NOTHING = frozenset(
    """
    came chat chatted come discuss discussed going happen happened happening happens new news
    occurred recap said say spoke summarise summarize summary talk talked talking tell told topic
    topics
    """.split()  # noqa: SIM905
)


def read_question(text: str, view: VisibleEvents) -> Question:
    """Take a question apart, with what a view knows of names and of the time.

    Parameters
    ----------
    text : str
        The question.
    view : VisibleEvents
        Where it is asked.
    """
    known = view.names
    names = frozenset(word for word in plain_words(text) if word in known)
    bare = without(text, names) if names else text
    said = content_words(bare)
    if not said:
        bare = text
    dates, undated = read_dates(bare, view.now)
    said = said if undated == bare and said else content_words(undated)
    words = tuple(dict.fromkeys(said))[:_MOST_WORDS]
    return Question(
        asked=text,
        text=" ".join(words) or text,
        bare=bare,
        words=words,
        entities=frozenset().union(*(known[name] for name in names)),
        dates=tuple(dates),
        wanted=answer_wanted(text),
        sides=tuple(tuple(content_words(without(side, names))) for side in two_sides(text)),
    )


HALF_A_DAY = 0.5
"""At most so many days from its noon is on a day."""


def noon_of(day: date) -> int:
    """Return the noon of a day, in microseconds since 1970-01-01 UTC."""
    return round(datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp()) * 1_000_000


def days_from(dates: Sequence[DateNamed], stamps: IntArray, *, longer: bool = False) -> Column:
    """Return days from each time to the noon of the nearest day that is named; inf without one.

    Parameters
    ----------
    dates : sequence of DateNamed
        Those without a day are passed over; one without a year is of each time's own.
    stamps : ndarray of shape (n,), int64
        Microseconds since 1970-01-01 UTC.
    longer : bool, default False
        Take all days of a month or year that is named without a day.
    """
    out = np.full(stamps.shape, np.inf)
    own = stamps.astype("datetime64[us]").astype("datetime64[Y]").astype(np.int64) + 1970
    for named in dates:
        if named.day is None and not longer:
            continue
        for year in {named.year} if named.year is not None else set(own.tolist()):
            try:
                first, days = named.span(year)
            except (OverflowError, ValueError):  # 29 February of another year
                continue
            # Before the first noon, or after the last one.
            after = (stamps - noon_of(first)) / MICROSECONDS_A_DAY
            out = np.minimum(out, np.maximum(np.maximum(-after, after - (days - 1)), 0.0))
    return out
