"""Judges of causes: rules, statistics, a language model, any callable, or none."""

from cvx.causal.judges.asking import CallableJudge, LLMJudge, NoJudge, ServerJudge, as_judge
from cvx.causal.judges.prompt import PROMPT, question, read_answer
from cvx.causal.judges.protocol import Judge, Judgement, Pair, Verdict, judgements
from cvx.causal.judges.rules import RuleJudge

__all__ = [
    "PROMPT",
    "CallableJudge",
    "Judge",
    "Judgement",
    "LLMJudge",
    "NoJudge",
    "Pair",
    "RuleJudge",
    "ServerJudge",
    "Verdict",
    "as_judge",
    "judgements",
    "question",
    "read_answer",
]
