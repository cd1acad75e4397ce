"""Judges of causes: rules, statistics, a language model, any callable, or none."""

from cvx.causal.judges.language_model import (
    PROMPT,
    CallableJudge,
    LLMJudge,
    NoJudge,
    as_judge,
    question,
    read_answer,
)
from cvx.causal.judges.offline import RuleJudge
from cvx.causal.judges.protocol import Judge, Judgement, Pair, Verdict, judgements

__all__ = [
    "PROMPT",
    "CallableJudge",
    "Judge",
    "Judgement",
    "LLMJudge",
    "NoJudge",
    "Pair",
    "RuleJudge",
    "Verdict",
    "as_judge",
    "judgements",
    "question",
    "read_answer",
]
