"""Logs what a memory does under the logger "cvx", and makes OpenTelemetry spans of it where asked.

A program that does not use ``logging`` pays nothing for it, and OpenTelemetry (the package
``opentelemetry-api``) is imported by ``start`` alone. Neither is told any text of a memory unless
``start(texts=True)`` asks for that.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from cvx.errors import InvalidInputError
from cvx.extras import needs

if TYPE_CHECKING:
    from logging import Logger

    from opentelemetry.trace import Tracer, TracerProvider

P = ParamSpec("P")
R = TypeVar("R")

VERBS = ("add", "add_many", "recall", "context", "advise", "end", "embed")
"""What is logged and traced; a span of ``recall`` is called "cvx.recall"."""
_LONGEST = 1000
_DEBUG = 10


class _Tracing(NamedTuple):
    tracer: Tracer
    texts: bool


_tracing: _Tracing | None = None


def start(provider: TracerProvider | None = None, *, texts: bool = False) -> None:
    """Make a span of each call from now on, in every memory of this process.

    A span says how much came back (``cvx.count``), its number where it has one (``cvx.decision``,
    ``cvx.event``), the tokens of a context, and of a call that failed the class of the error. Those
    that one call makes hang together: an embedding within a recall is its child.

    Parameters
    ----------
    provider : opentelemetry.trace.TracerProvider, optional
        Where spans go; default the one that the program has set for OpenTelemetry.
    texts : bool, default False
        Whether spans also say what was given, in ``cvx.text``, up to 1000 characters.

    Raises
    ------
    InvalidInputError
        What was given is no provider.
    MissingExtraError
        OpenTelemetry is not installed.

    Examples
    --------
    >>> start()
    >>> stop()
    """
    global _tracing
    with needs("tracing"):
        from opentelemetry import trace

    from cvx import __version__

    if provider is not None and not isinstance(provider, trace.TracerProvider):
        raise InvalidInputError(
            f"provider is {provider!r:.60}: give an opentelemetry.trace.TracerProvider, or None"
        )
    tracer = trace.get_tracer("cvx", __version__, tracer_provider=provider)
    _tracing = _Tracing(tracer, bool(texts))


def stop() -> None:
    """Make no more spans."""
    global _tracing
    _tracing = None


def watched(verb: str, given: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Log each call of a function, and make a span of it where that was asked for.

    Parameters
    ----------
    verb : str
        One of ``VERBS``.
    given : str
        The parameter that a span shows where it may show texts.
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **options: P.kwargs) -> R:
            logger, tracing = _logger(), _tracing
            if logger is None and tracing is None:
                return function(*args, **options)
            began, failed = time.perf_counter(), ""
            with _span(verb, tracing) as attributes:
                try:
                    answer = function(*args, **options)
                except BaseException as error:
                    failed = attributes["error.type"] = type(error).__name__
                    raise
                else:
                    attributes.update(_told(answer))
                    return answer
                finally:
                    if tracing is not None and tracing.texts:
                        # Arguments that do not fit have raised already, and one that cannot be
                        # written out must not hide what the call did.
                        with suppress(Exception):
                            bound = signature(function).bind_partial(*args, **options).arguments
                            attributes["cvx.text"] = str(bound.get(given, ""))[:_LONGEST]
                    if logger is not None:
                        took = 1000 * (time.perf_counter() - began)
                        came = failed or attributes.get("cvx.count", "done")
                        logger.debug("%s: %s in %.1f ms", verb, came, took)

        return call

    return decorated


def _logger() -> Logger | None:
    """Return the logger if anybody listens: nobody does where ``logging`` was never imported."""
    logging = sys.modules.get("logging")
    if logging is None:
        return None
    logger: Logger = logging.getLogger("cvx")
    return logger if logger.isEnabledFor(_DEBUG) else None


@contextmanager
def _span(verb: str, tracing: _Tracing | None) -> Iterator[dict[str, Any]]:
    """Make a span of a block, and give it what the block puts into a dict."""
    attributes: dict[str, Any] = {}
    if tracing is None:
        yield attributes
        return
    from opentelemetry.trace import StatusCode

    # The message of an error may quote what was given.
    with tracing.tracer.start_as_current_span(
        f"cvx.{verb}", record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield attributes
        finally:
            span.set_attributes(attributes)
            if "error.type" in attributes:
                span.set_status(StatusCode.ERROR)


def _told(answer: Any) -> Mapping[str, int]:
    """Return the numbers of what a call returned."""
    told = {
        "cvx.decision": getattr(answer, "decision", None),
        "cvx.event": getattr(answer, "id", None),
        "cvx.used_tokens": getattr(answer, "used_tokens", None),
    }
    several = getattr(answer, "hits", answer)
    # Of arrays those of ids are several things; one of floats is a single vector.
    if isinstance(several, Sequence) or getattr(several, "dtype", None) == "int64":
        told["cvx.count"] = len(several)
    return {name: one for name, one in told.items() if isinstance(one, int)}
