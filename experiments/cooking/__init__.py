"""Cooking games of TextWorld: a second world for the agent of `experiments.textgames`."""
