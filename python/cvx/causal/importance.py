"""How much something matters, from 1 to 10: by rules, or by a language model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from cvx.calls import Calls
from cvx.causal.judges.asking import DEFAULT_TIMEOUT_S, as_asker
from cvx.errors import InvalidParameterError
from cvx.escaping import between_quotes

LEAST, MOST = 1.0, 10.0

PROMPT = (
    "On a scale of 1 to 10, where 1 is purely mundane (sweeping the floor) and 10 is extremely "
    "momentous (a war, a plague, a death), rate how much the following matters: '{text}'. "
    "Answer with one number."
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_SCALE = re.compile(r"(?:/|\bout of)\s*10\b")
_WEIGHTY = (
    (
        3.0,
        re.compile(
            r"\b(?:death|dead|died|dies|kill|war|plague|famine|massacre|catastroph|collaps)",
            re.IGNORECASE,
        ),
    ),
    (
        2.0,
        re.compile(
            r"\b(?:crisis|outbreak|emergenc|riot|fire|flood|disaster|bankrupt|attack|injur|arrest"
            r"|betray)",
            re.IGNORECASE,
        ),
    ),
    (
        1.0,
        re.compile(
            r"\b(?:refus|reject|resign|vote|law|budget|shortage|strike|protest|broke|fail|lost"
            r"|promis)",
            re.IGNORECASE,
        ),
    ),
)
"""What a class of words adds, and how such words begin; the gravest first."""
_KINDS = MappingProxyType(
    {"observation": 3.0, "conversation": 4.0, "event": 5.0, "reflection": 6.0, "crisis": 7.0}
)


@runtime_checkable
class Importance(Protocol):
    """Anything that says how much something matters."""

    def rate(self, text: str, kind: str) -> float:
        """Return a number from 1 to 10."""
        ...


class RuleImportance:
    """Goes by the kind and by words of weight; needs no model.

    A kind has its own number, to which the gravest class of words in the text adds 1 to 3, and an
    exclamation mark or a number of three digits and more another half.

    Parameters
    ----------
    kinds : mapping of str to float, optional
        In place of, or beside, those of observation (3), conversation (4), event (5), reflection
        (6) and crisis (7); a kind that is not known counts as an observation.

    Examples
    --------
    >>> rules = RuleImportance()
    >>> rules.rate("Swept the floor", "observation"), rules.rate("300 died of plague", "event")
    (3.0, 8.5)
    """

    def __init__(self, kinds: Mapping[str, float] | None = None) -> None:
        self.kinds = {**_KINDS, **(kinds or {})}
        for kind, value in self.kinds.items():
            if not LEAST <= value <= MOST:
                raise InvalidParameterError(f"{kind} counts {value}: give a number from 1 to 10")

    def rate(self, text: str, kind: str) -> float:
        """Return a number from 1 to 10."""
        gain = next((gain for gain, words in _WEIGHTY if words.search(text)), 0.0)
        loud = 0.5 if "!" in text or re.search(r"\d{3}", text) else 0.0
        return min(MOST, self.kinds.get(kind, self.kinds["observation"]) + gain + loud)


class LLMImportance:
    """Asks a language model; where it fails, somebody else is asked.

    Parameters
    ----------
    client : object
        A client of any shape, as for ``LLMJudge``.
    fallback : Importance, optional
        Default ``RuleImportance()``.
    timeout_s : float or None, default 60
        Seconds after which an answer is not waited for any more.

    Examples
    --------
    >>> LLMImportance(lambda prompt: "8/10").rate("The well is dry", "observation")
    8.0
    """

    def __init__(
        self,
        client: object,
        *,
        fallback: Importance | None = None,
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
    ) -> None:
        self._ask = as_asker(client)
        self._calls = Calls()
        self.fallback = fallback or RuleImportance()
        self.timeout_s = timeout_s

    def rate(self, text: str, kind: str) -> float:
        """Return a number from 1 to 10."""
        prompt = PROMPT.format(text=between_quotes(text))
        answer = self._calls.run(lambda: self._ask(prompt), self.timeout_s).value
        numbers = _NUMBER.findall(_SCALE.sub("", answer)) if isinstance(answer, str) else []
        found = {float(number) for number in numbers}
        # Two different numbers are no answer: nobody knows which of them is meant.
        rated = found.pop() if len(found) == 1 else 0.0
        return rated if LEAST <= rated <= MOST else self.fallback.rate(text, kind)
