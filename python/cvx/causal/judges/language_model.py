"""Judges of causes that ask a language model: the prompt, the client, parsing the answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from inspect import isawaitable, signature
from typing import Any

from cvx.arguments import above_zero, optional
from cvx.causal.judges.protocol import Judge, Judgement, Pair
from cvx.errors import InvalidInputError
from cvx.escaping import between_quotes
from cvx.time_limits import Calls, Outcome

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


DEFAULT_TIMEOUT_S = 60.0
_METHODS = ("complete", "generate_content", "generate", "invoke", "ask", "chat")
_HOLDING = (
    *("output_text", "text", "choices", "message", "content", "response", "generated_text"),
    *("answer", "output"),
)
_MOST_TOKENS = 300


class NoJudge:
    """A judge that answers nothing: every pair stays unjudged."""

    name = "none"

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Leave every pair open."""
        return [Judgement("unjudged", why="nobody was asked") for _ in pairs]


class CallableJudge:
    """Asks a function of (cause text, effect text).

    Parameters
    ----------
    function : callable
        Returns a ``Judgement``; or a bool; or a probability, of which 0.5 and more is a yes; or
        the text of an explanation, read like a model's answer; or None for a no.
    name : str, optional
        Default the function's own.

    Examples
    --------
    >>> judge = CallableJudge(lambda cause, effect: "rain" in cause, name="rain")
    >>> [made.verdict for made in judge.judge([Pair("rain", "mud"), Pair("sun", "mud")])]
    ['yes', 'no']
    """

    def __init__(self, function: Callable[[str, str], object], *, name: str | None = None) -> None:
        self.function = function
        self.name = name or getattr(function, "__name__", type(function).__name__)

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Ask for each pair."""
        return [_meant(self.function(pair.cause, pair.effect)) for pair in pairs]


def _meant(answer: object) -> Judgement:
    if isinstance(answer, Judgement):
        return answer
    if answer is None:
        return Judgement("no")
    if isinstance(answer, bool):
        return Judgement("yes" if answer else "no")
    if isinstance(answer, (int, float)):
        if not 0.0 <= answer <= 1.0:
            return Judgement("unjudged", why=f"the answer {answer} is no probability")
        return Judgement("yes" if answer >= 0.5 else "no", float(answer))
    return read_answer(answer)


class LLMJudge:
    """Asks a language model the blueprint's question.

    Parameters
    ----------
    client : object
        A function from prompt to answer, also a coroutine function; a client of OpenAI (chat or
        responses), Anthropic, Gemini or Ollama; a pipeline of Hugging Face; or anything with
        ``complete``, ``generate_content``, ``generate``, ``invoke``, ``ask`` or ``chat``. Answers
        may be text, mappings, lists of blocks, or objects that hold text.
    model : str, optional
        Named in the requests of clients that want a name.
    timeout_s : float or None, default 60
        Seconds after which an answer is not waited for any more; ``None`` for ever.

    Raises
    ------
    InvalidInputError
        A client that cannot be asked; a time-out that is not above 0.

    Examples
    --------
    >>> judge = LLMJudge(lambda prompt: "Yes. Water came in through the drain.")
    >>> judge.judge([Pair("it rained", "the cellar is flooded")])[0].why
    'Water came in through the drain.'
    """

    name = "llm"

    def __init__(
        self,
        client: object,
        *,
        model: str | None = None,
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
    ) -> None:
        self._ask = asker(client, timeout_s, model)

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Ask for each pair; a failure or a time-out leaves it unjudged."""
        return [self._judged(pair) for pair in pairs]

    def _judged(self, pair: Pair) -> Judgement:
        answer = self._ask(question(pair.cause, pair.effect))
        if answer.problem:
            return Judgement("unjudged", why=answer.problem)
        return read_answer(answer.value)


def asker(
    client: object, timeout_s: float | None = DEFAULT_TIMEOUT_S, model: str | None = None
) -> Callable[[str], Outcome[object]]:
    """Return a function from a prompt to an answer, for a model client of any shape.

    Parameters
    ----------
    client, timeout_s, model
        As for ``LLMJudge``.

    Raises
    ------
    InvalidInputError
        A client that cannot be asked; a time-out that is not above 0.
    """
    optional(above_zero)("timeout_s", timeout_s)
    ask, calls = _method(client, model), Calls()
    return lambda prompt: calls.run(lambda: ask(prompt), timeout_s)


def _method(client: object, model: str | None) -> Callable[[str], object]:
    """Return what asks a client, whatever its shape; its answer is text where it holds any."""
    shape = None if isinstance(client, type) else _shape(client, model)
    if shape is None:
        kind = client.__name__ if isinstance(client, type) else type(client).__name__
        raise InvalidInputError(
            f"{kind} cannot be asked: give a function from prompt to answer, a client of OpenAI, "
            "Anthropic, Gemini or Ollama, a pipeline, or an object with one of "
            f"{', '.join(_METHODS)}"
        )
    return lambda prompt: _text(_awaited(shape(prompt)), prompt)


def _shape(client: object, model: str | None) -> Callable[[str], object] | None:
    named = {} if model is None else {"model": model}
    for path, arguments in _REQUESTS.items():
        if (create := _at(client, *path)) is not None:
            chat = {"model": model} if path[0] == "chat" else named
            # It returns at once: the names stand for this turn alone.
            return lambda prompt: create(**arguments(prompt), **chat)
    found = (method for name in _METHODS if (method := _at(client, name)) is not None)
    method = next(found, _at(client))
    return None if method is None else _fitted(method, named)


def _fitted(
    method: Callable[..., object], named: Mapping[str, str]
) -> Callable[[str], object] | None:
    """Call a method as its parameters say; None where it takes no prompt."""
    try:
        taken = signature(method)
    except (TypeError, ValueError):  # what is compiled may not say
        return method
    if "messages" in taken.parameters:
        return lambda prompt: method(messages=_said(prompt), **named)
    if "prompt" in taken.parameters and "model" in taken.parameters:
        return lambda prompt: method(prompt=prompt, **named)
    try:
        taken.bind("")
    except TypeError:
        return None
    return method


def _said(prompt: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": prompt}]


_REQUESTS: Mapping[tuple[str, ...], Callable[[str], dict[str, Any]]] = {
    ("chat", "completions", "create"): lambda prompt: {"messages": _said(prompt)},
    ("responses", "create"): lambda prompt: {"input": prompt},
    ("messages", "create"): lambda prompt: {
        "max_tokens": _MOST_TOKENS,
        "messages": _said(prompt),
    },
    ("models", "generate_content"): lambda prompt: {"contents": prompt},
}
"""Where clients of OpenAI (twice), Anthropic and Gemini take a request, and its form."""


def _at(thing: object, *names: str) -> Callable[..., object] | None:
    for name in names:
        thing = getattr(thing, name, None)
    return thing if callable(thing) else None


def _awaited(reply: object) -> object:
    """Wait for what an asynchronous client gave; in a thread of its own where a loop is running."""
    if not isawaitable(reply):
        return reply

    async def waiting() -> object:
        return await reply

    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(waiting())
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, waiting()).result()


def _text(reply: object, prompt: str, depth: int = 6) -> object:
    """The text that a reply holds: of strings, mappings, lists of blocks, objects; else itself."""
    if isinstance(reply, str):
        # A pipeline repeats what it was asked.
        return reply.removeprefix(prompt)
    if depth == 0:
        return reply
    if isinstance(reply, (list, tuple)):
        parts = [_text(part, prompt, depth - 1) for part in reply]
        texts = [part for part in parts if isinstance(part, str)]
        return "".join(texts) if texts else reply
    for name in _HOLDING:
        inner = reply.get(name) if isinstance(reply, Mapping) else getattr(reply, name, None)
        if inner is not None and not callable(inner):
            if name == "choices":
                inner = inner[:1]
            elif name == "generated_text" and isinstance(inner, list):
                inner = inner[-1:]
            found = _text(inner, prompt, depth - 1)
            if isinstance(found, str):
                return found
    return reply


def as_judge(thing: Any, *, timeout_s: float | None = DEFAULT_TIMEOUT_S) -> Judge:
    """Return a judge: ``None`` is nobody, a judge is itself, anything else is a language model.

    Raises
    ------
    InvalidInputError
        Something that cannot be asked.
    """
    if thing is None:
        return NoJudge()
    if isinstance(thing, Judge):
        return thing
    return LLMJudge(thing, timeout_s=timeout_s)
