"""Plays one arm with one seed, game by game; resumes after a kill."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cvx.errors import InvalidInputError
from cvx.memory import Memory
from experiments.chat import AuditLog
from experiments.harness.arms import FOCUS, arm_of
from experiments.harness.memories import Held
from experiments.harness.protocols import Turn, protocol_of
from experiments.harness.setup import Setup
from experiments.harness.steps import Step, watch
from experiments.textgames.game import Game, Player, Result
from experiments.textgames.reader import Reader

_COURSE, _PLAYER, _FIRST = "experiment", "experiment player", "experiment first player"
_NOTED = "experiment audit"


@dataclass(frozen=True, slots=True)
class Played:
    """One game of one arm.

    Attributes
    ----------
    arm, seed, place
        Where it belongs; ``place`` counts the games of a seed.
    round : int
        How many rounds of own experience came before it.
    measured : bool
        Whether memory did not learn from it.
    game : str
        Which game; equal for equal games, whatever the arm and seed.
    task_type : str
        Which kind of task; the agent is not told.
    wins_held, failures_held, failures_advising : int
        What memory held when the game began, as in `Held`.
    won, steps, attempts, decisions, seconds, score
        As in `Result`.
    """

    arm: str
    seed: int
    place: int
    round: int
    measured: bool
    game: str
    task_type: str
    wins_held: int
    failures_held: int
    failures_advising: int
    won: bool
    steps: int
    attempts: int
    decisions: int
    seconds: float
    score: float


class Course:
    """The games of one arm and seed, each of them played once, whatever happens in between.

    Everything that a game leaves behind (its episodes, what they taught, the player's draws, the
    result) becomes durable in one piece, when the game has ended. A process that dies in the
    middle of a game leaves nothing of it, and the game is played again. A measured game leaves
    its result alone: the next game finds the player as it was before, and all that are measured
    find the draws of the beginning.

    Parameters
    ----------
    setup : Setup
        With the ``store`` that the memory is kept in, if any.
    arm : str
        A name in `ARMS`.
    seed : int
        Which of the setup's seeds.
    memory : Memory
        That of the arm and seed, see `folder_of`.

    Raises
    ------
    InvalidInputError
        The memory belongs to other games.
    CvxError
        As the domain raises.
    """

    def __init__(self, setup: Setup, arm: str, seed: int, memory: Memory) -> None:
        self.setup, self.arm, self.seed, self.memory = setup, arm, seed, memory
        self.material = setup.domain.prepare(setup, seed)
        self.turns = protocol_of(setup.protocol).order(
            setup, self.material.games, self.material.unseen
        )
        policy = self._log = None
        if setup.llm is not None:
            policy = setup.domain.policy(setup, seed)
            if setup.audit is not None:
                self._log = AuditLog(setup.audit / f"{arm}-{seed}.jsonl")
        self.loop = arm_of(arm).loop_on(memory)
        self.player: Player = arm_of(arm).player(
            self.loop, seed, policy, self._log, setup.max_steps
        )
        self._names = {turn.game: setup.domain.name_of(turn.game) for turn in self.turns}
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of what the player holds open; the memory is its owner's."""
        if isinstance(self.player, Reader):
            self.player.close()

    def _begin(self) -> None:
        course = self._description()
        known = self.memory.record.state(_COURSE)
        if known is None:
            with self.memory.admin.transaction():
                if arm_of(self.arm).shown:
                    self.player.learn(self.material.demonstrations)
                self._keep(_COURSE, course)
                self._keep(_FIRST, self.player.state())
                self._keep(_PLAYER, self.player.state())
                self._keep_noted()
            return
        if known != course:
            raise InvalidInputError(
                f"{self.memory.folder} holds games of another setup ({_differing(known, course)} "
                "differ): give another --store, or the setup that it was made with"
            )
        self._restore(_PLAYER)
        noted = self.memory.record.state(_NOTED)
        if self._log is not None and noted is not None:
            # Of the game that was broken off, and will be played again.
            self._log.cut(noted["bytes"])

    def _keep_noted(self) -> None:
        if self._log is not None:
            self._keep(_NOTED, {"bytes": self._log.size})

    def _description(self) -> dict[str, Any]:
        return {
            "games": [[t.round, self._names[t.game], t.measured] for t in self.turns],
            "shown": self.material.shown,
            "max_steps": self.setup.max_steps,
            "arm": arm_of(self.arm).plain(),
            "llm": self.setup.llm,
            "model": self.setup.model,
        }

    def played(self, place: int) -> Played | None:
        """Return the result of a game, None if it is still to be played."""
        known = self.memory.record.state(f"{_COURSE} game {place}")
        return None if known is None else Played(**known)

    def play(self) -> Iterator[Played]:
        """Yield the games in order: those that were played before, then those played now."""
        for place, turn in enumerate(self.turns):
            yield self.played(place) or self._play(place, turn)

    def _play(self, place: int, turn: Turn) -> Played:
        domain = self.setup.domain
        held = Held() if self.loop is None else self.loop.held()
        with domain.open(turn.game, self.setup) as game, self.memory.admin.transaction():
            if turn.measured:
                result = self._measure(game)
            else:
                result = self.player.play(game)
                self._keep(_PLAYER, self.player.state())
            played = Played(
                arm=self.arm,
                seed=self.seed,
                place=place,
                round=turn.round,
                measured=turn.measured,
                game=self._names[turn.game],
                task_type=domain.task_type_of(turn.game),
                wins_held=held.wins,
                failures_held=held.failures,
                failures_advising=held.advising,
                won=result.won,
                steps=result.steps,
                attempts=result.attempts,
                decisions=result.decisions,
                seconds=result.seconds,
                score=result.score,
            )
            self._keep(f"{_COURSE} game {place}", asdict(played))
            self._keep_noted()
        return played

    def _measure(self, game: Game) -> Result:
        # The same draws each time: what differs between rounds is what memory learned.
        self._restore(_FIRST)
        if self.loop is None:
            result = self.player.play(game)
        else:
            with self.loop.paused():
                result = self.player.play(game)
        self._restore(_PLAYER)
        return result

    def watch(self) -> list[Step]:
        """Return what happens in the first game that was measured, else played, played once more.

        Nothing is learned from it. Empty for a player that takes no advice.
        """
        turn = next((turn for turn in self.turns if turn.measured), self.turns[0])
        loop, domain = self.loop, self.setup.domain
        if loop is None or loop.choices is None or isinstance(self.player, Reader):
            return []
        with domain.open(turn.game, self.setup) as game, loop.paused():
            return watch(self.player, loop.choices, game)

    def _restore(self, name: str) -> None:
        self.player.restore(self.memory.record.state(name) or {})

    def _keep(self, name: str, value: Mapping[str, Any]) -> None:
        with self.memory.record.transaction() as write:
            write.set_state(name, value)


def _differing(known: Mapping[str, Any], course: Mapping[str, Any]) -> str:
    return ", ".join(name for name in course if known.get(name) != course[name])


def play_arm(setup: Setup, arm: str, seed: int) -> Iterator[Played]:
    """Play all games of one arm with one seed; or go on with them."""
    with arm_of(arm).open(folder_of(setup, arm, seed), seed) as memory:
        course = Course(setup, arm, seed, memory)
        try:
            yield from course.play()
        finally:
            course.close()


def watched(setup: Setup) -> list[Step]:
    """Return what happens in one more game of the first arm's first seed; see `Course.watch`."""
    folder = folder_of(setup, FOCUS, setup.first_seed)
    if FOCUS not in setup.arms or folder is None:
        return []
    with arm_of(FOCUS).open(folder, setup.first_seed) as memory:
        course = Course(setup, FOCUS, setup.first_seed, memory)
        try:
            return course.watch()
        finally:
            course.close()


def folder_of(setup: Setup, arm: str, seed: int) -> Path | None:
    """Return where an arm keeps its memory with a seed, None for RAM."""
    if setup.store is not None:
        return setup.store / f"{arm}-{seed}"
    return setup.kept if (arm, seed) == (FOCUS, setup.first_seed) else None
