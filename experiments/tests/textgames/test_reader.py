"""A language model that plays: what it is shown, what is noted, and a run that is repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpcore")
pytest.importorskip("stamina")

from cvx.embed import LexicalEmbedder
from cvx.learn.loop import ActiveMemory
from cvx.memory import Memory
from cvx.temporal_index import TemporalIndex
from cvx.tokens import estimate_tokens
from experiments.chat import AnswerCache, AuditLog, read_audit
from experiments.errors import LLMAnswerError, LLMCacheMissError
from experiments.plans import Observation, Played, shape
from experiments.textgames.llm import LLMPolicy
from experiments.textgames.reader import Reader
from tests.chat_server import Server, serving

COMMANDS = ("go to peg 1", "hang felt hat 1 on peg 1", "look", "take felt hat 1 from table 1")
WINS = ("take felt hat 1 from table 1", "go to peg 1", "hang felt hat 1 on peg 1")


class Room:
    """A game that is won by three commands in their order."""

    def __init__(self, most: int = 6) -> None:
        self.most = most

    def reset(self) -> Observation:
        self.given: list[str] = []
        return self._seen("You are in a room.")

    def step(self, command: str) -> tuple[Observation, float, bool]:
        self.given.append(command)
        done = [one for one in self.given if one in WINS] == list(WINS)
        return self._seen(f"You did: {command}"), float(done), done or len(self.given) == self.most

    def _seen(self, text: str) -> Observation:
        return Observation(text, "hang a felt hat on the peg", COMMANDS)


class Wardrobe(Room):
    """A game that also has something else in it."""

    def _seen(self, text: str) -> Observation:
        return Observation(text, "hang a felt hat on the peg", (*COMMANDS, "wear scarf 1"))


DEMONSTRATION = [
    (
        "hang a felt hat on the peg",
        [
            Played(Observation(text, "", COMMANDS), command)
            for text, command in zip(("You are in a room.", "a table", "a peg"), WINS, strict=True)
        ],
    )
]


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    with serving() as start:
        yield start


@pytest.fixture
def reader() -> Iterator[Callable[..., Reader]]:
    """Makes readers that have seen the demonstration; their connections are closed at the end."""
    with ExitStack() as open_ones:

        def made(
            url: str, *, log: AuditLog | None = None, budget_tokens: int = 512, **settings: Any
        ) -> Reader:
            memory = ActiveMemory(TemporalIndex(256), LexicalEmbedder(256), action_type=shape)
            policy = LLMPolicy(url, "m", backoff_s=0.0, retries=0, **settings)
            player = Reader(
                memory, open_ones.enter_context(policy), log=log, budget_tokens=budget_tokens
            )
            player.learn(DEMONSTRATION)
            return player

        yield made


@pytest.mark.requirement("V18")
def test_the_prompt_has_action_chains_and_the_strategy_of_the_family(
    serve: Callable[..., Server], reader: Callable[..., Reader]
) -> None:
    server = serve(*((200, command) for command in WINS))
    result = reader(server.url).play(Room())
    assert result.won
    assert result.steps == 3
    shown = server.requests[0]["messages"][1]["content"]
    assert "demonstration that succeeded (hang a {0} on the {1}), score" in shown
    assert " -> ".join(WINS) in shown
    assert (
        "What succeeded most often from here for hang a {0} on the {1}: "
        "take # from # -> go to # -> hang # on #"
    ) in shown


@pytest.mark.requirement("V18")
@pytest.mark.parametrize("budget", [0, 20, 100, 512])
def test_what_is_recalled_stays_within_its_budget(
    serve: Callable[..., Server], reader: Callable[..., Reader], budget: int, tmp_path: Path
) -> None:
    server = serve(*((200, command) for command in WINS))
    with AuditLog(tmp_path / "run.jsonl") as log:
        reader(server.url, log=log, budget_tokens=budget).play(Room())
    contexts = [one["context"] for one in read_audit(tmp_path / "run.jsonl") if "context" in one]
    assert len(contexts) == 3
    assert all(estimate_tokens(context) <= budget for context in contexts)
    assert any(contexts) == (budget >= 100)


@pytest.mark.requirement("V18")
def test_a_run_can_be_audited(
    serve: Callable[..., Server], reader: Callable[..., Reader], tmp_path: Path
) -> None:
    server = serve((200, WINS[0]), (200, "dance"), (200, WINS[1]), (200, WINS[2]))
    with AuditLog(tmp_path / "run.jsonl") as log:
        player = reader(server.url, log=log)
        player.play(Room())
    *decisions, outcome = read_audit(tmp_path / "run.jsonl")
    assert [one["command"] for one in decisions] == list(WINS)
    assert [one["how"] for one in decisions] == ["answered", "corrected", "answered"]
    assert [len(one["asked"]) for one in decisions] == [1, 2, 1]
    assert outcome == {
        "kind": "outcome", "episode": decisions[0]["episode"], "reward": 1.0, "steps": 3,
    }  # fmt: skip
    sent = [request["messages"] for request in server.requests]
    assert [ask["messages"] for one in decisions for ask in one["asked"]] == sent
    answers = [WINS[0], "dance", WINS[1], WINS[2]]
    assert [ask["answer"] for one in decisions for ask in one["asked"]] == answers
    for one in decisions:
        logged = player.memory.record.decision(one["decision"])
        assert logged is not None
        assert [hit["node"] for hit in one["recalled"]] == [hit[0] for hit in logged["hits"]]
        assert (logged["rendered"], logged["outcome"]) == (one["context"], 1.0)
        assert one["context"] in one["asked"][0]["messages"][1]["content"]


@pytest.mark.requirement("V18")
def test_a_repeated_run_asks_nobody_and_notes_the_same(
    serve: Callable[..., Server], reader: Callable[..., Reader], tmp_path: Path
) -> None:
    server = serve((200, WINS[0]), (200, "dance"), (200, "jump"), (200, WINS[1]), (200, WINS[2]))
    for number in range(2):
        cache = AnswerCache(tmp_path / "answers", only=number > 0)
        url = "http://127.0.0.1:9/v1" if number else server.url
        with AuditLog(tmp_path / f"{number}.jsonl") as log:
            player = reader(url, log=log, cache=cache, on_nonsense="draw", seed=5)
            for _ in range(2):
                player.play(Room())
        assert isinstance(player.policy, LLMPolicy)
        assert (player.policy.tally.requests == 0) == (number > 0)
    first, again = ((tmp_path / f"{number}.jsonl").read_bytes() for number in range(2))
    assert first == again
    with pytest.raises(LLMCacheMissError):
        reader("http://127.0.0.1:9/v1", cache=cache, seed=6).play(Room())


def test_a_model_that_fails_in_the_middle_of_a_game_leaves_what_was_noted(
    serve: Callable[..., Server], reader: Callable[..., Reader], tmp_path: Path
) -> None:
    server = serve((200, WINS[0]), (200, "dance"))
    with AuditLog(tmp_path / "run.jsonl") as log:
        player = reader(server.url, log=log)
        with pytest.raises(LLMAnswerError):
            player.play(Room())
    assert [one["command"] for one in read_audit(tmp_path / "run.jsonl")] == [WINS[0]]
    assert len(player.memory.episodes) == 1, "a game that was broken off teaches nothing"


def test_a_player_set_back_has_forgotten_the_names_of_the_game_between(
    serve: Callable[..., Server], reader: Callable[..., Reader]
) -> None:
    player = reader(serve((200, "wear scarf 1")).url)
    before = player.state()
    player.play(Wardrobe(most=1))
    assert player.state() != before
    player.restore(before)
    assert player.state() == before


def test_the_words_of_goals_are_known_again_after_reopening(
    serve: Callable[..., Server], reader: Callable[..., Reader]
) -> None:
    server = serve((200, "look"))
    first = reader(server.url)
    again = Reader(first.memory, first.policy)
    assert again._family("hang a felt hat on the peg") == "hang a {0} on the {1}"
    assert again._family("warm an egg") == "warm an egg"


class Noting:
    """Plays the winning commands, and keeps what it is shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def act(self, _: Observation, *, context: str, history: Any) -> str:
        self.shown.append(context)
        return WINS[len(history)]

    def close(self) -> None:
        """Hold nothing open."""


@pytest.mark.requirement("B9", "B3")
def test_a_prompt_shows_only_what_the_player_may_read() -> None:
    memory = Memory(embedder=LexicalEmbedder(64))

    def show(word: str, **whose: str) -> None:
        goal, steps = DEMONSTRATION[0]
        told = [(f"{goal} {seen.text}", f"{word} {word}er 1") for seen, *_ in steps]
        memory.learning.active.add_demonstration(goal, told, "hang a {0} on the {1}", **whose)  # type: ignore[arg-type]

    show("pawn", namespace="bob")
    show("lend", namespace="bob", visibility="shared")
    show("wash", namespace="bob", visibility="public", source="web")
    policy = Noting()
    for names in (["bob"], []):
        loop = memory.learning.loop(namespace="ana", also=names, action_type=shape)
        reader = Reader(loop, policy)
        # The names of things that it has heard of.
        assert reader._told >= ({"washer", "lender"} if names else {"washer"})
        assert "pawner" not in reader._told
        policy.shown.clear()
        reader.play(Room())
        for context in policy.shown:
            assert ("wash" in context, "lend" in context, "pawn" in context) == (
                True,
                bool(names),
                False,
            )
    memory.admin.quarantine(source="web")
    policy.shown.clear()
    reader.play(Room())
    assert reader._told == {"felt hat", "table", "peg"}
    assert not any(word in context for context in policy.shown for word in ("wash", "lend", "pawn"))
    assert any("hang felt hat 1 on peg 1" in context for context in policy.shown)
