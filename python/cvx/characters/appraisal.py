"""How important an event is to a character, and from that how slowly it is forgotten."""

from __future__ import annotations

import re
from typing import NamedTuple

from cvx.scoring.formulas import importance

CRITICAL = 0.8
"""What bears on a goal so much is never forgotten."""
INFLUENCES = {"retrieved": 0.05, "influenced": 0.2, "emotional": 0.3}
"""How much of what is missing to a full hold each kind of reinforcement adds."""

_FEELING = re.compile(
    r"\b(?:ador|afraid|alarm|amaz|anger|angr|anxi|asham|betray|cried|cry|dead|death|delight|despair"
    r"|desperat|devastat|die[ds]?\b|disgust|dread|embarrass|envy|excit|fear|forgiv|frighten|funeral"
    r"|furious|grie[fv]|guilt|happ(?:y|ie)|hat(?:e|red)|heartbr|hope|horr|humiliat|hurt|jealous|joy"
    r"|kill|kiss|lonel|lov(?:e|ed|ing)\b|mourn|nightmare|panic|proud|rage|regret|reliev|sad|scare"
    r"|scream|shock|sob|sorr(?:y|ow)|surpris|tear[s]\b|terrif|threat|thrill|trembl|upset|wept|wound"
    r"|worr)",
    re.IGNORECASE,
)


class Appraisal(NamedTuple):
    """Importance of an event to one character.

    Attributes
    ----------
    goal_relevance : float
        How far it bears on a goal, in [0, 1].
    emotional_impact : float
        How much feeling is in it, in [0, 1].
    novelty : float
        How little it is like what is remembered, in [0, 1].

    Examples
    --------
    >>> plain = Appraisal(goal_relevance=0.5, emotional_impact=0.0, novelty=1.0)
    >>> plain.importance, plain.hold
    (0.5, 0.5)
    >>> moving = Appraisal(goal_relevance=0.5, emotional_impact=1.0, novelty=0.0)
    >>> moving.importance, moving.hold
    (0.5, 0.75)
    """

    goal_relevance: float
    emotional_impact: float
    novelty: float

    @property
    def importance(self) -> float:
        """0.4 * goal relevance + 0.3 * emotional impact + 0.3 * novelty."""
        return importance(*self)

    @property
    def hold(self) -> float:
        """The salience to store, 1 for what is critical to a goal; see `held`."""
        if self.goal_relevance >= CRITICAL:
            return 1.0
        return held(self.importance, self.emotional_impact)


def held(importance: float, emotional_impact: float) -> float:
    """Return the salience of an event from its importance and emotional impact.

    The importance, and with feeling up to half of what is missing to 1 more.

    Examples
    --------
    >>> held(0.5, 0.0), held(0.5, 1.0)
    (0.5, 0.75)
    """
    return 1.0 - (1.0 - importance) * (1.0 - 0.5 * emotional_impact)


def feeling_in(text: str) -> float:
    """Return how emotional the words of a text are, in [0, 1].

    Examples
    --------
    >>> feeling_in("The soup is ready."), feeling_in("I was terrified, and I wept.")
    (0.0, 0.6666666666666666)
    """
    return min(1.0, (len(_FEELING.findall(text)) + 0.5 * ("!" in text)) / 3.0)


def reinforced(hold: float, how: str, share: float = 1.0) -> float:
    """Return the salience after a reinforcement; it never falls.

    Examples
    --------
    >>> reinforced(0.5, "influenced")
    0.6
    """
    return hold + (1.0 - hold) * INFLUENCES[how] * share
