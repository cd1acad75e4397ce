"""Asking shards: where they are, for how long, whom instead, and whom not for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import ray

from cvx.cluster.part import reads
from cvx.cluster.placement import Layout
from cvx.errors import CvxError, MissingShardsError, StoreError, UnknownError

_COOL_S = 1.0
"""So long a host that did not answer is not asked again, unless another layout comes first."""
_PAUSE_S = 0.03
_SHARE = 0.9
_AT_ONCE = 32


class Question(NamedTuple):
    """One verb for one shard.

    Attributes
    ----------
    shard : int
        Whose.
    verb : str
        Of a memory, of something it has ("causes.confirm"), or of an episode ("episode.act").
    bound : tuple or None
        In the name of which namespace, and what is shared with it; None at the root.
    args, options
        Of the verb.
    request : str
        Its own: a shard that has done it answers as before, and does it no second time.
    namespace : str or None
        Of which namespace it is, where that is known; it may have moved.
    """

    shard: int
    verb: str
    bound: tuple[str, tuple[str, ...]] | None
    args: Sequence[Any]
    options: Mapping[str, Any]
    request: str
    namespace: str | None = None

    @property
    def packed(self) -> tuple[Any, ...]:
        """What a host is sent."""
        return self.shard, self.request, self.verb, self.bound, self.args, self.options


def plain_error(error: BaseException) -> BaseException:
    """Return what an actor raised, without the tracebacks that Ray wraps it in."""
    while isinstance(error, ray.exceptions.RayTaskError):
        error = error.cause
    if isinstance(error, CvxError):
        return error
    return StoreError(f"the cluster could not do it: {type(error).__name__}: {error}")


class ElsewhereError(UnknownError):
    """What was asked for by its id alone is on another shard, or will be in a moment."""


class Missing(NamedTuple):
    """What stands in the place of an answer that did not come."""

    shard: int

    def __str__(self) -> str:
        return f"shard {self.shard}"


class Asker:
    """Asks shards on behalf of one client.

    Parameters
    ----------
    directory : actor
        Who knows where they are.
    space : str
        The namespace of Ray in which the actors are named.
    deadline_s : float
        So long a read waits, at most.
    patience_s : float
        So long a write waits for somebody to lead its shard.
    """

    def __init__(self, directory: Any, space: str, deadline_s: float, patience_s: float) -> None:
        self.deadline_s, self.patience_s = deadline_s, patience_s
        self._directory, self._space = directory, space
        self._handles: dict[str, Any] = {}
        self._shut: dict[str, float] = {}
        self._looked = 0.0
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self.misses = 0
        self.closed = False
        self.layout: Layout = ray.get(directory.layout.remote())[0]

    @property
    def broken(self) -> list[str]:
        """The hosts that are not asked for a while."""
        now = time.monotonic()
        return sorted(host for host, until in self._shut.items() if until > now)

    def close(self) -> None:
        """Ask nobody any more, who waits for an answer included."""
        self.closed = True

    def check_open(self) -> None:
        """Refuse to ask once it is closed.

        Raises
        ------
        StoreError
            It is.
        """
        if self.closed:
            raise StoreError("this memory of a cluster is closed: open the cluster again")

    def look_again(self, seconds: float = 1.0, *, at_once: bool = False) -> None:
        """Ask the directory where everything is; seldom, however often this is called."""
        with self._lock:
            now = time.monotonic()
            if now < self._looked + _PAUSE_S and not at_once:
                return
            self._looked = now
        # Without the directory what is known serves on.
        with suppress(ray.exceptions.RayError):
            told = ray.get(self._directory.layout.remote(), timeout=max(seconds, 0.0))
            if told[0].version > self.layout.version:
                # Who leads now was seen to live.
                self._shut.clear()
                self.layout = told[0]
            for host in told[1]:
                self._shut[host] = time.monotonic() + _COOL_S

    def one(self, question: Question, end: float | None = None) -> Any:
        """Return the answer of a shard, or `Missing`; raise what its memory raised.

        A read ends at ``end`` of the monotonic clock, by default when its deadline is over.
        """
        self.check_open()
        if reads(question.verb):
            # What is left is for the way back.
            return self._read(question, end or time.monotonic() + _SHARE * self.deadline_s)
        return self._write(question)

    def all(self, questions: Sequence[Question]) -> list[Any]:
        """Return the answers of several shards, all within one deadline."""
        self.check_open()
        if len(questions) == 1:
            return [self.one(questions[0])]
        end = time.monotonic() + _SHARE * self.deadline_s
        return list(self._threads().map(lambda one: self.one(one, end), questions))

    def many(self, questions: Sequence[Question]) -> list[Any]:
        """Return the answers to many questions in their order, in one call a host."""
        self.check_open()
        by_host: dict[str, list[int]] = {}
        for place, question in enumerate(questions):
            host = self.layout.places[question.shard].primary
            by_host.setdefault(host, []).append(place)
        answers: list[Any] = [None] * len(questions)
        sent = {}
        for host, places in by_host.items():
            with suppress(ValueError):
                asked = [questions[place].packed for place in places]
                sent[self._handle(host).many.remote(asked)] = places
        writes = any(not reads(one.verb) for one in questions)
        patience = self.patience_s if writes else self.deadline_s / 2
        end = time.monotonic() + self.deadline_s
        done, _ = ray.wait(list(sent), num_returns=len(sent), timeout=patience)
        for one in done:
            try:
                for place, answer in zip(sent[one], ray.get(one), strict=True):
                    answers[place] = answer
            except ray.exceptions.RayError as error:
                self._forget(self.layout.places[questions[sent[one][0]].shard].primary, error)
        for host in {host for host, places in by_host.items() if answers[places[0]] is None}:
            self._miss(host)

        def settled(place: int) -> Any:
            return self._settled(questions[place], answers[place], end)

        # What moved, or was not answered, is asked again by itself; a write by the same request.
        return list(self._threads().map(settled, range(len(questions))))

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_AT_ONCE)
        return self._pool

    def _settled(self, question: Question, answer: Any, end: float) -> Any:
        if answer is not None and answer[0] in ("ok", "error"):
            return answer[1]
        try:
            return self.one(question, end)
        except Exception as error:  # one of many: the others are answered
            return error

    def _handle(self, host: str) -> Any:
        handle = self._handles.get(host)
        if handle is None:
            handle = self._handles[host] = ray.get_actor(host, namespace=self._space)
        return handle

    def _forget(self, host: str, error: Exception) -> None:
        """Look a host up anew that died for good: another actor may have its name by now."""
        if isinstance(error, ray.exceptions.ActorDiedError):
            self._handles.pop(host, None)

    def _miss(self, host: str) -> None:
        self.misses += 1
        self._shut[host] = time.monotonic() + _COOL_S

    def _read(self, question: Question, end: float) -> Any:
        """Ask the primary; where it does not answer soon, or not at all, the copies too."""
        soon = self.deadline_s / 3
        while (left := end - time.monotonic()) > 0:
            self.check_open()
            hosts = self.layout.places[question.shard].hosts()
            now = time.monotonic()
            open_now = [host for host in hosts if self._shut.get(host, 0.0) < now]
            sent: dict[Any, str] = {}
            for host in open_now:
                self._send(question, host, sent)
                last = host == open_now[-1]
                answer = self._first(question, sent, left if last else min(soon, left))
                if answer is not None:
                    return answer[1]
                if host in sent.values():
                    self._miss(host)
            self.look_again(min(end - time.monotonic(), soon))
            question = self._where_now(question)
            if not open_now and time.monotonic() + _PAUSE_S < end:
                time.sleep(_PAUSE_S)
        return Missing(question.shard)

    def _send(self, question: Question, host: str, sent: dict[Any, str]) -> None:
        # A host that Ray does not know was never started, or is gone for good.
        with suppress(ValueError):
            sent[self._handle(host).call.remote(*question.packed)] = host

    def _where_now(self, question: Question) -> Question:
        """Return a question for the shard that its namespace has moved to."""
        if question.namespace is None:
            return question
        held = self.layout.shards_of(question.namespace)
        return question._replace(shard=held[0]) if len(held) == 1 else question

    def _first(
        self, question: Question, sent: dict[Any, str], seconds: float
    ) -> tuple[str, Any] | None:
        """Return the first answer of those asked; None where there is none in time."""
        end = time.monotonic() + seconds
        while sent and (left := end - time.monotonic()) > 0:
            done, _ = ray.wait(list(sent), num_returns=1, timeout=left)
            for one in done:
                host = sent.pop(one)
                try:
                    kind, answer = ray.get(one)
                except ray.exceptions.RayTaskError as error:
                    # A fault of a verb, not of its host.
                    raise plain_error(error) from None
                except ray.exceptions.RayError as error:
                    self._forget(host, error)
                    self._miss(host)
                    continue
                if kind == "error":
                    raise answer
                if kind == "elsewhere" and question.namespace is None:
                    # It cannot be looked up: others are asked.
                    raise ElsewhereError("it is of a namespace that moves to another shard")
                if kind == "ok":
                    return kind, answer
        return None

    def _write(self, question: Question) -> Any:
        """Ask who leads, until somebody does; a request that came twice is done once."""
        end, sent, epoch = time.monotonic() + self.patience_s, dict[Any, str](), -1
        while (left := end - time.monotonic()) > 0:
            self.check_open()
            place = self.layout.places[question.shard]
            if not sent or place.epoch != epoch:
                epoch = place.epoch
                self._send(question, place.primary, sent)
            answer = self._first(question, sent, min(left, self.deadline_s))
            if answer is not None:
                return answer[1]
            if not sent:
                time.sleep(_PAUSE_S)
            self.look_again(at_once=True)
            question = self._where_now(question)
        raise MissingShardsError(
            f"shard {question.shard} did not take a write within {self.patience_s:g} s: it is not "
            "acknowledged; see stats(), and write it again with a key of its own"
        )
