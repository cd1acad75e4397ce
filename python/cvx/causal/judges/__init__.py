"""Judges of causes: rules, statistics, a language model, any callable, or none."""

from cvx.causal.judges.protocol import Judge, Judgement, Pair, Verdict

__all__ = ["Judge", "Judgement", "Pair", "Verdict"]
