"""Checks what callers pass to public methods (types, bounds, times), with typed errors.

Types are checked where a call comes in, so that a wrong one is refused by name before anything
happens. What a value means (whether there is such an event, whether a range is in order) is checked
where it is used.
"""

from __future__ import annotations

import errno
import math
import operator
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import partial, wraps
from inspect import Parameter, signature
from numbers import Real
from pathlib import Path
from reprlib import Repr
from typing import Any, ParamSpec, TypeAlias, TypeGuard, TypeVar

import numpy as np

from cvx.errors import InvalidInputError
from cvx.types import Event, Filter, Hit, entity_number

P = ParamSpec("P")
R = TypeVar("R")
Check: TypeAlias = Callable[[str, Any], Any]
"""From the name of an argument and what was given to what is used; raises where it is wrong."""

_short = Repr()
_short.maxstring = _short.maxother = 60


def checked(**checks: Check) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check arguments by name before a method runs; a default that is not overridden is fine.

    Examples
    --------
    >>> @checked(depth=whole(1), name=optional(a_text))
    ... def walk(depth=5, name=None):
    ...     return depth, name
    >>> walk(2)
    (2, None)
    >>> walk(0)
    Traceback (most recent call last):
    cvx.errors.InvalidInputError: depth is 0: give an int of at least 1
    >>> walk(name=3)
    Traceback (most recent call last):
    cvx.errors.InvalidInputError: name is 3: give a str
    >>> walk(dept=3)
    Traceback (most recent call last):
    TypeError: walk() has no parameter 'dept': did you mean depth? It takes depth, name
    """

    def decorated(method: Callable[P, R]) -> Callable[P, R]:
        parameters = signature(method).parameters
        names = list(parameters)
        places = [(names.index(name), name, check) for name, check in checks.items()]
        takes_any = any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())

        @wraps(method)
        def call(*args: Any, **options: Any) -> R:
            if not (takes_any or options.keys() <= parameters.keys()):
                raise _unknown_parameter(method, names, options)
            given = list(args)
            for place, name, check in places:
                if place < len(given):
                    given[place] = check(name, given[place])
                elif name in options:
                    options[name] = check(name, options[name])
            return method(*given, **options)

        return call

    return decorated


def _unknown_parameter(
    method: Callable[..., Any], names: Sequence[str], options: Mapping[str, Any]
) -> TypeError:
    """Return the error for a keyword that a method does not have: the nearest, and all it has."""
    unknown = next(name for name in options if name not in names)
    near = get_close_matches(unknown, names, 1)
    hint = f"did you mean {near[0]}? It" if near else "it"
    return TypeError(
        f"{method.__qualname__}() has no parameter {unknown!r}: {hint} takes "
        + ", ".join(name for name in names if name != "self")
    )


def check_fields(thing: object, **checks: Check) -> None:
    """Check attributes of an object by name, as ``__post_init__`` of a dataclass does.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> check_fields(SimpleNamespace(depth=0), depth=whole(1))
    Traceback (most recent call last):
    cvx.errors.InvalidInputError: depth is 0: give an int of at least 1
    """
    for name, check in checks.items():
        check(name, getattr(thing, name))


def wrong(
    name: str, value: object, wanted: str, error: type[InvalidInputError] = InvalidInputError
) -> InvalidInputError:
    """Return the error that names an argument, its value and what to give instead."""
    return error(f"{name} is {short_repr(value)}: give {wanted}")


def short_repr(value: object) -> str:
    """Return a value as an error shows it: short, and whatever its own repr does."""
    try:
        return _short.repr(value)
    except ValueError:
        # Python refuses to write out an int of thousands of digits.
        return f"an int of {int(value).bit_length()} bits" if isinstance(value, int) else "no text"


def are_several(value: object) -> TypeGuard[Iterable[Any]]:
    """Tell whether a value can be gone through; an array of no dimensions cannot."""
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) != 0


def optional(check: Check) -> Check:
    """Return a check that also accepts ``None``."""
    return lambda name, value: None if value is None else check(name, value)


def one_of(*kinds: type, called: str) -> Check:
    """Return a check for an instance of one of some classes."""

    def check(name: str, value: Any) -> Any:
        if not isinstance(value, kinds):
            raise wrong(name, value, called)
        return value

    return check


def a_function(name: str, value: Any) -> Any:
    """Check that something can be called, and return it."""
    if not callable(value):
        raise wrong(name, value, "a callable")
    return value


a_text = one_of(str, called="a str")
a_flag = one_of(bool, np.bool_, called="True or False")
a_mapping = one_of(Mapping, called="a mapping, such as a dict")


def a_folder(name: str, value: Any, kind: str = "folder") -> Path:
    """Check the path of a folder or "file", which need not be there, and return it.

    Examples
    --------
    >>> a_folder("path", "")
    Traceback (most recent call last):
    cvx.errors.InvalidInputError: path is '': give the path of a folder
    """
    told = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(told, str) or not told.strip() or "\0" in told:
        raise wrong(name, value, f"the path of a {kind}")
    try:
        os.lstat(told)
    except UnicodeEncodeError as error:
        raise wrong(name, value, f"the path of a {kind}, as the disk can name it") from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise wrong(name, value, f"the path of a {kind}, of fewer characters") from error
    return Path(told)


a_file = partial(a_folder, kind="file")


def some_weights(name: str, value: Any) -> dict[str, float]:
    """Check a mapping of names to finite weights and return it as a dict."""
    weigh = number()
    return {
        a_text(f"a key of {name}", key): weigh(f"{name}[{key!r}]", one)
        for key, one in a_mapping(name, value).items()
    }


def among(*allowed: Any) -> Check:
    """Return a check that the value is one of these.

    Examples
    --------
    >>> among("sum", "product")("mode", "mean")
    Traceback (most recent call last):
    cvx.errors.InvalidInputError: mode is 'mean': give 'sum' or 'product'
    """

    def check(name: str, value: Any) -> Any:
        if not any(value is one or (isinstance(value, str) and value == one) for one in allowed):
            raise wrong(name, value, " or ".join(map(repr, allowed)))
        return value

    return check


def some_texts(name: str, value: Any) -> list[str]:
    """Check a collection of strings; a single string is refused."""
    if isinstance(value, str | bytes) or not are_several(value):
        raise wrong(name, value, "a list of str")
    listed = list(value)
    if not all(isinstance(one, str) for one in listed):
        raise wrong(name, value, "a list of str")
    return listed


def whole(
    least: int | None = None,
    most: int = 2**63 - 1,
) -> Check:
    """Return a check for an integer (numpy's too) of 64 bits within bounds."""
    low = -(2**63) if least is None else least
    wanted = "an int" if least is None else f"an int of at least {least}"
    wanted += "" if most == 2**63 - 1 else f", at most {most}"

    def check(name: str, value: Any) -> int:
        number = _index(value)
        if number is None or number < low:
            raise wrong(name, value, wanted)
        if number > most:
            bits = "of 64 bits, " if most == 2**63 - 1 else ""
            raise wrong(name, value, f"one {bits}up to {most}")
        return number

    return check


def _index(value: Any) -> int | None:
    if isinstance(value, bool | np.bool_ | np.ndarray):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def a_time(name: str, value: Any) -> int:
    """Check a timestamp, an int or an aware datetime, and return it as an int.

    A datetime becomes microseconds since 1970-01-01 UTC.
    """
    if not isinstance(value, datetime):
        if _index(value) is None:
            raise wrong(name, value, "an int or a datetime with a time zone")
        return int(_whole_time(name, value))
    if value.tzinfo is None:
        raise wrong(name, value, "a datetime with a time zone, such as datetime.now(timezone.utc)")
    return (value - _EPOCH) // timedelta(microseconds=1)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_whole_time = whole()


def _real(value: Any) -> float:
    """Return a number as a float: NaN for what is none, infinite for an int beyond all floats."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def number(
    least: float = -math.inf,
    most: float = math.inf,
) -> Check:
    """Return a check for a finite number within inclusive bounds."""
    wanted = "a number"
    if (least, most) != (-math.inf, math.inf):
        wanted = f"a number in [{least:g}, {most:g}]" if most < math.inf else f"{least:g} or more"

    def check(name: str, value: Any) -> float:
        real = _real(value)
        if not math.isfinite(real) or not least <= real <= most:
            raise wrong(name, value, wanted)
        return real

    return check


a_share = number(0.0, 1.0)


def an_outcome(name: str, value: Any) -> float:
    """Check an outcome in [0, 1]; True is 1 and False is 0."""
    return float(a_share(name, float(value) if isinstance(value, bool | np.bool_) else value))


def above_zero(name: str, value: Any) -> float:
    """Check a finite number above 0."""
    real = _real(value)
    if not 0.0 < real < math.inf:
        raise wrong(name, value, "a number above 0")
    return real


_an_id = whole()
_AN_EVENT = "an event, a hit or an id; get(key=...) finds what has a key, recall(...) words"


def an_event(name: str, value: Any) -> int:
    """Check an event, a hit on one, or its id, and return the id."""
    event = value.event if isinstance(value, Hit) else value
    if event is None or (isinstance(event, Event) and event.event_id is None):
        raise wrong(name, value, "an event that is stored, or its id")
    if not isinstance(event, Event) and _index(event) is None:
        raise wrong(name, value, _AN_EVENT)
    return int(_an_id(name, event.event_id if isinstance(event, Event) else event))


def some_events(name: str, value: Any) -> list[int]:
    """Check one event or several, and return their ids."""
    if isinstance(value, str | bytes | Mapping):
        raise wrong(name, value, _AN_EVENT)
    listed = value.tolist() if isinstance(value, np.ndarray) else value
    if not are_several(listed):
        return [an_event(name, listed)]
    return [an_event(f"{name}[{place}]", one) for place, one in enumerate(listed)]


def a_filter(name: str, value: Any, *, of_index: bool = False) -> tuple[Filter, ...]:
    """Check a filter, a mapping of its fields, or several; return all of them, with lists inside.

    ``None`` is the filter that lets everything pass. Entities are names for a memory, and become
    their numbers; for an index they are numbers.
    """
    fields = {**_FIELDS, "entities": _numbers} if of_index else _FIELDS
    if value is None:
        return (Filter(),)
    if isinstance(value, Filter | Mapping):
        return (_one_filter(name, value, fields),)
    if isinstance(value, str | bytes) or not are_several(value):
        raise wrong(name, value, "a cvx.Filter, a mapping of its fields or a list")
    return tuple(_one_filter(f"{name}[{place}]", one, fields) for place, one in enumerate(value))


def _one_filter(name: str, value: Any, fields: Mapping[str, Check]) -> Filter:
    given = value._asdict() if isinstance(value, Filter) else value
    if not isinstance(given, Mapping):
        raise wrong(name, value, "a cvx.Filter or a mapping of its fields")
    for part in given:
        if part not in _FIELDS:
            raise wrong(f"a field of {name}", part, f"one of {', '.join(_FIELDS)}")
    return Filter(
        **{
            part: fields[part](f"{name}.{part}", one)
            for part, one in given.items()
            if one is not None or part == "recallable"
        }
    )


def _some(check: Check, *alone: type) -> Check:
    def several(name: str, value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and int in alone:
            return value
        if isinstance(value, alone) and not isinstance(value, bool):
            value = [value]
        if isinstance(value, str | bytes | Mapping) or not isinstance(
            value, Collection | np.ndarray
        ):
            return check(name, value)
        for one in value:
            check(name, one)
        return value

    return several


def index_filter(where: Any) -> Filter | list[Filter] | None:
    """Return a filter, or the list of several, as a raw index takes it.

    Lists where one value may stand, and nothing that only a memory knows.

    Raises
    ------
    InvalidInputError
        A field of another type; or kind, source, metadata or min_trust.
    """
    if where is None:
        return None
    if isinstance(where, Filter):
        lists = where.entities, where.namespaces, where.tags, where.ids
        if where[_LAST:] == _OPEN and not any(isinstance(part, str | int) for part in lists):
            # As most are: nothing to be put into a list, and the index checks the rest itself.
            return where
    filters = [_of_index(one) for one in a_filter("where", where, of_index=True)]
    return filters[0] if len(filters) == 1 else filters


def _of_index(plain: Filter) -> Filter:
    for part in ("kind", "source", "metadata", "min_trust"):
        if getattr(plain, part) is not None:
            raise InvalidInputError(
                f"where.{part} is given, which an index does not know: ask a cvx.Memory, or "
                "give tags"
            )
    advises = {"success": True, "failure": False, "any": None}
    if plain.outcome is not None:
        plain = plain._replace(recallable=advises[plain.outcome], outcome=None)
    return plain


_LAST = Filter._fields.index("outcome")
_OPEN = (None,) * (len(Filter._fields) - _LAST)
_OPERATORS = ("gt", "gte", "lt", "lte", "ne", "in", "exists")
_MOST_CONDITIONS = 100
_numbers = _some(whole(), int, np.integer)


def _a_string(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise wrong(name, value, "a str, or a list of str")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise wrong(name, value, "a text without half of a surrogate pair") from error
    return value


_strings = _some(_a_string, str)


def _entities(name: str, value: Any) -> list[int]:
    return [entity_number(one) for one in _strings(name, value)]


def _plain(name: str, value: Any) -> Any:
    """Check one value of a condition, and return it; numpy's become Python's own."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        _a_string(name, value)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise wrong(name, value, "a number of 64 bits")
    elif not isinstance(value, int | float | None) or value != value:
        raise wrong(name, value, "a text, number, bool or None")
    return value


def _conditions(name: str, value: Any) -> Any:
    made: dict[str, Any] = {}
    for key, one in a_mapping(name, value).items():
        at = f"{name}[{key!r}]"
        _a_string(at, key)
        limits: dict[str, Any] = {}
        for how, limit in one.items() if isinstance(one, Mapping) else [("is", one)]:
            if how not in (*_OPERATORS, "is"):
                raise wrong(f"{at}: a condition", how, f"one of {', '.join(_OPERATORS)}")
            if how == "in":
                if isinstance(limit, str | bytes) or not isinstance(limit, Collection):
                    raise wrong(f"{at}['in']", limit, "a list of values")
                limits[how] = [_plain(f"{at}['in']", one_value) for one_value in limit]
            elif how == "exists":
                limits[how] = bool(a_flag(f"{at}['exists']", limit))
            else:
                limits[how] = _plain(f"{at}[{how!r}]", limit)
        made[key] = limits if isinstance(one, Mapping) else limits["is"]
    if len(value) > _MOST_CONDITIONS:
        raise wrong(name, f"{len(value)} keys", f"at most {_MOST_CONDITIONS}")
    return made


def _tags(name: str, value: Any) -> Any:
    listed = _strings(name, value)
    if len(listed) > _MOST_CONDITIONS:
        raise wrong(name, f"{len(listed)} tags", f"at most {_MOST_CONDITIONS}")
    return listed


_FIELDS: Mapping[str, Check] = {
    "since": a_time,
    "until": a_time,
    "entities": _entities,
    "ids": _numbers,
    "namespaces": _strings,
    "tags": _tags,
    "min_reward": number(),
    "max_reward": number(),
    "min_trust": number(),
    "recallable": optional(one_of(bool, np.bool_, called="True, False or None")),
    "outcome": among("success", "failure", "any"),
    "kind": _strings,
    "source": _strings,
    "metadata": _conditions,
}
