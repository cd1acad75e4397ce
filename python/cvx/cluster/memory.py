"""ClusterMemory: the verbs of a memory, asked of the shards that hold what is meant."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, Self
from weakref import WeakSet

import numpy as np
import ray

from cvx.arguments import a_text, an_event, checked, wrong
from cvx.cluster.client import Missing, Request, ShardClient, plain_error
from cvx.cluster.episode import ClusterEpisode
from cvx.cluster.layout import FIRST_ID
from cvx.cluster.namespace_rows import by_shard
from cvx.cluster.shard_store import MovedAwayError
from cvx.embed import Embedder
from cvx.errors import (
    EmbedderError,
    InvalidInputError,
    MissingShardsError,
    StoreError,
    UnknownError,
)
from cvx.memory.aio import VERBS, Aio
from cvx.memory.namespace_access import Identity
from cvx.memory.write_verbs import rows_of
from cvx.recall.context import Context
from cvx.recall.trace import Hits, Trace
from cvx.store.erase import Erased
from cvx.store.namespaces import check_also, check_namespace
from cvx.store.transfer import Imported, format_of, reader_of
from cvx.types import AnEvent, Cue, Event, Hit, IntArray

_BY_EVENT = frozenset(["get", "update", "forget", "erase", "link", "why", "consequences"])


class PartialContext(Context):
    """A context of a cluster: ``missing`` names the shards that did not answer."""

    missing: tuple[str, ...] = ()


class PartialHits(Hits):
    """The hits of a cluster: ``missing`` names the shards that did not answer."""

    missing: tuple[str, ...] = ()


class Events(list[Event]):
    """Events of a cluster: ``missing`` names the shards that did not answer."""

    missing: tuple[str, ...] = ()


class Noun:
    """Calls a noun of a memory: causes or learning of a namespace, admin or frames of all shards.

    Of ``admin`` and ``frames`` every shard is asked: ``memory.admin.check()`` is a dict of lists by
    number. ``admin.export`` writes one file a shard, each on the disk of the host that leads it:
    its path has ``{shard}`` in it. ``admin.import_`` reads a file of who asks, and puts each
    namespace where it belongs. There is no ``admin.transaction``.

    Parameters
    ----------
    of : str
        Its name.
    ask : callable
        Asks for a verb, such as "causes.pending", with its arguments.
    own : mapping
        What is done otherwise, by verb.
    """

    def __init__(
        self,
        of: str,
        ask: Callable[..., Any],
        own: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
    ) -> None:
        self._of, self._ask, self._own = of, ask, own

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._own.get(name) or partial(self._ask, f"{self._of}.{name}")


class ClusterMemory:
    """A memory on several machines: the verbs of ``Memory``, and what belongs to a cluster.

    ``cvx.cluster.open`` makes it. A namespace lives on one shard, with its learning, and what
    others may see of it is copied to every shard: a recall asks one shard, and answers as one big
    store would. Reads end at the deadline: ``missing`` of what comes back names the shards that
    did not answer, and what cannot be partial raises ``MissingShardsError``.

    Parameters
    ----------
    client : ShardClient
        Asks the shards.
    coordinator : actor
        Knows where they are.
    embedder : Embedder or None
        What makes vectors here where a shard cannot reach its own.
    users : WeakSet of ShardClient, optional
        Of every memory of the cluster in this process, where this process made it: closing the
        last of them closes the cluster.
    """

    def __init__(
        self,
        client: ShardClient,
        coordinator: Any,
        embedder: Embedder | None = None,
        *,
        users: WeakSet[ShardClient] | None = None,
        identity: Identity | None = None,
    ) -> None:
        self._client, self._coordinator, self._embedder = client, coordinator, embedder
        self._users, self._identity = users, identity or Identity()
        if users is not None:
            users.add(client)
        self.causes, self.learning = Noun("causes", self._ask), Noun("learning", self._ask)
        self.aio = Aio(self, (*VERBS, "recall_many"))

    # Who asks, and whom.

    def _request(
        self, shard: int, verb: str, args: Sequence[Any], options: Any, whose: str | None = None
    ) -> Request:
        own = self._identity
        return Request(
            shard, verb, (own.namespace, own.also) if own.bound else None, args, options, whose
        )

    def _ask(self, verb: str, /, *args: Any, **options: Any) -> Any:
        """Ask the one shard that holds what is meant, or each that may."""
        end = time.monotonic() + self._client.patience_s
        while True:
            unknown: dict[bool, UnknownError] = {}
            for request in self._requests(verb, args, options):
                try:
                    return self._given(self._client.one(request))
                except UnknownError as error:
                    unknown.setdefault(isinstance(error, MovedAwayError), error)
            if True not in unknown or time.monotonic() > end:
                raise unknown.get(False) or unknown[True]
            # It moves at this moment.
            self._client.look_again(at_once=True)

    def _requests(
        self, verb: str, args: Sequence[Any], options: Mapping[str, Any]
    ) -> list[Request]:
        """Return a request for each shard that may hold what is meant, the likeliest first."""
        layout, named = self._client.layout, options.get("namespace")
        if not self._identity.bound and named is None and verb in _BY_EVENT and args:
            first = args[0]
            some = first if isinstance(first, list | tuple) else [first]
            if numbers := [an_event("event", one) for one in some if not isinstance(one, str)]:
                begun = min(numbers) >> FIRST_ID
                others = sorted({*layout.moved.values()} - {begun})
                known = [shard for shard in (begun, *others) if shard in layout.places]
                return [
                    self._request(shard, verb, args, options)
                    for shard in known or sorted(layout.places)
                ]
        whose = self._identity.named(named)
        shards = layout.shards_of(whose)
        if verb in ("add", "episode"):
            shards = (layout.shard_of(whose, options.get("entity")),)
        return [self._request(shard, verb, args, options, whose) for shard in shards]

    def _given(self, answer: Any) -> Any:
        if isinstance(answer, Missing):
            raise MissingShardsError(
                f"{answer} did not answer within {self._client.deadline_s:g} s: ask again, or open "
                "the cluster with a longer deadline_s; stats() says what is wrong"
            )
        return answer

    def _gather(
        self, verb: str, args: Sequence[Any], options: Mapping[str, Any]
    ) -> tuple[list[Any], tuple[str, ...]]:
        """Return the answers of every shard of a namespace, and the names of those missing."""
        return _parted(self._client.all(self._requests(verb, args, options)))

    # Writing.

    def add(self, text: str, **options: Any) -> Event:
        """Remember one thing; when this returns, every copy of its shard has synced it.

        Parameters are those of ``Memory.add``.

        Raises
        ------
        ReplicaLostError
            Too few nodes have the shard; the write is not acknowledged.
        MissingShardsError
            Nobody led the shard for ``patience_s``.
        InvalidInputError and others
            As ``Memory.add``.
        """
        try:
            added: Event = self._ask("add", text, **options)
        except EmbedderError:
            if self._embedder is None or options.get("vector") is not None:
                raise
            # This node may reach what that of the shard cannot.
            vector = self._embedder.embed([text])[0]
            added = self._ask("add", text, **options | {"vector": vector})
        return added

    def add_many(
        self, items: Iterable[Any], *, namespace: str | None = None, again: bool = False
    ) -> IntArray:
        """Remember several things, in one call a namespace; of one namespace, all of them or none.

        Parameters
        ----------
        items, namespace, again
            As for ``Memory.add_many``; each item may name its namespace.

        Returns
        -------
        ndarray of shape (n,), int64
            The ids, in order.
        """
        own = self._identity.named(namespace)
        layout = self._client.layout
        listed = list(rows_of(items))
        # By namespace too: each may move by itself.
        stores: dict[tuple[int, str], list[int]] = {}
        for place, item in enumerate(listed):
            named, entity = _names_of(item)
            whose = self._identity.named(named or own)
            stores.setdefault((layout.shard_of(whose, entity), whose), []).append(place)
        ids: dict[int, list[int]] = {}
        asked = [
            self._request(
                shard,
                "add_many",
                [[listed[place] for place in places]],
                {"namespace": whose, "again": again},
                whose,
            )
            for (shard, whose), places in stores.items()
        ]
        for places, found in zip(stores.values(), self._client.all(asked), strict=True):
            given = self._given(found).tolist()
            if len(given) == len(places):
                ids.update((place, [one]) for place, one in zip(places, given, strict=True))
            else:
                ids[places[0]] = given
        return np.array([one for place in sorted(ids) for one in ids[place]], dtype=np.int64)

    def update(self, event: AnEvent, **options: Any) -> Event:
        """Change what is given of an event; as ``Memory.update``."""
        changed: Event = self._ask("update", event, **options)
        return changed

    def link(self, cause: AnEvent, effect: AnEvent, kind: str = "caused", **options: Any) -> Any:
        """Say that one event led to another, both of one shard; as ``Memory.link``."""
        return self._ask("link", cause, effect, kind, **options)

    def forget(self, events: Any = None, **options: Any) -> list[int]:
        """Archive events; as ``Memory.forget``."""
        done: list[int] = self._of_events("forget", events, options)
        return done

    def erase(self, events: Any = None, **options: Any) -> Erased:
        """Erase events for good, from every copy and snapshot of their shards; as ``Memory.erase``.

        Snapshots in a bucket are replaced by new ones, without them.
        """
        done: Erased = self._of_events("erase", events, options)
        if not options.get("dry_run"):
            # No other shard, and no snapshot, is to have what was erased.
            self._direct("settle")
        return done

    def _of_events(self, verb: str, events: Any, options: Mapping[str, Any]) -> Any:
        if events is None or self._identity.bound or options.get("namespace") is not None:
            told = [self._given(one) for one in self._gather(verb, [events], options)[0]]
        else:
            some = events if isinstance(events, Iterable) else [events]
            by_shard: dict[int, list[int]] = {}
            for one in some:
                number = an_event("event", one)
                by_shard.setdefault(number >> FIRST_ID, []).append(number)
            told = [self._ask(verb, listed, **options) for listed in by_shard.values()] or [[]]
        gone = [one for some in told for one in some]
        if verb == "forget":
            return gone
        return Erased(gone, all(some.complete for some in told))

    def _direct(self, verb: str, *args: Any, seconds: float | None = None) -> Any:
        """Ask the coordinator, also while Ray starts it anew on another node.

        Raises
        ------
        StoreError
            It does not answer, or is gone.
        """
        self._client.check_open()
        try:
            asked = getattr(self._coordinator, verb).remote(*args)
            return ray.get(asked, timeout=seconds or self._client.patience_s)
        except ray.exceptions.GetTimeoutError as error:
            raise StoreError(
                f"the coordinator did not answer to {verb} in time: reads and writes go on; ask "
                "again"
            ) from error
        except ray.exceptions.RayTaskError as error:
            raise plain_error(error) from None
        except ray.exceptions.RayActorError as error:
            raise StoreError(
                "the cluster was closed by who made it, or its coordinator died: open it again"
            ) from error

    def feedback(self, shown: Any, **options: Any) -> None:
        """Say what became of a context or a recall; as ``Memory.feedback``."""
        number = getattr(shown, "decision", shown)
        if number is None:
            raise UnknownError(
                "what is shown has no decision: a copy of the shard answered in place of its "
                "leader, and writes nothing down; recall again, and say it of that"
            )
        self._ask("feedback", number, **options)

    # Reading.

    def get(self, event: AnEvent | None = None, **options: Any) -> Event:
        """Return an event by its id or its key; as ``Memory.get``."""
        found: Event = self._ask("get", *([] if event is None else [event]), **options)
        return found

    def events(self, where: Any = None, **options: Any) -> Events:
        """Return the events that pass a filter, in the order of their times; as ``Memory.events``.

        ``missing`` names the shards that did not answer.
        """
        answers, missing = self._gather("events", [where], options)
        found = [event for some in answers for event in some]
        if len(answers) > 1:
            newest = bool(options.get("newest"))
            # What others may see is on every shard: once is enough.
            once = {event.id: event for event in found}
            order = sorted(once.values(), key=lambda one: (one.timestamp, one.id), reverse=newest)
            found = order[: options.get("limit")]
        events = Events(found)
        events.missing = missing
        return events

    def recall(self, cue: str | Cue | Any, k: int = 10, **options: Any) -> PartialHits:
        """Find what fits a cue, best first; as ``Memory.recall``.

        ``missing`` names the shards that did not answer within the deadline.
        """
        answers, missing = self._gather("recall", [cue, k], options)
        return _merged(cue, k, answers, missing, self._identity.named(options.get("namespace")))

    def recall_many(
        self, cues: Sequence[Any], k: int = 10, *, namespaces: Sequence[str] | None = None
    ) -> list[PartialHits]:
        """Answer several cues, in one call a namespace.

        Parameters
        ----------
        cues : sequence of str, Cue or ndarray
            What is asked.
        k : int, default 10
            As for ``recall``.
        namespaces : sequence of str, optional
            Who asks each; default the memory's own.
        """
        listed = [None] * len(cues) if namespaces is None else list(namespaces)
        if len(listed) != len(cues):
            raise wrong("namespaces", namespaces, f"{len(cues)}, one for each cue")
        whose: dict[str | None, list[int]] = {}
        for place, name in enumerate(listed):
            whose.setdefault(name, []).append(place)
        asked = {}
        for name, places in whose.items():
            args = [[cues[place] for place in places], k]
            asked[name] = self._requests("recall_many", args, {"namespace": name})
        told = iter(self._client.all([one for each in asked.values() for one in each]))
        found: dict[int, PartialHits] = {}
        for name, places in whose.items():
            answers, missing = _parted([next(told) for _ in asked[name]])
            for at, place in enumerate(places):
                some = [one[at] for one in answers]
                found[place] = _merged(cues[place], k, some, missing, self._identity.named(name))
        return [found[place] for place in range(len(listed))]

    def context(
        self, cue: str | Cue | Any, budget_tokens: int | None = None, **options: Any
    ) -> PartialContext:
        """Recall for a prompt, within a budget; as ``Memory.context``.

        Of a namespace on several shards each fills its share of the budget. ``missing`` names the
        shards that did not answer.
        """
        count = len(self._requests("context", [cue], options))
        budget = budget_tokens if budget_tokens is None or count == 1 else budget_tokens // count
        answers, missing = self._gather("context", [cue, budget], options)
        answers.sort(key=lambda one: -max((hit.score for hit in one.hits), default=-np.inf))
        text = "\n".join(str(one) for one in answers if one)
        made = PartialContext(
            text,
            sum(one.used_tokens for one in answers),
            tuple(hit for one in answers for hit in one.hits),
            answers[0].trace
            if answers
            else _untold(cue, missing, self._identity.named(options.get("namespace"))),
            answers[0].decision if answers else None,
        )
        made.missing = missing
        return made

    def why(self, event_or_words: AnEvent | str, **options: Any) -> Any:
        """Return what led to an event; as ``Memory.why``."""
        return self._ask("why", event_or_words, **options)

    def consequences(self, event_or_words: AnEvent | str, **options: Any) -> Any:
        """Return what an event led to; as ``Memory.consequences``."""
        return self._ask("consequences", event_or_words, **options)

    def __len__(self) -> int:
        if self._identity.bound:
            return len(self.events())
        return sum(self.everywhere("count").values())

    # Acting.

    def episode(self, goal: str = "", **options: Any) -> ClusterEpisode:
        """Begin an episode, or take one up by its id; as ``Memory.episode``.

        It goes on, with the same handle, where its shard is led by another host meanwhile.

        Raises
        ------
        InvalidInputError
            With ``learn=False``: a cluster has no episodes that leave nothing behind.
        """
        if options.get("learn", True) is not True:
            raise InvalidInputError(
                f"learn is {options['learn']}: a cluster has no episodes that leave nothing "
                "behind; discard() the episode, or ask a cvx.Memory"
            )
        number = options.get("id")
        if number is None:
            (request,) = self._requests("episode", [], {"goal": goal, **options})
        else:
            request = self._request(number >> FIRST_ID, "episode", [], options)
        return ClusterEpisode(self._client, request, *self._client.one(request))

    def as_of(self, known_at: Any) -> NoReturn:
        """Refuse: a cluster has no views of the past; a ``Memory`` of one machine has.

        Raises
        ------
        StoreError
            Always.
        """
        raise StoreError(
            f"a cluster has no view as of {known_at!r}: filter what is recalled by its times, or "
            "keep what needs such views in a cvx.Memory of one machine"
        )

    # Views and care.

    @checked(namespace=a_text)
    def within(self, namespace: str, *, also: Sequence[str] = ()) -> Self:
        """Return the same memory in the name of a namespace; as ``Memory.within``."""
        identity = Identity(self._identity.named(namespace), check_also(also), bound=True)
        return type(self)(self._client, self._coordinator, self._embedder, identity=identity)

    @property
    def admin(self) -> Noun:
        """What keeps stores in order, of every shard: a dict by number; as ``Memory.admin``."""
        self._identity.need_root("admin")
        own: dict[str, Callable[..., Any]] = {
            "export": self._export,
            "import_": self._import,
            "transaction": self._no_transaction,
        }
        return Noun("admin", self.everywhere, own)

    @property
    def frames(self) -> Noun:
        """The frames of every shard, a dict by number; as ``Memory.frames``."""
        self._identity.need_root("frames")
        return Noun("frames", self.everywhere)

    def everywhere(self, verb: str, /, *args: Any, **options: Any) -> dict[int, Any]:
        """Return what each shard answers to a verb, by number.

        Raises
        ------
        MissingShardsError
            One of them did not answer.
        """
        shards = sorted(self._client.layout.places)
        return self._each([self._request(shard, verb, args, options) for shard in shards])

    def _each(self, requests: Sequence[Request]) -> dict[int, Any]:
        told = zip(requests, self._client.all(requests), strict=True)
        return {one.shard: self._given(answer) for one, answer in told}

    def _no_transaction(self) -> Any:
        raise StoreError(
            "a cluster has no transaction: add_many writes the events of a namespace all or none"
        )

    def _export(self, path: str | os.PathLike[str], **options: Any) -> dict[int, Any]:
        """Write what each shard knows to a file of its own, on the disk of its host."""
        count = len(self._client.layout.places)
        if "{shard}" not in os.fspath(path) and count > 1:
            raise wrong(
                "path",
                os.fspath(path),
                f"one with {{shard}} in it, such as all-{{shard}}.jsonl: each of the {count} "
                "shards is written to a file of its own, on the disk of its host",
            )
        return self.everywhere("admin.export", str(Path(path).absolute()), **options)

    def _import(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002
        again: bool = False,
    ) -> dict[int, Imported]:
        """Take an export in, each namespace only where it belongs, under new ids.

        The file is on the disk of who asks; it is read whole. Each shard takes in all that is its
        own, or nothing of it.
        """
        layout, options = self._client.layout, {"again": again}
        incoming = reader_of(Path(path), format_of(Path(path), format))
        found = by_shard(incoming, layout.places, layout.shard_of)
        return self._each(
            [self._request(shard, "take_in", [rows], options) for shard, rows in found.items()]
        )

    def stats(self) -> dict[str, Any]:
        """Return health, sizes and places: what lives where, and what does not answer.

        Returns
        -------
        dict
            "shards" by number: its hosts, epoch, whether it is ``whole`` (on as many nodes as
            wanted), the last ``problem``, and ``events``, ``bytes`` and so on of ``admin.stats``
            where it answers; "hosts" by name; "missing", the shards that did not answer.
        """
        self._identity.need_root("stats")
        told: dict[str, Any] = self._direct("health")
        self._client.look_again(at_once=True)
        shards = sorted(self._client.layout.places)
        answers = self._client.all([self._request(one, "admin.stats", (), {}) for one in shards])
        for shard, answer in zip(shards, answers, strict=True):
            if not isinstance(answer, Missing):
                told["shards"][shard] |= answer
        told["missing"] = [
            f"shard {shard}" for shard in shards if "events" not in told["shards"][shard]
        ]
        return told

    def move(self, namespace: str, host: str, *, patience_s: float = 600.0) -> int:
        """Give a namespace a shard of its own, on a host, while it is in use.

        Its store is copied, so that ids, history, decisions and what was learned go with it; who
        writes waits for the last of it.

        Parameters
        ----------
        namespace : str
            Which.
        host : str
            One of ``stats()["hosts"]``.
        patience_s : float
            So long it may take.

        Returns
        -------
        int
            The number of its shard.
        """
        self._identity.need_root("move")
        shard: int = self._direct("move", check_namespace(namespace), host, seconds=patience_s)
        self._client.look_again(at_once=True)
        return shard

    def spread(self, namespace: str, shards: Sequence[int]) -> None:
        """Put a namespace that holds nothing yet, and will be too large for one, on several shards.

        Each entity is on one of them, with its trajectory and what led to what in it. A recall asks
        all of them; each weighs words by what it has itself. What others may see counts for
        nothing here: it is theirs.

        Raises
        ------
        InvalidInputError
            It holds something, or there is no such shard.
        MissingShardsError
            Who leads its shard did not say within ``patience_s`` whether it holds something.
        """
        self._identity.need_root("spread")
        for request in self._requests("holds", [], {"namespace": namespace}):
            try:
                held = self._client.one(request)
            except MissingShardsError as error:
                raise MissingShardsError(
                    f"shard {request.shard} did not say within {self._client.patience_s:g} s "
                    f"whether {namespace!r} holds something: it is not spread; see stats(), and "
                    "ask again"
                ) from error
            if held:
                raise wrong(
                    "namespace", namespace, "one that holds nothing yet: what is there stays"
                )
        self._direct("spread", namespace, list(shards))
        self._client.look_again(at_once=True)

    def merge(self) -> None:
        """Let every shard know now what others may see; by itself it does so every second."""
        self._direct("merge")

    def snapshot(self) -> dict[int, str]:
        """Write a snapshot of every shard to the bucket; returns their names."""
        self._identity.need_root("snapshot")
        named: dict[int, str] = self._direct("snapshot", seconds=600.0)
        return named

    def close(self, *, stop: bool = False) -> None:
        """Leave the cluster: what is asked of it from now on raises ``StoreError``.

        In the process that made the cluster, the last memory of it to be closed closes every store
        of it, too; with ``stop`` this one does, whoever made it and has it open: so a cluster ends
        whose maker died. What ``within`` returned leaves nothing by itself.
        """
        if self._identity.bound or self._client.closed:
            return
        self._client.closed = True
        if self._users is not None:
            self._users.discard(self._client)
            stop = stop or not self._users
        if stop and ray.is_initialized():
            # Somebody else may have killed it.
            with suppress(ray.exceptions.RayActorError):
                ray.get(self._coordinator.close.remote(), timeout=60)
                ray.kill(self._coordinator)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a cluster memory cannot be pickled: open the cluster in the other process")

    def __repr__(self) -> str:
        layout = self._client.layout
        own = self._identity
        whose = f", within {own.namespace!r}" if own.bound else ""
        hosts = {host for place in layout.places.values() for host in place.hosts()}
        return f"<ClusterMemory of {len(layout.places)} shards on {len(hosts)} hosts{whose}>"


def _names_of(item: Any) -> tuple[str | None, str | None]:
    """Return the namespace and the entity of an item of ``add_many``."""
    if isinstance(item, Mapping):
        return item.get("namespace"), item.get("entity")
    return getattr(item, "namespace", None) or None, getattr(item, "entity", None)


def _parted(answers: Sequence[Any]) -> tuple[list[Any], tuple[str, ...]]:
    """Return what was answered, and the names of the shards that did not."""
    missing = tuple(str(one) for one in answers if isinstance(one, Missing))
    return [one for one in answers if not isinstance(one, Missing)], missing


def _untold(cue: Any, missing: Sequence[str], namespace: str) -> Trace:
    """Return the trace of a recall that no shard answered."""
    problems = [f"{one} did not answer in time" for one in missing]
    words = cue.words() if isinstance(cue, Cue) else cue if isinstance(cue, str) else ""
    return Trace(words, namespace, problems=problems, held=None)


def _ranked(hits: Sequence[Hit]) -> list[tuple[Hit, float]]:
    """Return hits with what they rank by among others: the best score from there on.

    A hit that a shard put before a better one, since that is of a small source, stays there.
    """
    best = np.maximum.accumulate([hit.score for hit in hits][::-1])[::-1]
    return [*zip(hits, best.tolist(), strict=True)]


def _merged(
    cue: Any, k: int, answers: Sequence[Hits], missing: tuple[str, ...], namespace: str
) -> PartialHits:
    """Return the best of several answers, each event once."""
    trace = answers[0].trace if answers else _untold(cue, missing, namespace)
    hits = [hit for some in answers for hit in some]
    nearest = [hit for some in answers for hit in some.nearest] if not hits else []
    if len(answers) > 1:
        once: dict[int, Hit] = {}
        ranked = [one for some in answers for one in _ranked(some)]
        for hit, _ in sorted(ranked, key=lambda one: -one[1]):
            once.setdefault(hit.id, hit)
        hits = [*once.values()][:k]
        nearest.sort(key=lambda one: -one.score)
    made = PartialHits(hits, trace, nearest[:k])
    made.decision = answers[0].decision if answers else None
    made.missing = missing
    return made
