"""A language model as a player: asks it for the next command.

What memory returns reaches the model inside the *user* message, fenced and labelled as evidence:
recalled text is data of unknown origin and must never gain the authority of a system message.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, TypeAlias

from cvx.embed import HttpOptions
from cvx.errors import InvalidInputError
from experiments.chat import Answer, AnswerCache, Chat, ChatModel, Message
from experiments.errors import LLMAnswerError, LLMError
from experiments.textgames.prompt import SYSTEM, find_command, user_message

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from experiments.plans import Observation

How: TypeAlias = Literal["answered", "corrected", "drawn"]


@dataclass(slots=True)
class Tally:
    """What a model cost and how often it failed to answer.

    Attributes
    ----------
    decisions, requests : int
        Calls of `LLMPolicy.act`; questions put to the model, answers from disk not counted.
    known : int
        Answers that came from disk.
    corrected : int
        Decisions whose first answer named no admissible command.
    fallbacks : int
        Decisions that were drawn because the second answer did not either.
    prompt_tokens, completion_tokens : int
        As the server counts them, of what was asked; 0 where it does not.
    """

    decisions: int = 0
    requests: int = 0
    known: int = 0
    corrected: int = 0
    fallbacks: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Exchange(NamedTuple):
    """One question and its answer."""

    messages: tuple[Message, ...]
    answer: Answer


class Chosen(str):
    """A command, and how it was come by.

    Attributes
    ----------
    exchanges : tuple of Exchange
        What was asked for it; empty where nobody was.
    how : {"answered", "corrected", "drawn"}
        By the first answer, by the second, or by lot since neither named a command.
    """

    exchanges: tuple[Exchange, ...]
    how: How

    def __new__(
        cls, command: str, exchanges: Sequence[Exchange] = (), how: How = "answered"
    ) -> Chosen:
        """Make it of a command."""
        made = super().__new__(cls, command)
        made.exchanges, made.how = tuple(exchanges), how
        return made


@dataclass(slots=True)
class LLMPolicy:
    """Chooses commands by asking a language model.

    Parameters
    ----------
    url : str
        The server's base address, for example ``http://localhost:11434/v1``, or the full address
        of its ``chat/completions``.
    model : str
        The model's name as the server knows it.
    api_key : str, optional
        Sent as a bearer token; never shown in messages or ``repr``.
    temperature : float, default 0.0
        At least 0.
    timeout_s : float, default 60
        Seconds within which a whole answer must have come.
    retries : int, default 2
        How often a request is repeated after a time-out, a broken connection, 429 or 5xx.
    backoff_s : float, default 0.5
        Seconds before the first repetition; they double each time, up to 8.
    on_nonsense : {"error", "draw"}, default "error"
        When two answers in a row name no admissible command: raise, or draw a command at random,
        which `tally` counts.
    seed : int, default 0
        Sent to the server, and seeds the draw, which falls alike where the same was asked.
    cache : AnswerCache, optional
        Makes a run repeatable.
    meant : callable, optional
        As for `find_command`.

    Raises
    ------
    LLMError
        A setting that cannot be; httpcore or stamina is not installed.

    Examples
    --------
    >>> policy = LLMPolicy("http://localhost:11434/v1", "qwen3:8b")  # doctest: +SKIP
    >>> command = policy.act(observation, context=rendered)          # doctest: +SKIP
    """

    url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    temperature: float = 0.0
    timeout_s: float = 60.0
    retries: int = 2
    backoff_s: float = 0.5
    on_nonsense: Literal["error", "draw"] = "error"
    seed: int = 0
    cache: AnswerCache | None = None
    meant: Callable[[str, tuple[str, ...]], str] | None = None
    tally: Tally = field(default_factory=Tally, init=False)
    _chat: Chat = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.on_nonsense not in ("error", "draw"):
            raise LLMError(f"on_nonsense is {self.on_nonsense!r}: give 'error' or 'draw'")
        try:
            options = HttpOptions(
                api_key=self.api_key,
                timeout_s=self.timeout_s,
                retries=self.retries,
                backoff_s=self.backoff_s,
            )
            model = ChatModel(self.model, self.temperature, self.seed)
        except InvalidInputError as error:
            raise LLMError(str(error)) from error
        self._chat = Chat(self.url, model, http=options, cache=self.cache)

    def act(
        self,
        observation: Observation,
        *,
        context: str = "",
        history: Sequence[tuple[str, str]] = (),
    ) -> Chosen:
        """Choose the next command.

        Parameters
        ----------
        observation : Observation
            What the player sees, with the goal and the admissible commands.
        context : str, default ""
            What memory recalled, rendered.
        history : sequence of (command, feedback), default ()
            The episode so far.

        Returns
        -------
        Chosen
            One of the admissible commands, with what was asked and answered.

        Raises
        ------
        LLMTimeoutError
            If no answer came in time, repetitions included.
        LLMAnswerError
            If two answers name no admissible command and ``on_nonsense`` is ``"error"``, or there
            is none to choose from.
        LLMCacheMissError
            If the cache is all that may be asked, and does not know.
        LLMError
            If the server cannot be reached or refuses.
        """
        commands = observation.admissible_commands
        if not commands:
            raise LLMAnswerError("there is no admissible command to choose from: end the episode")
        self.tally.decisions += 1
        first = self._ask(
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": user_message(observation, context, history)},
        )
        chosen = find_command(first.answer.text, commands, self.meant)
        if chosen is not None:
            return Chosen(chosen, [first])
        self.tally.corrected += 1
        second = self._ask(
            *first.messages,
            {"role": "assistant", "content": first.answer.text},
            {
                "role": "user",
                "content": "That is none of the admissible commands. Answer with one line of "
                "this list and nothing else:\n" + "\n".join(commands),
            },
        )
        chosen = find_command(second.answer.text, commands, self.meant)
        if chosen is not None:
            return Chosen(chosen, [first, second], "corrected")
        if self.on_nonsense == "draw":
            self.tally.fallbacks += 1
            # By what was asked: a run that goes on after a break draws what it would have drawn.
            drawn = random.Random(f"{self.seed} {second.messages}").choice(commands)
            return Chosen(drawn, [first, second], "drawn")
        raise LLMAnswerError(
            f"{self.model} answered {second.answer.text[:200]!r}, which is none of the "
            f"{len(commands)} admissible commands: try a stronger model, or on_nonsense='draw'"
        )

    def close(self) -> None:
        """Close the connection."""
        self._chat.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _ask(self, *messages: Message) -> Exchange:
        answer = self._chat.ask(messages)
        if answer.cached:
            self.tally.known += 1
        else:
            self.tally.requests += 1
            self.tally.prompt_tokens += answer.prompt_tokens
            self.tally.completion_tokens += answer.completion_tokens
        return Exchange(messages, answer)
