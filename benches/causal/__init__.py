"""Benches of the causal parts, and their data."""
