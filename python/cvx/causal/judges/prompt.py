"""The blueprint's question to a language model, and what its answers mean."""

from __future__ import annotations

import re

from cvx.causal.judges.protocol import Judgement

PROMPT = (
    "Based on the preceding event: '{cause}', did it directly lead to the following event: "
    "'{effect}'? If yes, briefly explain the relationship. If no, simply respond with 'No.'"
)
"""The wording of the blueprint, section 4."""

MOST_CHARACTERS = 600
"""A longer answer is no brief explanation: nobody knows which sentence of it is the judgement."""

_THOUGHTS = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_WRAPPING = " \t\r\n\"'`*_\u2018\u2019\u201c\u201d"
# "No" as a word of its own, ended by a stop or by the subject of a denial: "No one repaired the
# drain" and "No doubt it did" are explanations, and so is "Notably, ...".
_DENIAL = re.compile(
    r"no(?:\s*(?:$|[.,;:!)\-\u2013\u2014\n*'\"])|\s+(?:it|there|this|that|these|they)\b)"
    r"|not\s+(?:directly|really|necessarily|exactly|likely|at all|causally)\b"
    r"|nope\b|unrelated\b|(?:none|false)\s*[.!]?$",
    re.IGNORECASE,
)
# What models say instead of the "No." they were asked for. Only the two events, and only their
# being cause and effect, are denied so: "The drain did not hold" is an explanation.
_NOUN = (
    r"(?:(?:direct|causal|clear|obvious|apparent|evident|logical|known)\s+)*"
    r"(?:caus(?:al|e|ality|ation)|relation(?:ship)?|connection|link|evidence\s+that)\b"
)
_PAIR = (
    r"(?:it|this|that|they|(?:the|these)(?:\s+(?:first|former|preceding|previous|earlier|two))?"
    r"(?:\s+(?:event|one)s?)?)"
)
_DENIED = re.compile(
    rf"(?:there\s+(?:is|was|(?:seems|appears)\s+to\s+be)\s+)?no\s+{_NOUN}"
    rf"|{_PAIR}\s+(?:did|does|do|is|are|was|were)(?:\s+not|n['\u2019]t)\s*"
    r"(?:[.!]|$|(?:(?:directly|causally)\s+)?(?:lead|cause|result\s+in"
    r"|(?:related|connected|linked)\s*(?:[.,;!]|$)))"
    rf"|{_PAIR}\s+(?:is|are|seem|appear)\s+(?:to\s+be\s+)?unrelated\b",
    re.IGNORECASE,
)
_NO_OPINION = re.compile(
    r"(?:i\s+(?:do\s*n[o']t|don\u2019t|cannot|can't|can\u2019t|am\s+(?:not\s+sure|unable))"
    r"|i'?m\s+(?:not\s+sure|unable|sorry)|sorry\b|as\s+an\s+ai\b|unclear\b|unknown\b"
    r"|(?:it\s+is|it's)\s+(?:unclear|impossible)|insufficient\b|cannot\s+(?:be\s+)?determine|n/a\b"
    r"|not\s+(?:sure|clear)\b|(?:it\s+is|it's)\s+not\s+clear\b|maybe\b|perhaps\b|possibly\s*[.!]?$)",
    re.IGNORECASE,
)
_LABEL = re.compile(r"(?:answer|verdict)\s*:\s*", re.IGNORECASE)
_ASSENT = re.compile(r"yes\b[\s.,;:!\-\u2013\u2014*]*", re.IGNORECASE)


def question(cause: str, effect: str) -> str:
    """Return what a model is asked about a pair, each text on one line.

    Examples
    --------
    >>> question("it rained", "the cellar flooded")[:39]
    "Based on the preceding event: 'it raine"
    """
    return PROMPT.format(cause=" ".join(cause.split()), effect=" ".join(effect.split()))


def read_answer(answer: object) -> Judgement:
    """Return what a model's answer means.

    A denial is "no"; an explanation, with or without "Yes" before it, is "yes"; no text, a page
    of it, or a shrug is "unjudged".

    Examples
    --------
    >>> read_answer("No.").verdict, read_answer("Notably, the drain was blocked.").verdict
    ('no', 'yes')
    >>> read_answer("Yes, the drain was blocked.").why
    'the drain was blocked.'
    """
    if not isinstance(answer, str):
        return Judgement("unjudged", why=f"the answer is no text but {type(answer).__name__}")
    plain = _THOUGHTS.sub("", answer).strip(_WRAPPING)
    if label := _LABEL.match(plain):
        plain = plain[label.end() :].strip(_WRAPPING)
    if not plain:
        return Judgement("unjudged", why="the answer is empty")
    if len(plain) > MOST_CHARACTERS:
        return Judgement("unjudged", why=f"the answer is a page of {len(plain)} characters")
    if _DENIAL.match(plain) or _DENIED.match(plain):
        return Judgement("no", why=plain)
    if _NO_OPINION.match(plain):
        return Judgement("unjudged", why=f"no opinion: {plain}")
    explained = _ASSENT.sub("", plain, count=1) if _ASSENT.match(plain) else plain
    return Judgement("yes", why=" ".join(explained.split()) or "the one directly led to the other")
