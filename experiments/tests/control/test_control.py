"""The classic problems: each can be met, and cliff walking is solved in few steps."""

from __future__ import annotations

import pytest

from experiments.control.__main__ import line, solve
from experiments.control.agents import AGENTS
from experiments.control.environments import PROBLEMS


@pytest.mark.requirement("B11", "B19")
def test_the_learner_solves_cliff_walking_in_its_first_thousand_steps() -> None:
    run = solve(PROBLEMS["CliffWalking"], "learner", 3)
    assert run["steps"] is not None
    assert run["steps"] <= 900
    told = line("CliffWalking", PROBLEMS["CliffWalking"], "learner", [run])
    assert "solved 1/1, 1 within 900" in told


@pytest.mark.parametrize("who", AGENTS)
def test_every_agent_plays_texts_and_vectors_and_is_measured_without_learning(who: str) -> None:
    for name in ("CliffWalking", "CartPole"):
        problem = PROBLEMS[name]
        env = problem.make()
        agent = AGENTS[who](1, int(env.action_space.n))  # type: ignore[attr-defined]
        seen, _ = env.reset(seed=1)
        agent.begin(learning=False)
        for _ in range(5):
            seen, reward, _, _, _ = env.step(agent.act(problem.see(seen)))
            agent.saw(float(reward))
        agent.end(problem.see(seen), truncated=True)
