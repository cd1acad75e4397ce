"""Optional packages: which part of cvx needs which; the error that says what to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cvx.errors import MissingExtraError

EXTRAS: dict[str, tuple[str, ...]] = {
    "causal": ("networkx", "statsmodels"),
    "cluster": ("ray", "fsspec"),
    "duckdb": ("duckdb", "polars"),
    "frames": ("polars",),
    "gymnasium": ("gymnasium",),
    "http": ("httpcore", "stamina"),
    "inspect": ("polars",),
    "langchain": ("langchain-core",),
    "langgraph": ("langgraph",),
    "learn": ("scikit-learn",),
    "local": ("safetensors", "scipy", "tokenizers"),
    "mcp": ("mcp",),
    "minari": ("h5py", "minari"),
    "plot": ("matplotlib",),
    "tracing": ("opentelemetry-api",),
}
"""Packages by the name of the extra in pyproject.toml."""


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Import the packages of an extra in this block, or say which to install.

    Parameters
    ----------
    extra : str
        One of ``EXTRAS``.

    Raises
    ------
    MissingExtraError
        A package that is imported in the block is not installed. The hint names packages and never
        ``cvx[...]``: on the public index that name is somebody else's.

    Examples
    --------
    >>> with needs("frames"):
    ...     import no_such_package
    Traceback (most recent call last):
    cvx.errors.MissingExtraError: No module named 'no_such_package': pip install polars
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(f"{error}: pip install {' '.join(EXTRAS[extra])}") from error
