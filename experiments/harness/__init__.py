"""Experiments on learning from episodes: protocols, arms, statistics and a report, in any domain.

A domain (`experiments.harness.domain`) brings games and demonstrations; everything else is the same
for all of them. Start one with its package, such as ``python -m experiments.alfworld``.
"""
