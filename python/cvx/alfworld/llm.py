"""A language model in the agent's place, behind any server that speaks OpenAI's chat protocol.

What memory returns reaches the model inside the *user* message, fenced and labelled as evidence:
recalled text is data of unknown origin and must never gain the authority of a system message.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self

from cvx.alfworld.prompt import SYSTEM, find_command, user_message
from cvx.errors import LLMAnswerError, LLMError, LLMTimeoutError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    import httpx

    from cvx.plans import Observation

_RETRYABLE = {408, 409, 429}


@dataclass(slots=True)
class Tally:
    """What a model cost and how often it failed to answer.

    Attributes
    ----------
    decisions, requests : int
        Calls of `LLMPolicy.act`; requests sent, repetitions included.
    corrected : int
        Decisions whose first answer named no admissible command.
    fallbacks : int
        Decisions that were drawn because the second answer did not either.
    prompt_tokens, completion_tokens : int
        As the server counts them; 0 where it does not.
    """

    decisions: int = 0
    requests: int = 0
    corrected: int = 0
    fallbacks: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


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
    timeout_s : float, default 60
        Seconds of silence after which a request counts as lost.
    retries : int, default 2
        How often a request is repeated after a time-out, a broken connection, 429 or 5xx.
    backoff_s : float, default 0.5
        Seconds before the first repetition; they double each time, up to 8.
    on_nonsense : {"error", "draw"}, default "error"
        When two answers in a row name no admissible command: raise, or draw a command at random,
        which `tally` counts.
    seed : int, default 0
        Seeds the draw.

    Examples
    --------
    >>> policy = LLMPolicy("http://localhost:11434/v1", "qwen3:8b")  # doctest: +SKIP
    >>> command = policy.act(observation, context=rendered)          # doctest: +SKIP
    """

    url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    retries: int = 2
    backoff_s: float = 0.5
    on_nonsense: Literal["error", "draw"] = "error"
    seed: int = 0
    tally: Tally = field(default_factory=Tally, init=False)
    _rng: random.Random = field(init=False, repr=False)
    _client: httpx.Client = field(init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            import httpx
            import stamina  # noqa: F401
        except ImportError as error:
            raise LLMError(f"{error}: pip install 'cvx[http]'") from error
        if not self.url.startswith(("http://", "https://")):
            raise LLMError(f"{self.url!r} is no address: give one such as http://host:port/v1")
        if self.timeout_s <= 0 or self.retries < 0 or self.backoff_s < 0:
            raise LLMError(
                f"timeout_s={self.timeout_s}, retries={self.retries}, backoff_s={self.backoff_s}: "
                "timeout_s must be above 0, the others at least 0"
            )
        if not self.url.endswith("/chat/completions"):
            self.url = self.url.rstrip("/") + "/chat/completions"
        self._rng = random.Random(self.seed)
        headers = {} if self.api_key is None else {"Authorization": f"Bearer {self.api_key}"}
        self._client = httpx.Client(timeout=self.timeout_s, headers=headers)

    def act(
        self,
        observation: Observation,
        *,
        context: str = "",
        history: Sequence[tuple[str, str]] = (),
    ) -> str:
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
        str
            One of the admissible commands.

        Raises
        ------
        LLMTimeoutError
            If no answer came in time, repetitions included.
        LLMAnswerError
            If two answers name no admissible command and ``on_nonsense`` is ``"error"``, or there
            is none to choose from.
        LLMError
            If the server cannot be reached or refuses.
        """
        commands = observation.admissible_commands
        if not commands:
            raise LLMAnswerError("there is no admissible command to choose from: end the episode")
        self.tally.decisions += 1
        messages = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": user_message(observation, context, history)},
        ]
        answer = self._ask(messages)
        chosen = find_command(answer, commands)
        if chosen is None:
            self.tally.corrected += 1
            messages += [
                {"role": "assistant", "content": answer},
                {
                    "role": "user",
                    "content": "That is none of the admissible commands. Answer with one line of "
                    "this list and nothing else:\n" + "\n".join(commands),
                },
            ]
            answer = self._ask(messages)
            chosen = find_command(answer, commands)
        if chosen is None and self.on_nonsense == "draw":
            self.tally.fallbacks += 1
            chosen = self._rng.choice(commands)
        if chosen is None:
            raise LLMAnswerError(
                f"{self.model} answered {answer[:200]!r}, which is none of the {len(commands)} "
                "admissible commands: use a stronger model, or on_nonsense='draw'"
            )
        return chosen

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(self, messages: list[dict[str, str]]) -> str:
        import httpx
        import stamina

        body = {"model": self.model, "messages": messages, "temperature": 0}
        attempts = stamina.retry_context(
            on=_worth_repeating,
            attempts=self.retries + 1,
            timeout=None,
            wait_initial=self.backoff_s,
            wait_max=8.0,
            wait_jitter=0.0,
        )
        try:
            for attempt in attempts:
                with attempt:
                    self.tally.requests += 1
                    response = self._client.post(self.url, json=body)
                    response.raise_for_status()
        except httpx.TimeoutException as error:
            raise LLMTimeoutError(
                f"{self.url} gave no answer within {self.timeout_s} s, {self.retries + 1} times: "
                "raise timeout_s or use a faster model"
            ) from error
        except httpx.HTTPStatusError as error:
            raise LLMError(
                f"{self.url} refused with {error.response.status_code} "
                f"({error.response.text[:200]!r}): check the model's name and the key"
            ) from error
        except httpx.HTTPError as error:
            raise LLMError(f"{self.url} cannot be reached ({error}): check the address") from error
        return self._read(response)

    def _read(self, response: httpx.Response) -> str:
        try:
            body = response.json()
            answer = body["choices"][0]["message"]["content"]
        except (ValueError, LookupError, TypeError) as error:
            raise LLMError(
                f"{self.url} does not speak the chat protocol (it sent {response.text[:200]!r}): "
                "give the address of an OpenAI-compatible server"
            ) from error
        usage = body.get("usage") or {}
        self.tally.prompt_tokens += usage.get("prompt_tokens") or 0
        self.tally.completion_tokens += usage.get("completion_tokens") or 0
        return answer if isinstance(answer, str) else ""


def _worth_repeating(error: Exception) -> bool:
    import httpx

    if isinstance(error, httpx.HTTPStatusError):
        status = error.response.status_code
        return status in _RETRYABLE or status >= 500
    return isinstance(error, httpx.TransportError)
