"""Benches of prediction: the next action, and the outcome of a task."""
