"""Experiments on cvx, as anybody could write them: they import its public names and nothing else.

| package | is |
|---|---|
| `harness` | protocols, arms, statistics and the report, the same in every domain |
| `alfworld`, `cooking` | two domains; ``python -m experiments.alfworld`` plays the first |
| `textgames` | the agent that plays them, its controls, and a language model in its place |
| `plans` | goals reached by commands, remembered as plans with variables |
| `chat` | a language model behind a server, its answers kept, its runs logged |

The wheel of cvx holds none of it. What it needs stands in ``pyproject.toml``, in the dependency
group ``experiments``; ``make`` installs it.
"""
