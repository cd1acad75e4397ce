"""Access control: in whose namespace a verb acts, and what it may see and change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from cvx.arguments import a_filter, wrong
from cvx.errors import NamespaceError
from cvx.store.namespaces import check_namespace, readers, reads
from cvx.types import DEFAULT_NAMESPACE, Event, Filter, Where


@dataclass(frozen=True, slots=True)
class Identity:
    """The namespace in whose name the verbs of a memory run, and what it may see.

    Parameters
    ----------
    namespace : str, default ""
        Who writes and asks where a call names nobody.
    also : tuple of str
        Further namespaces, of which what is shared is seen.
    bound : bool, default False
        Whether nobody else may be named, and nothing be asked of the whole store.
    clock : str, default "utc"
        What the times in their filters count.
    """

    namespace: str = DEFAULT_NAMESPACE
    also: tuple[str, ...] = ()
    bound: bool = False
    clock: str = "utc"

    def named(self, namespace: str | None) -> str:
        """Return whose namespace is meant.

        Raises
        ------
        NamespaceError
            Another one than that which the memory is bound to.
        """
        if namespace is None or check_namespace(namespace) == self.namespace:
            return self.namespace
        if self.bound:
            raise NamespaceError(
                f"namespace is {namespace!r}, but this memory is bound to {self.namespace!r}: "
                "leave it out, or ask the memory that made it"
            )
        return namespace

    def acting(self, namespace: str | None) -> Identity:
        """Return in whose name one call runs: where it names a namespace, that alone is touched."""
        if namespace is None:
            return self
        own, also = self.seeing(namespace)
        return replace(self, namespace=own, also=also, bound=True)

    def choosing(self, where: Where | None) -> None:
        """Refuse a filter that everything passes, where the wrong events would be lost.

        Raises
        ------
        InvalidInputError
            A filter, or one of several, with no field.
        """
        for one in self.passing(where):
            said = one._replace(metadata=one.metadata or None)
            if said.outcome is None and said == Filter(recallable=one.recallable):
                raise wrong("where", where, "at least one field; everything is {'outcome': 'any'}")

    def seeing(self, namespace: str | None) -> tuple[str, tuple[str, ...]]:
        """Return who asks, and of whom what is shared is seen too."""
        asker = self.named(namespace)
        return asker, self.also if asker == self.namespace else ()

    def passing(self, where: Where | None) -> tuple[Filter, ...]:
        """Return filters as they are used.

        Raises
        ------
        InvalidInputError
            A filter that cannot be; a datetime where the store counts ticks or turns.
        """
        if self.clock != "utc":
            for one in (where,) if isinstance(where, Filter | Mapping) else where or ():
                told = one._asdict() if isinstance(one, Filter) else one
                for name in ("since", "until"):
                    if isinstance(told, Mapping) and isinstance(told.get(name), datetime):
                        raise wrong(
                            f"where.{name}", told[name], f"an int: this memory counts {self.clock}"
                        )
        return a_filter("where", where)

    def sees(self, event: Event) -> bool:
        """Return whether the memory may know of an event."""
        return not self.bound or readers(event.namespace, event.visibility) in reads(
            self.namespace, self.also
        )

    def need_root(self, what: str) -> None:
        """Refuse what is of the whole store.

        Raises
        ------
        NamespaceError
            The memory is bound.
        """
        if self.bound:
            raise NamespaceError(
                f"{what} is of the whole store, but this memory is bound to {self.namespace!r}: "
                "ask the memory that made it"
            )
