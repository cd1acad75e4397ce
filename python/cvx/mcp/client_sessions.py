"""Clients of the MCP server: tokens, the namespace of each, the episodes each has open."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from cvx.characters import Cast, Character
from cvx.errors import CvxError, FileError, InvalidInputError
from cvx.memory import Memory
from cvx.memory.episode import RunningEpisode
from cvx.render.block import Renderer

IDLE_S = 3600.0
"""After so long without a call an episode of a client over HTTP counts as broken off."""
_SHORTEST_TOKEN = 16
_CLOCKS = {"ticks": "tick", "turns": "turn"}


class Client:
    """One client: a memory bound to its namespace, and the episodes that it has open.

    Parameters
    ----------
    root : Memory
        Of the whole store.
    namespace : str
        Whose memory the client reads and writes; it can name no other.

    Attributes
    ----------
    root, memory : Memory
        As given, and bound.
    namespace : str
        As given.
    renderer : Renderer
        How its memories are labelled.
    """

    def __init__(self, root: Memory, namespace: str) -> None:
        self.root, self.memory, self.namespace = root, root.within(namespace), namespace
        self._cast = Cast(root)
        self.renderer = Renderer(clock=_CLOCKS.get(root._shared.clock, "microseconds"))  # type: ignore[arg-type]
        self._episodes: dict[int, tuple[RunningEpisode, float]] = {}
        self._lock = threading.Lock()

    @property
    def character(self) -> Character | None:
        """Who the client is, where its namespace is that of a character, seeded by anybody."""
        seeded = self.namespace and self._cast.ids(self.namespace, "identity:")
        return self._cast[self.namespace] if seeded else None

    def begin(self, goal: str, task: str | None) -> RunningEpisode:
        """Begin an episode that is closed when the client leaves."""
        return self._held(self.memory.episode(goal, task=task))

    def episode(self, number: int) -> RunningEpisode:
        """Return an open episode; one that another process left open is taken up.

        Raises
        ------
        EpisodeEndedError, UnknownError
            It is over; or there is none of the client's namespace.
        """
        with self._lock:
            known = self._episodes.get(number)
        return self._held(self.memory.episode(id=number) if known is None else known[0])

    def _held(self, episode: RunningEpisode) -> RunningEpisode:
        with self._lock:
            self._episodes[episode.id] = episode, time.monotonic()
        return episode

    def leave(self, idle_s: float = 0.0) -> None:
        """Break off the episodes that were open without a call for so long.

        One that cannot be closed now, as the disk is full or another process took it up, stays as
        it is: what is not ended teaches nothing.
        """
        latest = time.monotonic() - idle_s
        with self._lock:
            over = [one for one, used in self._episodes.values() if one.ended or used <= latest]
            for episode in over:
                del self._episodes[episode.id]
        for episode in over:
            if not episode.ended:
                with suppress(CvxError):
                    episode.discard()


def digest(token: str) -> str:
    """Return by what a token is known: its text is kept nowhere."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def tokens_of(path: Path) -> dict[str, str]:
    """Read which token is of which namespace: a line each, the token first.

    Returns
    -------
    dict of str to str
        The namespaces, by the digests of the tokens.

    Raises
    ------
    FileError
        The file cannot be read.
    InvalidInputError
        Others than its owner may read it; a token is short, stands twice, or there is none.
    """
    try:
        lines = path.read_text().splitlines()
        mode = path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"the tokens in {path} cannot be read: {error}") from error
    if os.name == "posix" and mode & 0o077:
        raise InvalidInputError(f"{path} can be read by others: chmod 600 {path}")
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        token, _, namespace = line.strip().partition(" ")
        if not token or token.startswith("#"):
            continue
        check_token(f"the token in line {number} of {path}", token)
        if digest(token) in found:
            raise InvalidInputError(f"the token in line {number} of {path} stands there twice")
        found[digest(token)] = namespace.strip()
    if not found:
        raise InvalidInputError(f"{path} holds no token: write TOKEN NAMESPACE, a line each")
    return found


def check_token(name: str, token: str) -> str:
    """Return a token that is long enough not to be guessed.

    Raises
    ------
    InvalidInputError
        It is short.
    """
    if len(token) < _SHORTEST_TOKEN:
        raise InvalidInputError(
            f"{name} has {len(token)} characters: give at least {_SHORTEST_TOKEN}, such as "
            "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    return token


class Clients:
    """The clients of one server, by their tokens; a server over stdio has one, without a token.

    Parameters
    ----------
    root : Memory
        Of the whole store.
    namespaces : mapping of str to str
        The namespace of each token, by its digest; of one client without a token by "".
    """

    def __init__(self, root: Memory, namespaces: Mapping[str, str]) -> None:
        self._clients = {key: Client(root, name) for key, name in namespaces.items()}

    def __getitem__(self, key: str) -> Client:
        return self._clients[key]

    def __contains__(self, key: object) -> bool:
        return key in self._clients

    def leave(self, idle_s: float = 0.0) -> None:
        """Break off what the clients left open; see ``Client.leave``."""
        for client in self._clients.values():
            client.leave(idle_s)
