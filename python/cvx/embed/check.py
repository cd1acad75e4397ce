"""Checks that an embedder works: reachable, model there, dimension; says what to do if not."""

from __future__ import annotations

import time
from dataclasses import dataclass

from cvx.embed.protocol import Embedder, checked_rows, innermost
from cvx.errors import CvxError, EmbedderDimensionError, EmbedderError, ModelNotFoundError


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a working embedder turned out to be.

    Attributes
    ----------
    id, provider, model : str
        As ``info()`` says.
    dim : int
        Dimension of the test embedding.
    seconds : float
        How long the test embedding took; the first one may have loaded the model.
    """

    id: str
    provider: str
    model: str
    dim: int
    seconds: float


def check(embedder: Embedder, expected_dim: int | None = None) -> CheckReport:
    """Try an embedder before relying on it: is it up, has it the model, does it embed, how wide.

    A cache is passed by: what really embeds is asked.

    Parameters
    ----------
    embedder : Embedder
        Wrapped or not.
    expected_dim : int, optional
        The dimension that the store, the index or the blueprint wants.

    Returns
    -------
    CheckReport

    Raises
    ------
    EmbedderUnreachableError, EmbedderTimeoutError, EmbedderRefusedError
        The server is down, too slow, or wants a key.
    ModelNotFoundError
        The model is not there; the message says how to get it.
    EmbedderDimensionError
        The vectors have another dimension than ``expected_dim`` or than ``info()`` says.
    EmbedderError
        Anything else that is wrong, what it raises of its own included.

    Examples
    --------
    >>> from cvx.embed import LexicalEmbedder
    >>> check(LexicalEmbedder(64)).dim
    64
    """
    real = innermost(embedder)
    try:
        _find_model(real)
        start = time.perf_counter()
        rows = checked_rows(real.embed(["Does this embedder work?"]), 1, _name(real))
        seconds = time.perf_counter() - start
        info = embedder.info()
    except CvxError:
        raise
    except Exception as error:
        raise EmbedderError(
            f"{_name(real)} failed with {type(error).__name__}: {error}; mend it, or choose "
            "another embedder"
        ) from error
    dim = rows.shape[1]
    model = str(info.get("model", info["id"]))
    if dim != info["dim"]:
        raise EmbedderDimensionError(
            f"{model!r} says it gives {info['dim']} dimensions and gives {dim}: "
            "correct what it is declared as"
        )
    if expected_dim is not None and dim != expected_dim:
        raise EmbedderDimensionError(
            f"{model!r} gives {dim} dimensions, {expected_dim} are expected: choose a model with "
            f"{expected_dim} dimensions, or set up the memory for {dim}{_offers(expected_dim)}"
        )
    return CheckReport(str(info["id"]), str(info.get("provider", "?")), model, dim, seconds)


def _find_model(real: Embedder) -> None:
    from cvx.embed.servers import ServedEmbedder

    if not isinstance(real, ServedEmbedder):
        return
    offered = real.models()
    if offered is not None and not any(_same(real.model, name) for name in offered):
        # A list need not be complete (aliases, models loaded on demand): the embedding decides.
        try:
            real.embed(["Is the model there?"])
        except ModelNotFoundError as error:
            known = ", ".join(offered[:20]) or "none"
            raise ModelNotFoundError(f"{error} (it has: {known})") from error


def _same(model: str, name: str) -> bool:
    return model.removesuffix(":latest").lower() == name.removesuffix(":latest").lower()


def _name(embedder: Embedder) -> str:
    return str(getattr(embedder, "model", None) or type(embedder).__name__)


def _offers(dim: int) -> str:
    from cvx.embed.models import PRESETS

    fitting = [name for name, preset in PRESETS.items() if preset.dim == dim]
    return f" (models with {dim}: {', '.join(fitting)})" if fitting else ""
