"""Small text worlds with a known optimum, to see whether a memory lets an agent learn."""
