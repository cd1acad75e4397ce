"""Online steps until problems of Gymnasium are solved: ``python -m experiments.control``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from experiments.control.agents import AGENTS, Agent
from experiments.control.environments import PROBLEMS, Problem

_FEW = 30
"""So many returns, at the least, before a mean is clearly below a threshold."""


def episode(env: Any, problem: Problem, agent: Agent, seed: int, *, learning: bool) -> Any:
    """Play one episode; return its return and how many online steps it took."""
    seen, _ = env.reset(seed=seed)
    agent.begin(learning=learning)
    total, steps = 0.0, 0
    while True:
        seen, reward, ended, truncated, _ = env.step(agent.act(problem.see(seen)))
        agent.saw(float(reward))
        total, steps = total + float(reward), steps + problem.repeat
        if ended or truncated:
            agent.end(problem.see(seen), truncated=bool(truncated and not ended))
            return total, steps


def solve(problem: Problem, who: str, seed: int) -> dict[str, Any]:
    """Let an agent learn until what it holds for best, measured apart, reaches the threshold.

    Measuring stops early where the mean is clearly below the threshold.
    """
    env, apart = problem.make(), problem.make()
    agent = AGENTS[who](seed, int(env.action_space.n))  # type: ignore[attr-defined]
    steps, number, due = 0, 0, problem.every
    curve: list[tuple[int, float]] = []
    start, measuring = time.perf_counter(), 0.0
    while steps < problem.most:
        _, some = episode(env, problem, agent, 100_000 * seed + number, learning=True)
        steps, number = steps + some, number + 1
        if steps < due:
            continue
        due = steps - steps % problem.every + problem.every
        began = time.perf_counter()
        returns: list[float] = []
        for at in range(problem.episodes):
            apart_seed = 10**8 + 1_000 * seed + at
            returns.append(episode(apart, problem, agent, apart_seed, learning=False)[0])
            mean, error = float(np.mean(returns)), float(np.std(returns)) / np.sqrt(at + 1)
            if at >= _FEW and mean < problem.threshold - 2 * error - 0.02 * abs(problem.threshold):
                break
        measuring += time.perf_counter() - began
        curve.append((steps, float(np.mean(returns))))
        if len(returns) == problem.episodes and curve[-1][1] >= problem.threshold:
            break
    solved = bool(curve) and curve[-1][1] >= problem.threshold
    return {
        "seed": seed,
        "steps": steps if solved else None,
        "episodes": number,
        "curve": curve,
        "ms": 1000 * (time.perf_counter() - start - measuring) / steps,
    }


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.control",
        description="How many online steps pass until the mean return of the greedy policy, over "
        "episodes apart from learning, reaches the threshold; ten seeds that were set aside. "
        "On one core the learner takes about: CliffWalking 10 s, Taxi 3 min, Blackjack 2 min, "
        "FrozenLake 10 min, DoorKey 10 min, MountainCar 3 min, CartPole 5 min, Acrobot 20 min.",
    )
    add = parser.add_argument
    add("--envs", default=",".join(PROBLEMS), help=f"default all: {', '.join(PROBLEMS)}")
    add("--agents", default="learner", help=f"of {', '.join(AGENTS)}; default learner")
    add("--seeds", type=int, default=10)
    add("--first-seed", type=int, default=0, help="the others count up from it")
    add("--json", type=Path, help="where the runs are written, default runs/control.json")
    given = parser.parse_args(argv)
    envs, agents = given.envs.split(","), given.agents.split(",")
    for name, known in [(env, PROBLEMS) for env in envs] + [(one, AGENTS) for one in agents]:
        if name not in known:
            parser.error(f"{name!r} is none of {', '.join(known)}")
    told: list[dict[str, Any]] = []
    for name in envs:
        problem = PROBLEMS[name]
        for who in agents:
            began = time.perf_counter()
            runs = [solve(problem, who, given.first_seed + at) for at in range(given.seeds)]
            told.append({"env": name, "agent": who, "runs": runs})
            print(
                line(name, problem, who, runs), f"{time.perf_counter() - began:.0f} s", flush=True
            )
    rows = [
        {"what": name, "value": line(name, PROBLEMS[name], one["agent"], one["runs"])}
        for one in told
        for name in [one["env"]]
    ]
    path = given.json or Path("runs") / "control.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {
        "title": "Advice: steps until problems of Gymnasium are solved",
        "command": "python -m experiments.control",
        "figures": rows,
        "runs": told,
    }
    path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    print(path)
    return 0


def line(name: str, problem: Problem, who: str, runs: list[dict[str, Any]]) -> str:
    """Return what a table says of the runs of one agent on one problem."""
    solved = sorted(run["steps"] for run in runs if run["steps"] is not None)
    within = (
        ""
        if problem.bar is None
        else (f", {sum(steps <= problem.bar for steps in solved)} within {problem.bar:,}")
    )
    steps = [run["steps"] or np.inf for run in runs]
    middle = float(np.median(steps))
    ms = float(np.mean([run["ms"] for run in runs]))
    repeat = f" (action repeat {problem.repeat})" if problem.repeat > 1 else ""
    return (
        f"{name}{repeat} {problem.threshold:g}: {who}: median {middle:,.0f} steps, solved "
        f"{len(solved)}/{len(runs)}{within}; {solved}; {ms:.2f} ms a step;"
    )


if __name__ == "__main__":
    sys.exit(main())
