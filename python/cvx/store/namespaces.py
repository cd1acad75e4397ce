"""Namespaces and visibility: who may read which events, as index namespaces and as SQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cvx.arguments import are_several, wrong
from cvx.errors import InvalidInputError
from cvx.validation import VISIBILITIES, storable_namespace

_MARK = "\x1f"


def check_namespace(namespace: str) -> str:
    """Return a namespace if it can be one.

    Raises
    ------
    InvalidInputError
        Not a string, or with the character U+001F in it.
    """
    return storable_namespace("namespace", namespace)


def check_also(also: Sequence[str]) -> tuple[str, ...]:
    """Return further namespaces if they can be some.

    Raises
    ------
    InvalidInputError
        One string instead of several, or one of them cannot be a namespace.

    Examples
    --------
    >>> check_also(["bob", "cleo"])
    ('bob', 'cleo')
    """
    if isinstance(also, str):
        raise InvalidInputError(f"also is {also!r}: give a list of namespaces, [{also!r}]")
    if not are_several(also):
        raise wrong("also", also, "a list of namespaces")
    return tuple(map(check_namespace, also))


def space(namespace: str, visibility: str) -> str:
    r"""Return the index's namespace for events of a namespace and visibility.

    Examples
    --------
    >>> space("ana", "private"), space("ana", "public")
    ('ana', 'ana\x1fpublic')
    """
    return namespace if visibility == "private" else f"{namespace}{_MARK}{visibility}"


def owner(space: str) -> tuple[str, str]:
    """Return the namespace and visibility that `space` made a space of.

    Examples
    --------
    >>> owner(space("ana", "private")), owner(space("ana", "public"))
    (('ana', 'private'), ('ana', 'public'))
    """
    namespace, _, visibility = space.partition(_MARK)
    return namespace, visibility or "private"


def readers(namespace: str, visibility: str) -> str:
    r"""Return the name of those who may read events of a namespace and visibility.

    It is that of the space, except that what is public has the same readers everywhere.

    Examples
    --------
    >>> readers("ana", "shared"), readers("ana", "public"), readers("bob", "public")
    ('ana\x1fshared', '\x1fpublic', '\x1fpublic')
    """
    return space("" if visibility == "public" else namespace, visibility)


def least_visible(visibilities: Iterable[str]) -> str:
    """Return how visible a whole is, by its parts; without any it is private.

    Examples
    --------
    >>> least_visible(["public", "shared"]), least_visible([])
    ('shared', 'private')
    """
    return min(visibilities, key=VISIBILITIES.index, default="private")


def reads(own: str, also: Sequence[str]) -> tuple[str, ...]:
    r"""Return every name of `readers` that an asker goes by.

    Examples
    --------
    >>> reads("ana", ["bob"])
    ('ana', 'ana\x1fshared', '\x1fpublic', 'bob\x1fshared')
    """
    seen = [readers(own, visibility) for visibility in VISIBILITIES]
    return tuple(dict.fromkeys([*seen, *(space(name, "shared") for name in also)]))


def visible_spaces(own: str, also: Sequence[str], public: Iterable[str]) -> list[str]:
    """Return every space that a recall may see.

    Parameters
    ----------
    own : str
        The namespace that asks: everything of it.
    also : sequence of str
        Other namespaces that it names: what they share.
    public : iterable of str
        Namespaces that have public events: those.
    """
    seen = [space(own, visibility) for visibility in VISIBILITIES]
    seen += [space(name, "shared") for name in also]
    seen += [space(name, "public") for name in {*also, *public}]
    return list(dict.fromkeys(seen))


def narrowed(spaces: Iterable[str], namespaces: Iterable[str]) -> list[str]:
    r"""Return those of some spaces that belong to these namespaces.

    Examples
    --------
    >>> narrowed(visible_spaces("ana", ["bob"], ["eve"]), ["bob"])
    ['bob\x1fshared', 'bob\x1fpublic']
    """
    wanted = set(namespaces)
    return [one for one in spaces if owner(one)[0] in wanted]


def visible_sql(own: str, also: Sequence[str]) -> tuple[str, list[object]]:
    """Return the same as a condition over the columns of ``events``."""
    marks = ", ".join("?" * len(also))
    condition = (
        "(namespace = ? OR visibility = 'public'"
        f" OR (visibility = 'shared' AND namespace IN ({marks})))"
    )
    return condition, [own, *also]
