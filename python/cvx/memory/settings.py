"""Settings kept in a store: embedder, metric, clock, preset, tokenizer, recall pipeline."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, partial
from os import PathLike
from pathlib import Path
from types import FunctionType
from typing import Any

from cvx.arguments import wrong
from cvx.embed import Embedder, LexicalEmbedder
from cvx.embed.registry import Absent, embedder_from, embedder_of, remembered_embedder, spec_of
from cvx.errors import (
    InvalidInputError,
    InvalidVectorError,
    LexicalOnlyWarning,
    MissingExtraError,
    RecordIOError,
    SettingsMismatchError,
    StoreError,
    warn,
)
from cvx.recall import (
    Budget,
    Dedupe,
    Floor,
    Pipeline,
    PlackettLuce,
    Renderer,
    Serving,
    Weighting,
    default_pipeline,
    fusion,
    presets,
    sources,
)
from cvx.recall.floor import Answerable, RescaledFloor, shipped_floor
from cvx.recall.pipeline import read_plainly
from cvx.recall.poisoning import Guard
from cvx.recall.presets import composite, fused, read_cue, stream
from cvx.recall.ranking_signals import signals_of
from cvx.scoring.formulas import Decay
from cvx.store import Record
from cvx.store.database import Description, describe
from cvx.tokens import CountTokens, estimate_tokens
from cvx.types import Clock, Vector

OWN_VECTORS = "vectors of one's own"
"""The id of what makes no vectors: every event and cue brings its own."""


class OwnVectors(Absent):
    """Stands for the embedder of a memory made with ``dim=``: it refuses to embed."""

    def __init__(self, dim: int) -> None:
        super().__init__(OWN_VECTORS, dim)

    def embed(self, texts: Sequence[str]) -> Vector:
        """Refuse.

        Raises
        ------
        InvalidVectorError
            Always: vectors are given with the texts.
        """
        raise InvalidVectorError(
            f"there is no embedder for {texts[0]!r:.60}, since this memory was made with dim=: "
            "give a vector with it"
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """What a memory is opened with.

    Parameters
    ----------
    embedder : Embedder
        From text to vectors.
    metric : str
        How they are compared.
    spec : str or None
        How to make the embedder, where it was given as a line of text.
    """

    embedder: Embedder
    metric: str
    spec: str | None = None


PRESETS: Mapping[str, Callable[[Clock], Pipeline] | None] = {
    "default": None,
    "retrieval-augmented": lambda clock: composite(clock=clock),
    "tcmf": lambda _: fused(),
    "tcmf-seed": lambda _: stream(),
}
"""How a memory recalls until something else is set or tuned; None for the shipped weights."""

CLOCKS: Mapping[str, Clock] = {"utc": "microseconds", "ticks": "tick", "turns": "turn"}
"""What timestamps count, and how a block names it."""

_DEFAULTS = {"clock": "utc", "preset": "default", "tokenizer": ""}


def kept_settings(
    clock: str | None = None,
    preset: str | None = None,
    tokenizer: str | PathLike[str] | None = None,
) -> dict[str, str | None]:
    """Return the clock, preset and tokenizer as a store keeps them, after a look at the file."""
    path = None if tokenizer is None else str(Path(tokenizer).absolute())
    if path is not None:
        counter(path)
    return {"clock": clock, "preset": preset, "tokenizer": path}


def to_keep(**given: str | None) -> dict[str, str]:
    """Return the clock, preset and tokenizer that a new store keeps."""
    return {n: one for n, one in given.items() if one is not None and one != _DEFAULTS[n]}


def check_kept(record: Record, **given: str | None) -> None:
    """Hold the clock, preset and tokenizer that are given against those of a store.

    Raises
    ------
    SettingsMismatchError
        The store was made with another value.
    """
    for name, value in given.items():
        kept = setting(record, name)
        if value is not None and value != kept:
            raise SettingsMismatchError(
                f"{name} is {value!r}, but this store was made with {kept or None!r}: leave it "
                "out, or make another store"
            )


def setting(record: Record, name: str) -> str:
    """Return the clock, preset or tokenizer of a store."""
    return record.meta(name) or _DEFAULTS[name]


def preset_of(record: Record, name: str | None = None) -> Pipeline | None:
    """Return how a store recalls by a preset, by default its own; None for the shipped weights."""
    made = PRESETS.get(setting(record, "preset") if name is None else name)
    return None if made is None else made(CLOCKS[setting(record, "clock")])


def fitted(pipeline: Pipeline, record: Record) -> Pipeline:
    """Return a pipeline that counts tokens and names times as a store does, if it says neither."""
    clock, tokenizer = CLOCKS[setting(record, "clock")], setting(record, "tokenizer")
    serving = pipeline.serving
    if serving.renderer.clock == "microseconds" != clock:
        serving = replace(serving, renderer=replace(serving.renderer, clock=clock))
    if tokenizer and serving.budget.count is estimate_tokens:
        serving = replace(serving, budget=replace(serving.budget, count=counter(tokenizer)))
    return pipeline if serving is pipeline.serving else replace(pipeline, serving=serving)


@cache
def counter(path: str) -> CountTokens:
    """Return what counts the tokens of a text, from the ``tokenizer.json`` of a model.

    Raises
    ------
    MissingExtraError
        The package tokenizers is not installed.
    InvalidInputError
        The file cannot be read.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtraError(
            "tokenizer= needs the package tokenizers: pip install tokenizers"
        ) from error
    file = Path(path) / "tokenizer.json" if Path(path).is_dir() else Path(path)
    try:
        made = Tokenizer.from_file(str(file))
    except Exception as error:  # the tokenizers package raises bare Exception
        raise InvalidInputError(
            f"tokenizer is {path!r:.200}, which cannot be read ({error}): give the path of a "
            "tokenizer.json, or of the folder it is in"
        ) from error
    return lambda text: len(made.encode(text, add_special_tokens=False).ids)


def known_of(folder: Path) -> Description | None:
    """Return what the store in a folder says of itself; None where it says nothing yet.

    Raises
    ------
    RecordIOError
        The path, or one above it, is a file.
    """
    for one in (folder, *folder.parents):
        if one.is_file():
            raise RecordIOError(f"{one} is a file: give the path of a folder")
    try:
        return describe(folder)
    except (StoreError, UnicodeDecodeError):
        # There is none, another process is just making it, or it is damaged: opening it tells.
        return None


def check_embedder(name: str, value: Any) -> Any:
    """Check an embedder, or the line that says how to make one."""
    named = isinstance(value, str) and value.strip()
    made = not isinstance(value, str | type) and all(
        callable(getattr(value, method, None)) for method in ("embed", "info")
    )
    if not (named or made):
        raise wrong(
            name,
            value,
            "an object with embed(texts) and info(), as those of cvx.embed are; "
            "cvx.embed.as_embedder(model, name) of one with encode(texts); 'ollama:NAME', or the "
            "path of a model",
        )
    return value


def settings_of(
    embedder: Embedder | str | None,
    dim: int | None,
    metric: str | None,
    known: Description | None,
) -> Settings:
    """Return what is meant, for a store that says this of itself or for a new one.

    Raises
    ------
    InvalidInputError
        Both an embedder and a dimension; a line of text of another form.
    SettingsMismatchError
        The store does not remember how to make its embedder.
    EmbedderNotApprovedError
        The store names one that uses the network.
    EmbedderError
        The embedder cannot be made.
    """
    there = None if known is None or known.embedder is None else known
    if embedder is not None and dim is not None:
        raise InvalidInputError(
            f"dim is {dim}, but an embedder is given too: give dim= for vectors of your own, or "
            "the embedder alone"
        )
    metric = metric or (None if there is None else there.metric)
    if dim is not None:
        return Settings(OwnVectors(dim), metric or "l2")
    metric = metric or "cosine"
    if isinstance(embedder, str):
        spec = spec_of(embedder)
        return Settings(embedder_from(spec, dim=None if there is None else there.dim), metric, spec)
    if embedder is not None:
        return Settings(embedder, metric)
    if there is None:
        _warn_of_spelling()
        return Settings(LexicalEmbedder(), metric)
    return Settings(embedder_of_store(there), metric)


def embedder_of_store(known: Description) -> Embedder:
    """Return the embedder of a store, as far as that remembers it and the user allows it."""
    assert known.embedder is not None
    if known.spec is not None:
        return remembered_embedder(known.spec, dim=known.dim)
    if known.embedder == OWN_VECTORS:
        return OwnVectors(known.dim or 0)
    inferred = embedder_of(known.embedder)
    if inferred is None:
        raise SettingsMismatchError(
            f"the vectors in this store are of {known.embedder}, and it does not remember how to "
            "make that embedder: give it as embedder= (--embedder)"
        )
    return inferred


_warned = False


def _warn_of_spelling() -> None:
    """Warn once in a process, also where the warning is raised."""
    global _warned
    if not _warned:
        _warned = True
        warn(
            "no embedder was given: the default compares spelling, not meaning; give one from "
            "cvx.embed for that",
            LexicalOnlyWarning,
        )


NAME = "recall"
"""Under which the store keeps it."""

_PARTS: Mapping[str, Callable[..., Any]] = {
    part.__name__: part
    for part in (
        *(Pipeline, Weighting, Guard, Floor, Answerable, RescaledFloor),
        *(Serving, Dedupe, Budget, Renderer, PlackettLuce, Decay),
        *(sources.Dense, sources.Lexical, sources.Words, sources.Graph, sources.Causes),
        *(sources.Aliases, sources.Recent, presets.FusionWithColumn),
        *(fusion.ranks_fused, fusion.values_fused),
        *(presets.similarity_column, presets.recency_column, presets.usage_column),
        *(presets.region_column, presets.salience, presets.reward),
        *(read_plainly, read_cue, signals_of, estimate_tokens),
    )
}
"""What a kept pipeline may be made of: classes by their fields, functions with their arguments."""
_FORMER_NAMES = {"Learned": "RescaledFloor", "Beside": "FusionWithColumn"}
"""Of parts in stores of November 2026."""


class NotKept(Exception):  # noqa: N818
    """Signals a part of a pipeline that cannot be stored."""


def weights_state(record: Record, weights: Mapping[str, float] | None) -> dict[str, Any]:
    """Return what the store keeps of a tuning: the shipped weights stay those of the library."""
    return {
        "weights": None if weights is None else dict(weights),
        "answerable": None,
        "embedder": record.meta("embedder"),
    }


def pipeline_state(record: Record, pipeline: Pipeline) -> dict[str, Any]:
    """Return what the store keeps of a pipeline.

    Raises
    ------
    NotKept
        A part of it is the user's own, or no finite number.
    """
    return {"pipeline": _plain(pipeline, ""), "embedder": record.meta("embedder")}


def stored_at(record: Record) -> int | None:
    """Return when the recall of a record changed last, or None."""
    found = record.query("SELECT recorded FROM model_state WHERE name = ?", (NAME,))
    return int(found[0][0]) if found else None


def stored(record: Record) -> Pipeline:
    """Return the pipeline of a record: the one that was stored, else the shipped one.

    A calibrated floor holds for the embedder that it was calibrated with; else the shipped one of
    the embedder does.

    Raises
    ------
    InvalidInputError
        What is stored cannot be read.
    """
    told, embedder = record.state(NAME), record.meta("embedder")
    if told is None:
        return default_pipeline(answerable=shipped_floor(embedder))
    try:
        pipeline = _pipeline(told, embedder)
        same = told["embedder"] == embedder
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise InvalidInputError(
            f"the pipeline that {record.path} keeps cannot be read ({type(error).__name__}: "
            f"{error}): set memory.learning.pipeline, or tune it anew"
        ) from error
    if same or pipeline.floor.answerable is None:
        return pipeline
    return pipeline.answering(shipped_floor(embedder))


def _pipeline(told: Mapping[str, Any], embedder: str | None) -> Pipeline:
    if "pipeline" in told:
        made = _made(told["pipeline"])
        if not isinstance(made, Pipeline):
            raise TypeError(f"{type(made).__name__} is no pipeline")
        return made
    weights, floor = told["weights"], told["answerable"]
    return default_pipeline(
        weights,
        shipped_floor(embedder) if floor is None else Answerable.from_dict(floor),
    )


def _plain(value: Any, where: str) -> Any:
    """Return a part as JSON; ``where`` is its place in the pipeline."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, tuple | list):
        return [_plain(one, f"{where}[{at}]") for at, one in enumerate(value)]
    if isinstance(value, Mapping):
        return {"map": {key: _plain(one, f"{where}[{key!r}]") for key, one in value.items()}}
    made, given = value, dict[str, Any]()
    if isinstance(value, partial) and not value.args:
        made, given = value.func, value.keywords
    elif is_dataclass(value) and not isinstance(value, type):
        made = type(value)
        given = {field.name: getattr(value, field.name) for field in fields(value)}
    name = getattr(made, "__name__", "")
    if _PARTS.get(name) is not made:
        raise NotKept(where)
    inside = {key: _plain(one, f"{where}.{key}" if where else key) for key, one in given.items()}
    return {"name": name, "with": inside}


def _made(plain: Any) -> Any:
    """Return the part that ``_plain`` told of."""
    if isinstance(plain, list):
        return tuple(_made(one) for one in plain)
    if not isinstance(plain, dict):
        return plain
    if "map" in plain:
        return {key: _made(one) for key, one in plain["map"].items()}
    name = plain["name"]
    part = _PARTS[_FORMER_NAMES.get(name) or name]
    given = {key: _made(one) for key, one in plain["with"].items()}
    if isinstance(part, FunctionType):
        return partial(part, **given) if given else part
    return part(**given)
