"""The blueprint's question to a language model, and what its answers mean."""

from __future__ import annotations

import re

from cvx.causal.judges.protocol import Judgement
from cvx.escaping import between_quotes

PROMPT = (
    "Based on the preceding event: '{cause}', did it directly lead to the following event: "
    "'{effect}'? If yes, briefly explain the relationship. If no, simply respond with 'No.'"
)
"""The wording of the blueprint, section 4."""

MOST_CHARACTERS = 600
"""A longer answer is no brief explanation: nobody knows which sentence of it is the judgement."""

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
_THOUGHT = re.compile(
    r"<(/?)(?:think|thinking|thought|reasoning|reflection|analysis|scratchpad)>", re.IGNORECASE
)
_LABEL = re.compile(r"(?:final\s+)?(?:answer|verdict)\s*:\s*", re.IGNORECASE)
# A yes, and then a reason: something that is said beyond the yes, not taken back, not halved.
_ASSENT = re.compile(
    r"yes(?:[\s.,;:!*()'\"\-\u2013\u2014]+|$)(?:(?:explanation|reason|relationship)\s*:\s*)?",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_BARE = frozenset(
    _WORD.findall(
        "a absolutely and certainly clearly completely correct course definitely did directly do "
        "does exactly i in indeed is it it's of right so sure surely that that's the they this "
        "true very was were yes"
    )
)
_HALVED = re.compile(
    r"(?:but|though|although|if|not|(?:and|or)\s+no|no(?=\s*(?:[.,;:!]|$))|maybe|perhaps|possibly|probably|partly"
    r"|partially|potentially|indirectly|arguably|likely|in\s+(?:part|a\s+way|a\s+sense)"
    r"|(?:sort|kind)\s+of|to\s+(?:some|an|a\s+certain|a)\s+(?:extent|degree)"
    r"|(?:it|this|that|they)\s+(?:may|might|could|can)|i\s+(?:guess|suppose|would|am))\b",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"\b(?:unlikely|unrelated|however|coincid\w+|answer\s+is\s+no|say\s+no)\b", re.IGNORECASE
)
# An explanation without a yes counts only where it plainly states a cause: some answers that
# begin with neither yes nor no are denials, doubts, messages of a server, or another language.
_CAUSAL = re.compile(
    r"\A(?:(?:notably|specifically|in\s+particular)\s*[,:]"
    r"|.*(?:\b(?:because|due\s+to|owing\s+to|thanks\s+to|caus(?:ed?|es|ing)|led\s+(?:directly\s+)?to"
    r"|lead(?:s|ing)\s+(?:directly\s+)?to|result(?:ed|s|ing)\s+(?:in|from)"
    r"|as\s+a\s+(?:direct\s+)?(?:result|consequence)|consequently|therefore|thus|hence"
    r"|trigger(?:ed|s|ing)|prompt(?:ed|s|ing)|forc(?:ed|es|ing)|made|makes|making"
    r"|brought\s+(?:about|on)|gave\s+rise\s+to|set\s+off|in\s+response\s+to|responsible\s+for"
    r"|contribut(?:ed|es|ing)\s+to|produc(?:ed|es|ing))\b|[,;]\s*so\b))",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"[?{}\[\]<>=|\\]|n['\u2019]t\b|\b(?:no|not|nor|never|neither|none|nothing|nobody|cannot"
    r"|without|unlikely|unrelated|unconnected|unclear|unsure|uncertain|unknown|unable|hardly"
    r"|barely|doubt\w*|coincid\w*|independent\w*|separate\w*|irrelevant\w*|far\s+apart|may|might"
    r"|could|would|should|can|if|whether|perhaps|maybe|possibl[ey]|probabl[ey]|potential(?:ly)?"
    r"|likely|seem\w*|appear\w*|suggest\w*|assum\w*|imagin\w*|guess|suppose|believe|think|but"
    r"|however|although|though|else|other|another|instead|rather|sorry|please|yes)\b",
    re.IGNORECASE,
)
_FAILURE = re.compile(
    r"\A(?:\w+\s+){0,3}\w*(?:error|exception|traceback|time-?out|failure|http)\b", re.IGNORECASE
)


def question(cause: str, effect: str) -> str:
    """Return what a model is asked about a pair, each text on one line and within its quotes.

    Examples
    --------
    >>> question("it rained", "the cellar flooded")[:39]
    "Based on the preceding event: 'it raine"
    """
    return PROMPT.format(cause=between_quotes(cause), effect=between_quotes(effect))


def read_answer(answer: object) -> Judgement:
    """Return what a model's answer means.

    "yes" is said by "Yes" with a reason, or by a plain statement of a cause without doubt or
    denial; "no" by a denial. Anything else is "unjudged": no text, a page of it, a yes without a
    reason or with a doubt, a shrug, an error message, JSON, thoughts that never end.

    Examples
    --------
    >>> read_answer("No.").verdict, read_answer("Notably, the drain was blocked.").verdict
    ('no', 'yes')
    >>> read_answer("Yes, the drain was blocked.").why
    'the drain was blocked.'
    >>> read_answer("Unlikely.").why
    'neither a yes with a reason nor a no: Unlikely.'
    """
    if not isinstance(answer, str):
        return Judgement("unjudged", why=f"the answer is no text but {type(answer).__name__}")
    tags = list(_THOUGHT.finditer(answer))
    if tags and not tags[-1][1]:
        return Judgement("unjudged", why="the answer breaks off within its thoughts")
    plain = answer[tags[-1].end() if tags else 0 :].strip(_WRAPPING)
    if label := _LABEL.match(plain):
        plain = plain[label.end() :].strip(_WRAPPING)
    if not plain:
        return Judgement("unjudged", why="the answer is empty")
    if len(plain) > MOST_CHARACTERS:
        return Judgement("unjudged", why=f"the answer is a page of {len(plain)} characters")
    if _DENIAL.match(plain) or _DENIED.match(plain):
        if re.search(r"\byes\b", plain, re.IGNORECASE):
            return Judgement("unjudged", why=f"both yes and no: {plain}")
        return Judgement("no", why=plain)
    reason = _reason(" ".join(plain.split()))
    if reason is None:
        return Judgement("unjudged", why=f"neither a yes with a reason nor a no: {plain}")
    return Judgement("yes", why=reason)


def _reason(plain: str) -> str | None:
    """How the one led to the other, where that is plainly said."""
    if assent := _ASSENT.match(plain):
        reason = plain[assent.end() :]
        said = [word for word in _WORD.findall(reason.lower()) if word not in _BARE]
        doubted = _HALVED.match(reason) or _TAKEN_BACK.search(reason) or _DENIED.search(reason)
        return reason if len(said) > 1 and not doubted else None
    told = plain[:1].isalpha() and _CAUSAL.match(plain)
    return plain if told and not _UNSURE.search(plain) and not _FAILURE.match(plain) else None
