"""A small game of another world, with other words, for the agent to learn."""

from __future__ import annotations

import random

from experiments.plans import Observation, Played

NOOKS = 6


class HatGame:
    """Find a hat in one of the nooks and hang it on a peg, dyed where the goal says so."""

    def __init__(
        self, goal: str, *, seed: int = 0, dyed: bool = False, max_steps: int = 30
    ) -> None:
        rng = random.Random(seed)
        self.goal, self.dyed, self.max_steps = goal, dyed, max_steps
        self.hats = {f"hat {n}": f"nook {rng.randint(1, NOOKS)}" for n in (1, 2)}
        self.places = [*(f"nook {n}" for n in range(1, NOOKS + 1)), "peg 1", "vat 1"]

    def reset(self) -> Observation:
        self.where, self.held, self.steps = "", "", 0
        self.at, self.red = dict(self.hats), set[str]()
        return self._see("You stand in a hall.")

    def _see(self, text: str) -> Observation:
        can = ["wait", *(f"walk to {p}" for p in self.places if p != self.where)]
        if not self.held:
            can += [f"grab {h} from {p}" for h, p in self.at.items() if p == self.where]
        elif self.where.startswith("peg"):
            can.append(f"hang {self.held} on {self.where}")
        elif self.where.startswith("vat"):
            can.append(f"dye {self.held} with {self.where}")
        return Observation(text, self.goal, tuple(sorted(can)))

    def step(self, command: str) -> tuple[Observation, float, bool]:
        verb, rest = command.partition(" ")[::2]
        self.steps += 1
        text, won = "Nothing happens.", False
        if verb == "walk":
            self.where = rest.removeprefix("to ")
            here = [h for h, p in self.at.items() if p == self.where]
            text = f"You reach {self.where}. You see {', '.join(here) or 'nothing'}."
        elif verb == "grab":
            self.held = " ".join(rest.split()[:2])
            del self.at[self.held]
        elif verb == "dye":
            self.red.add(self.held)
        elif verb == "hang":
            won = not self.dyed or self.held in self.red
            self.at[self.held], self.held = self.where, ""
        return self._see(text), float(won), won or self.steps >= self.max_steps


def shown(game: HatGame, commands: list[str]) -> tuple[str, list[Played]]:
    """Play the commands, which have to win."""
    seen, steps, reward = game.reset(), [], 0.0
    for command in commands:
        assert command in seen.admissible_commands, command
        steps.append(Played(seen, command))
        seen, reward, _ = game.step(command)
    assert reward == 1.0
    return game.goal, steps


def demonstrations() -> list[tuple[str, list[Played]]]:
    """One of hanging a hat, one of dyeing it first."""
    plain = HatGame("hang a hat on the peg", seed=1)
    red = HatGame("hang a red hat on the peg", seed=2, dyed=True)
    first, second = plain.hats["hat 1"], red.hats["hat 2"]
    to_hang = f"walk to vat 1; walk to {first}; grab hat 1 from {first}; walk to peg 1; "
    to_dye = f"walk to peg 1; walk to {second}; grab hat 2 from {second}; walk to vat 1; "
    return [
        shown(plain, (to_hang + "hang hat 1 on peg 1").split("; ")),
        shown(
            red, (to_dye + "dye hat 2 with vat 1; walk to peg 1; hang hat 2 on peg 1").split("; ")
        ),
    ]
