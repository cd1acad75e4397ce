"""Detects effects whose words only ask, deny, doubt, concede or correct a cause (English)."""

from __future__ import annotations

import math
import re
from functools import lru_cache

LEFT_OPEN = "it only asks, denies, doubts or corrects it"
"""What is said for a link that the words of its effect leave open."""
REVERSED = "it only says that the opposite is so"
"""What is said for a link whose effect is its cause with one word turned round: a recovery."""
_OPPOSITES = """
up down on off in out open closed opened closed started stopped enabled disabled locked unlocked
lost found failed succeeded failed recovered raised cleared full empty online offline
"""
_OPPOSITE = frozenset(
    frozenset(pair)
    for words in [_OPPOSITES.split()]
    for pair in zip(words[::2], words[1::2], strict=True)
)
_AGAINST = ("un", "in", "im", "dis", "non", "non-")
# Everything below is bounded: a text may be long, and of anybody.
_ENDS = re.compile(r"(?<=[.!?])\s|\n")
_CUE = (
    r"(?:because|due to|owing to|on account of|caused by|as a (?:result|consequence) of"
    r"|in response to|the result of|a consequence of|result(?:ed|ing)? from)"
)
_NOT = r"(?:\bnot|n['\u2019]t|\bnever|\bhardly|\bno longer|\bnor)"
_NOT_ONLY = r"(?! (?:only|just|merely|simply|solely|least)\b)"
_NOBODY = (
    r"(?:\bnobody|\bno[- ]one|\bnone|\bfew|\bhardly any(?:one|body)|\bneither|\bno \w+|\bcannot"
    rf"|{_NOT})"
)
# A subject and a verb: "believes the deal failed", where "believed the report" has no verb.
_CLAUSE = (
    rf"(?:(?!{_CUE})[\w'\u2019-]+ ){{1,8}}?(?!{_CUE})(?:\w{{2,}}ed|is|are|was|were|has|have"
    r"|had|did|does|will|would|can|could|became|began|broke|came|fell|fled|got|grew|led|left|lost"
    r"|made|ran|rose|sank|shut|stood|took|went)\b"
)


_QUESTION_FORMS = (
    r"\?[\"')\u201d\u2019\]]{0,3}$",
    r"^(?:why|how come)\b",
    r"^(?:did|does) (?!not\b)",
    r"^(?:was|were|is|are|has|have|had|could|can|will|would) (?:the|an?|it|he|she|they|we|you|i|my"
    r"|our|your|his|her|their|this|that|these|those|there|any\w*|some\w*)\b",
)
_QUESTION = re.compile("|".join(_QUESTION_FORMS), re.IGNORECASE)
_DENIED_FORMS = (
    # It is not true that; it is a myth that; there is no evidence that.
    rf"{_NOT} (?:\w+ ){{0,2}}?(?:true|the case)\b(?! {_CUE})",
    rf"{_NOT} (?:\w+ ){{0,2}}?(?:true|correct|right|accurate|the case|so|clear|certain|sure|known"
    r"|proven|proved|established|likely|plausible|convinced) (?:that|whether|if|why)\b",
    r"\b(?:untrue|unlikely|unproven|unclear|uncertain|false|wrong|incorrect|doubtful|questionable"
    r"|disputed|unfounded|nonsense|(?:myth|lie|rumou?r|fiction|mistake|error|legend))"
    r" (?:that|whether|if|to (?:say|think|believe|claim|assume|suppose))\b",
    r"\b(?:no|little|any|scant) (?:evidence|proof|indication|truth|suggestion|reason to \w+)"
    r" (?:that|in the (?:claim|idea|rumou?r|story))\b",
    # The claim that it failed because is wrong; they falsely say.
    r"\b(?:claim|rumou?r|idea|theory|story|belief|notion|suggestion|report)s? that .{0,200}?"
    r"\b(?:is|was|are|were|proved|turned out)(?: to be)? (?:\w+ )?(?:false|wrong|untrue"
    r"|unfounded|mistaken|baseless|refuted|disproved|nonsense)[.!]{0,3}$",
    r"\b(?:falsely|wrongly|mistakenly) (?:claim|believ|say|said|assum|think|thought|suppos|report)",
    # Nothing to do with; was not the reason for.
    r"\bnothing (?:whatsoever |at all )?to do with\b",
    r"\b(?:unrelated|unconnected) (?:to|with)\b",
    r"\bno (?:part|role|bearing|influence|hand) (?:in|on)\b",
    r"\bno (?:link|connection|relation|relationship) between\b",
    rf"{_NOT} (?:\w+ )?(?:why|related to|connected with|to blame|at fault|responsible for"
    r"|(?:the|a|its) (?:\w+ )?(?:cause|reason|fault|culprit))\b",
    rf"{_NOT} (?:\w+ )?(?:cause|lead to|trigger|bring about|contribute to|result in)\b",
)
_DENIED = re.compile("|".join(_DENIED_FORMS), re.IGNORECASE)
_DOUBTED_FORMS = (
    # Nobody believes that it failed because; she denies that; they ask whether.
    rf"{_NOBODY} (?:(?:of )?\w+ ){{0,4}}?(?:believ|think|thought|claim|suppos|suspect|accept|assum"
    rf"|maintain|argu|agree|prove|show|suggest|convinced|buy)\w* (?:that\b|{_CLAUSE})",
    rf"\b(?:doubt|den(?:y|ie)|disput|reject|refut|dismiss|question|disbeliev|contest|disprov"
    rf"|rul\w+ out)\w* (?:(?:the|any|an?) \w+ )?(?:that\b|{_CLAUSE})",
    r"\bwhether\b",
    r"\b(?:wonder|ask|know|knew|unclear|unsure|uncertain|unknown)\w* (?:if|why)\b",
)
_DOUBTED = re.compile("|".join(_DOUBTED_FORMS), re.IGNORECASE)
_OF_CAUSE = re.compile(
    rf"\b(?:{_CUE}|thanks to|after|following|since|caus\w+|led to|trigger\w*|made)\b", re.IGNORECASE
)
# What follows is named as no cause, up to the next comma or the word that names another.
_WHAT = r"(?:(?! but | because | due to | thanks to |[.!?]{1,3}$)[^,;:()])++"
_NAMED_FORMS = (
    r"\b(?:despite|in spite of|(?<!as )\b(?:al|even )?though|even (?:if|when|after|with)"
    r"|regardless of|irrespective of|notwithstanding|no matter|unaffected by|undeterred by"
    rf"|independent(?:ly)? of|without regard (?:to|for)|in defiance of)\b{_WHAT}",
    rf"(?:{_NOT}|\brather than|\binstead of|\bother than){_NOT_ONLY}(?: being)?"
    rf" {_CUE}\b{_WHAT}",
)
_NAMED = re.compile("|".join(_NAMED_FORMS), re.IGNORECASE)

# German too, as what people say in passing often is. "No trains ran" corrects nothing.
_CORRECTION = re.compile(
    r"\A\W{0,3}(?:(?:no|nope|sorry|pardon|oops|wait|correction|nein|korrektur|entschuldigung|falsch)"
    r" ?[,:;.!\u2013\u2014-]|(?:actually|rather|i mean|i meant|make that|eigentlich|genauer)\b)",
    re.IGNORECASE,
)
_OTHERWISE = re.compile(
    r"n['\u2019]t\b|\b(?:not|no longer|any ?more|instead|nicht|kein\w{0,2}|sondern"
    r"|stattdessen)\b",
    re.IGNORECASE,
)


def reverses(earlier: str, later: str) -> bool:
    """Return whether two texts say the same but for one word and its opposite.

    Examples
    --------
    >>> reverses("Switch b-14 unreachable", "Switch b-14 reachable")
    True
    >>> reverses("The pump stopped", "The cellar flooded")
    False
    """
    one, other = earlier.casefold().split(), later.casefold().split()
    if len(one) != len(other):
        return False
    turned = [(a.strip(".,!:"), b.strip(".,!:")) for a, b in zip(one, other, strict=True) if a != b]
    return len(turned) == 1 and (
        frozenset(turned[0]) in _OPPOSITE
        or any({part + turned[0][0], part + turned[0][1]} & {*turned[0]} for part in _AGAINST)
    )


@lru_cache(maxsize=16_384)
def least_repeated(text: str) -> float:
    """Return how much of an earlier text this one must repeat to be its correction.

    Returns
    -------
    float
        A share of the earlier text's words; above 1 where the text corrects nothing, or names a
        cause.

    Examples
    --------
    >>> least_repeated("No, it's Tuesday: the dentist comes on Tuesday.") < 0.5
    True
    >>> least_repeated("The dentist does not come on Monday.")
    0.6
    >>> least_repeated("No trains ran on Monday.") > 1
    True
    """
    if _OF_CAUSE.search(text):
        return math.inf
    if _CORRECTION.search(text):
        return 1 / 3
    return 0.6 if _OTHERWISE.search(text) else math.inf


@lru_cache(maxsize=16_384)
def stated(text: str) -> tuple[str, str]:
    """Return what a text states, and what it only asks, denies, doubts or concedes.

    Of several sentences each is looked at by itself; of a clause that names no cause, only what it
    names is taken out. "Did not start because" names a cause of what did not happen, as logs mostly
    mean it; "not because" denies one.

    Examples
    --------
    >>> stated("Flights resumed despite the strike.")
    ('Flights resumed .', 'despite the strike')
    >>> stated("Did the meeting fail because Ann called?")
    ('', 'Did the meeting fail because Ann called?')
    """
    kept, opened = [], []
    for sentence in (" ".join(part.split()) for part in _ENDS.split(text)):
        doubt = _DOUBTED.search(sentence)
        if (
            _QUESTION.search(sentence)
            or _DENIED.search(sentence)
            or (doubt and _OF_CAUSE.search(sentence, doubt.start()))
        ):
            opened.append(sentence)
        else:
            opened += [one.group() for one in _NAMED.finditer(sentence)]
            kept.append(_NAMED.sub("", sentence))
    return (" ".join(kept), " ".join(opened)) if opened else (text, "")
