"""A newcomer's agent: a herb garden of its own, played by episodes, then Gymnasium's way."""

import random
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import cvx
from cvx.integrations.gymnasium import MemoryAgent, MemoryWrapper


class Garden:
    """Each illness is cured by one herb, which grows in one place; nobody says which."""

    grows: ClassVar[dict[str, str]] = {"fever": "pond", "cough": "wall"}

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def reset(self) -> tuple[str, dict[str, Any]]:
        self.ill, self.at, self.herb, self.left = (
            self.random.choice(["fever", "cough"]),
            "gate",
            "",
            6,
        )
        return self.tell(), {"goal": f"cure the {self.ill}", "admissible": self.can()}

    def tell(self) -> str:
        return f"You are at the {self.at}. " + (
            f"You hold a herb from the {self.herb}." if self.herb else ""
        )

    def can(self) -> list[str]:
        ways = [f"walk to the {place}" for place in ("gate", "pond", "wall") if place != self.at]
        if self.at != "gate" and not self.herb:
            ways.append("pick the herb")
        return [*ways, "brew the herb"] if self.herb and self.at == "gate" else ways

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        if action.startswith("walk"):
            self.at = action.split()[-1]
        elif action == "pick the herb":
            self.herb = self.at
        cured = action == "brew the herb" and self.herb == self.grows[self.ill]
        over = action == "brew the herb"
        return (
            self.tell(),
            float(cured),
            over,
            self.left == 0 and not over,
            {"admissible": self.can()},
        )


def play(memory: cvx.Memory, garden: Garden, explore: bool = True) -> float:
    seen, info = garden.reset()
    with memory.episode(info["goal"]) as episode:
        over, cured = False, 0.0
        while not over:
            action = episode.advise(seen, info["admissible"]).choose(explore=explore).action
            seen, cured, ended, cut, info = garden.step(str(action))
            episode.act(action, reward=cured)
            over = ended or cut
        episode.end(cured)
    return cured


def test_an_agent_learns_and_goes_on_after_its_process_was_killed(tmp_path: Path) -> None:
    memory, garden = cvx.Memory.open(tmp_path / "garden", embedder="lexical"), Garden(seed=1)
    for _ in range(50):
        play(memory, garden)
    assert sum(play(memory, garden, explore=False) for _ in range(10)) >= 9
    memory.close()

    killed = (
        "import cvx, os, sys; memory = cvx.Memory.open(sys.argv[1])\n"
        "episode = memory.episode('cure the fever')\n"
        "episode.advise('You are at the gate. ', ['walk to the pond', 'walk to the wall'])\n"
        "episode.act('walk to the pond'); print(episode.id, flush=True); os._exit(9)"
    )
    run = subprocess.run(
        [sys.executable, "-c", killed, tmp_path / "garden"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 9, run.stderr
    with cvx.Memory.open(tmp_path / "garden") as memory:
        with memory.episode(id=int(run.stdout)) as episode:
            assert [step.action for step in episode.events] == ["walk to the pond"]
            best = episode.advise(
                "You are at the pond. ", ["walk to the gate", "pick the herb"]
            ).best
            assert best.action == "pick the herb"
            episode.discard()
        assert sum(play(memory, garden, explore=False) for _ in range(10)) >= 9


def test_an_agent_of_gymnasium_learns_and_its_memory_advises_others() -> None:
    memory, garden = cvx.Memory(embedder="lexical"), Garden(seed=2)
    agent = MemoryAgent(memory)
    rewards = [agent.play(garden) for _ in range(60)]
    assert sum(rewards[:10]) < sum(rewards[-10:])
    assert sum(rewards[-10:]) >= 8
    env = MemoryWrapper(garden, memory)
    _, info = env.reset()
    assert info["advice"].best.action == f"walk to the {Garden.grows[garden.ill]}"
    env.close()
