"""The layout of a cluster: the shard of each namespace, the hosts of each shard."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from typing import Self

FIRST_ID = 36
"""A shard's ids begin at its number times two to the power of this: no two shards give one."""
MOST_SHARDS = 2 ** (53 - FIRST_ID)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a shard is.

    Parameters
    ----------
    primary : str
        The host that takes its writes.
    copies : tuple of str
        The hosts that have synced every write that was acknowledged.
    epoch : int
        Counts the primaries; who comes with another is refused.
    """

    primary: str
    copies: tuple[str, ...] = ()
    epoch: int = 1

    def hosts(self) -> tuple[str, ...]:
        """Return those that can be read from, the primary first."""
        return self.primary, *self.copies


@dataclass(frozen=True, slots=True)
class Layout:
    """What a client must know to find a shard; a later one has a higher version.

    Parameters
    ----------
    version : int
        Counts the changes.
    shards : int
        How many there were at first: the hash of a namespace chooses among them.
    places : dict of int to Place
        By number of the shard.
    moved : dict of str to int
        Namespaces that have a shard of their own by now.
    spread : dict of str to tuple of int
        Namespaces larger than a shard, and the shards that their entities are on.
    told : dict of int to int
        By shard, the last epoch that a host was told to lead in, whether or not it did.
    """

    version: int
    shards: int
    places: dict[int, Place] = field(default_factory=dict)
    moved: dict[str, int] = field(default_factory=dict)
    spread: dict[str, tuple[int, ...]] = field(default_factory=dict)
    told: dict[int, int] = field(default_factory=dict)

    def shards_of(self, namespace: str) -> tuple[int, ...]:
        """Return the shards that hold something of a namespace."""
        if namespace in self.spread:
            return self.spread[namespace]
        if namespace in self.moved:
            return (self.moved[namespace],)
        return (_hash(namespace) % self.shards,)

    def shard_of(self, namespace: str, entity: str | None = None) -> int:
        """Return the shard that an entity of a namespace is on."""
        held = self.shards_of(namespace)
        return held[0] if len(held) == 1 else held[_hash(entity or "") % len(held)]

    def left(self, shard: int) -> frozenset[str]:
        """Return the namespaces that moved, and are not on a shard any more."""
        return frozenset(name for name, where in self.moved.items() if where != shard)

    def with_place(self, shard: int, place: Place) -> Layout:
        """Return the next layout, in which a shard is elsewhere."""
        return replace(self, version=self.version + 1, places={**self.places, shard: place})

    def to_json(self) -> str:
        """Return it as text, as ``cluster.json`` has it."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return what ``to_json`` wrote."""
        told = json.loads(text)
        places = {
            int(shard): Place(one["primary"], tuple(one["copies"]), one["epoch"])
            for shard, one in told["places"].items()
        }
        spread = {name: tuple(some) for name, some in told["spread"].items()}
        epochs = {int(shard): epoch for shard, epoch in told.get("told", {}).items()}
        return cls(told["version"], told["shards"], places, told["moved"], spread, epochs)


def _hash(name: str) -> int:
    plain = name.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(plain, digest_size=8).digest(), "big")
