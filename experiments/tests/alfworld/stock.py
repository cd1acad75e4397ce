"""Plays command lists on the stock TextWorld environment; run as a program, without cvx.

Reads ``[[path, [command, ...]], ...]`` as JSON from standard input and writes, for every game, the
states [text, admissible commands, won, reward, done] from reset on.
"""

from __future__ import annotations

import json
import sys

from alfworld.agents.environment.alfred_tw_env import (  # type: ignore[import-untyped]
    AlfredDemangler,
    AlfredInfos,
)
from textworld.core import EnvInfos  # type: ignore[import-untyped]
from textworld.envs.pddl import PddlEnv  # type: ignore[import-untyped]


def main() -> None:
    answers = []
    for path, commands in json.load(sys.stdin):
        infos = EnvInfos(admissible_commands=True, won=True)
        env = AlfredInfos(AlfredDemangler(PddlEnv(infos), shuffle=False))
        env.load(path)
        state = env.reset()
        states = [[state["feedback"], state["admissible_commands"], state["won"], 0, False]]
        for command in commands:
            state, reward, done = env.step(command)
            states.append(
                [state["feedback"], state["admissible_commands"], state["won"], reward, done]
            )
        answers.append(states)
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
