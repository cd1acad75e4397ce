"""A sentence encoder from a folder on this machine, computed by numpy; nothing is ever fetched."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.arguments import whole
from cvx.embed.protocol import Threaded, listed, normalised
from cvx.errors import (
    InvalidInputError,
    ModelFileError,
    TextTooLongError,
)
from cvx.extras import needs
from cvx.types import IntArray, Vector

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_NEEDED = ("config.json", "model.safetensors", "tokenizer.json")
_READ_IF_THERE = ("1_Pooling/config.json", "sentence_bert_config.json")


class LocalEmbedder(Threaded):
    """Vectors of norm 1 from a BERT-like sentence encoder, computed here by numpy.

    The folder is laid out as sentence-transformers does, all-MiniLM-L6-v2 for example:
    ``config.json``, ``tokenizer.json``, ``model.safetensors``, and, where there is one,
    ``1_Pooling/config.json`` (mean or cls) and ``sentence_bert_config.json``.

    Parameters
    ----------
    path : str or Path
        The folder.
    truncate : bool, default False
        Cut texts that are longer than the model reads, instead of raising.
    batch_size : int, default 32
        Texts that are computed at once.

    Attributes
    ----------
    digest : str
        SHA-256 over the names and hashes of the files read; part of ``info()["id"]``.

    Raises
    ------
    MissingExtraError
        tokenizers or safetensors is not installed.
    ModelFileError
        A file that is missing or cannot be read, or a model of another kind.

    Examples
    --------
    >>> embedder = LocalEmbedder("models/all-MiniLM-L6-v2")   # doctest: +SKIP
    >>> embedder.embed(["a mug on a shelf"]).shape            # doctest: +SKIP
    (1, 384)
    """

    def __init__(
        self,
        path: str | Path,
        *,
        truncate: bool = False,
        batch_size: int = 32,
    ) -> None:
        whole(1)("batch_size", batch_size)
        self.path = Path(path)
        self.truncate = truncate
        self.batch_size = batch_size
        files = _read(self.path)
        hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        lines = "".join(f"{hashes[name]}  {name}\n" for name in sorted(hashes))
        self.digest = hashlib.sha256(lines.encode()).hexdigest()
        config = {name: _parsed(self.path, name, files) for name in files if name[-5:] == ".json"}
        shape = Shape.of(config["config.json"])
        self.dim = shape.hidden
        self.pooling = _pooling(config.get("1_Pooling/config.json", {}))
        limit = config.get("sentence_bert_config.json", {}).get("max_seq_length")
        if limit is not None and not (isinstance(limit, int) and limit >= 2):
            raise ModelFileError(f"sentence_bert_config.json: max_seq_length is {limit!r}")
        self.max_tokens = min(limit or shape.positions, shape.positions)
        self._tokenizer, weights = _loaded(self.path, files)
        self._bert = Bert(shape, weights)
        if self._tokenizer.get_vocab_size() > self._bert.vocabulary:
            raise ModelFileError(
                f"{self.path}: tokenizer.json knows {self._tokenizer.get_vocab_size()} tokens, "
                f"the model {self._bert.vocabulary}: the files belong to different models"
            )

    def __repr__(self) -> str:
        return f"<LocalEmbedder {self.info()['id']}>"

    def info(self) -> dict[str, Any]:
        """Describe the vectors; the ``id`` carries the first half of the digest."""
        return {
            "id": f"local/{self.dim}/{self.pooling}/{self.digest[:32]}",
            "dim": self.dim,
            "semantic": True,
            "provider": "local",
            "model": self.path.name,
            "prefixes": {"query": "", "document": ""},
            "max_tokens": self.max_tokens,
            "sha256": self.digest,
        }

    def embed(self, texts: Sequence[str]) -> Vector:
        """Embed a batch.

        Parameters
        ----------
        texts : sequence of str
            n texts; n may be 0.

        Returns
        -------
        ndarray of shape (n, dim), float32
            Rows of norm 1.

        Raises
        ------
        TextTooLongError
            A text with more than ``max_tokens`` tokens, unless ``truncate``.
        """
        batch = listed(texts)
        out = np.zeros((len(batch), self.dim), dtype=np.float32)
        tokens = [self._tokens(at, text) for at, text in enumerate(batch)]
        # Texts of like length share a batch: less padding to compute.
        order = sorted(range(len(batch)), key=lambda at: len(tokens[at]))
        for start in range(0, len(order), self.batch_size):
            places = order[start : start + self.batch_size]
            length = len(tokens[places[-1]])
            ids = np.zeros((len(places), length), dtype=np.int64)
            mask = np.zeros((len(places), length), dtype=np.bool_)
            for row, at in enumerate(places):
                ids[row, : len(tokens[at])] = tokens[at]
                mask[row, : len(tokens[at])] = True
            rows = self._bert.encode(ids, mask, self.pooling)
            out[places] = normalised(rows, self.path.name)
        return out

    def _tokens(self, at: int, text: str) -> list[int]:
        # A lone surrogate is a str in Python but no text anywhere else.
        clean = text.encode("utf-8", "replace").decode("utf-8")
        ids: list[int] = self._tokenizer.encode(clean).ids
        if not ids:
            raise InvalidInputError(f"text {at} ({text[:40]!r}) has no token: leave it out")
        if len(ids) <= self.max_tokens:
            return ids
        if not self.truncate:
            raise TextTooLongError(
                f"text {at} has {len(ids)} tokens, {self.path.name} reads {self.max_tokens}: "
                "split it, or pass truncate=True"
            )
        # The mark at the end belongs to what the model was trained on.
        bare = len(self._tokenizer.encode(clean, add_special_tokens=False).ids)
        return ids[: self.max_tokens - 1] + ids[-1:] if bare < len(ids) else ids[: self.max_tokens]


def _read(path: Path) -> dict[str, bytes]:
    files = {}
    for name in (*_NEEDED, *_READ_IF_THERE):
        try:
            files[name] = (path / name).read_bytes()
        except FileNotFoundError as error:
            if name in _NEEDED:
                raise ModelFileError(
                    f"{path} has no {name}: give a folder with {', '.join(_NEEDED)}; cvx never "
                    "fetches a model by itself"
                ) from error
        except OSError as error:
            raise ModelFileError(f"{path / name} cannot be read: {error}") from error
    return files


def _parsed(path: Path, name: str, files: Mapping[str, bytes]) -> dict[str, Any]:
    try:
        value = json.loads(files[name])
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path / name} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise ModelFileError(f"{path / name} holds no JSON object")
    return value


def _pooling(config: Mapping[str, Any]) -> Literal["mean", "cls"]:
    modes = {name for name, on in config.items() if name.startswith("pooling_mode_") and on is True}
    if modes == {"pooling_mode_cls_token"}:
        return "cls"
    if modes <= {"pooling_mode_mean_tokens"}:
        return "mean"
    raise ModelFileError(f"1_Pooling/config.json asks for {sorted(modes)}: mean or cls is known")


def _loaded(path: Path, files: Mapping[str, bytes]) -> tuple[Tokenizer, dict[str, Any]]:
    with needs("local"):
        import safetensors
        import safetensors.numpy
        from tokenizers import Tokenizer
    try:
        weights = safetensors.numpy.load(files["model.safetensors"])
    except (safetensors.SafetensorError, KeyError, ValueError, TypeError) as error:
        raise ModelFileError(f"{path / 'model.safetensors'} cannot be read: {error}") from error
    try:
        tokenizer = Tokenizer.from_str(files["tokenizer.json"].decode("utf-8"))
    except Exception as error:  # the tokenizers package raises bare Exception
        raise ModelFileError(f"{path / 'tokenizer.json'} cannot be read: {error}") from error
    # Published files cut at 128 tokens and pad: both are done here, in the open.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer, weights


Array: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of an encoder, as ``config.json`` gives them.

    Attributes
    ----------
    hidden, layers, heads, positions : int
        Width, number of layers, attention heads a layer, longest input in tokens.
    epsilon : float
        Added to variances before the root.
    """

    hidden: int
    layers: int
    heads: int
    positions: int
    epsilon: float

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Shape:
        """Read the sizes.

        Raises
        ------
        ModelFileError
            A model of another kind, or sizes that do not fit each other.
        """
        kind = config.get("model_type")
        if kind != "bert":
            raise ModelFileError(
                f"config.json names a model of type {kind!r}: only 'bert' is read, such as "
                "all-MiniLM-L6-v2; serve others with Ollama"
            )
        positions_kind = config.get("position_embedding_type", "absolute")
        activation = config.get("hidden_act", "gelu")
        if (positions_kind, activation) != ("absolute", "gelu"):
            raise ModelFileError(
                f"config.json asks for {positions_kind!r} positions and {activation!r}: "
                "'absolute' and 'gelu' are known; serve others with Ollama"
            )
        try:
            shape = cls(
                hidden=int(config["hidden_size"]),
                layers=int(config["num_hidden_layers"]),
                heads=int(config["num_attention_heads"]),
                positions=int(config["max_position_embeddings"]),
                epsilon=float(config.get("layer_norm_eps", 1e-12)),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"config.json lacks a size: {error}") from error
        if min(shape.hidden, shape.layers, shape.heads) < 1 or shape.hidden % shape.heads:
            raise ModelFileError(
                f"config.json gives hidden_size {shape.hidden}, {shape.layers} layers and "
                f"{shape.heads} heads: the heads must divide the size"
            )
        return shape


class Bert:
    """An encoder with its weights.

    Parameters
    ----------
    shape : Shape
    weights : mapping of str to ndarray
        By the names of the published files, with or without ``bert.`` before them.

    Raises
    ------
    ModelFileError
        A weight that is missing or has another shape than it should.

    References
    ----------
    Devlin et al. 2019, BERT. Reimers & Gurevych 2019, Sentence-BERT.
    """

    def __init__(self, shape: Shape, weights: Mapping[str, npt.NDArray[Any]]) -> None:
        self.shape = shape
        self._weights = {name.removeprefix("bert."): array for name, array in weights.items()}
        h, p = shape.hidden, "embeddings."
        self._words = self._take(f"{p}word_embeddings.weight", None, h)
        self._places = self._take(f"{p}position_embeddings.weight", shape.positions, h)
        # A sentence is one segment: the first row alone is ever added.
        self._segment = self._take(f"{p}token_type_embeddings.weight", None, h)[0]
        self._norm = self._norm_of("embeddings.LayerNorm")
        self._layers = [self._layer(f"encoder.layer.{i}.") for i in range(shape.layers)]
        self.vocabulary = len(self._words)
        self._weights = {}

    def encode(
        self, tokens: IntArray, mask: npt.NDArray[np.bool_], pooling: Literal["mean", "cls"]
    ) -> Vector:
        """Turn token ids into one vector a text, not yet normalised.

        Parameters
        ----------
        tokens : ndarray of shape (n, length), int64
            Padded with any valid id.
        mask : ndarray of shape (n, length), bool
            False where padded; at least one True a row.
        pooling : {"mean", "cls"}
            The mean of all tokens, or the first token.

        Returns
        -------
        ndarray of shape (n, hidden), float32
        """
        x = self._words[tokens] + self._places[: tokens.shape[1]] + self._segment
        x = _layer_norm(x, self._norm, self.shape.epsilon)
        away = np.where(mask, np.float32(0), np.float32(-np.inf))[:, None, None, :]
        for layer in self._layers:
            x = self._forward(layer, x, away)
        if pooling == "cls":
            return np.ascontiguousarray(x[:, 0])
        kept = mask[:, :, None]
        return np.asarray((x * kept).sum(axis=1) / kept.sum(axis=1), dtype=np.float32)

    def _forward(self, layer: _Layer, x: Array, away: Array) -> Array:
        n, length, hidden = x.shape
        heads = self.shape.heads
        width = hidden // heads
        mixed = (x @ layer.qkv[0] + layer.qkv[1]).reshape(n, length, 3, heads, width)
        q, k, v = mixed.transpose(2, 0, 3, 1, 4)
        scores = q @ k.swapaxes(-1, -2) * np.float32(width**-0.5) + away
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        seen = (scores @ v).transpose(0, 2, 1, 3).reshape(n, length, hidden)
        x = _layer_norm(x + seen @ layer.out[0] + layer.out[1], layer.norm, self.shape.epsilon)
        inner = _gelu(x @ layer.up[0] + layer.up[1])
        x = x + inner @ layer.down[0] + layer.down[1]
        return _layer_norm(x, layer.last_norm, self.shape.epsilon)

    def _layer(self, name: str) -> _Layer:
        h = self.shape.hidden
        parts = [self._linear(f"{name}attention.self.{w}", h, h) for w in ("query", "key", "value")]
        qkv = np.concatenate([w for w, _ in parts], axis=1)
        up = self._linear(f"{name}intermediate.dense", h, None)
        return _Layer(
            qkv=(qkv, np.concatenate([b for _, b in parts])),
            out=self._linear(f"{name}attention.output.dense", h, h),
            norm=self._norm_of(f"{name}attention.output.LayerNorm"),
            up=up,
            down=self._linear(f"{name}output.dense", up[0].shape[1], h),
            last_norm=self._norm_of(f"{name}output.LayerNorm"),
        )

    def _linear(self, name: str, inputs: int, outputs: int | None) -> tuple[Array, Array]:
        weight = self._take(f"{name}.weight", outputs, inputs)
        return np.ascontiguousarray(weight.T), self._take(f"{name}.bias", len(weight))

    def _norm_of(self, name: str) -> tuple[Array, Array]:
        h = self.shape.hidden
        return self._take(f"{name}.weight", h), self._take(f"{name}.bias", h)

    def _take(self, name: str, *shape: int | None) -> Array:
        array = self._weights.get(name)
        if array is None:
            raise ModelFileError(f"model.safetensors has no {name!r}: it is no whole BERT encoder")
        fits = array.ndim == len(shape) and all(
            want is None or want == have for want, have in zip(shape, array.shape, strict=True)
        )
        if not fits or 0 in array.shape:
            raise ModelFileError(
                f"{name!r} has shape {array.shape}, config.json makes it {shape}: "
                "the files belong to different models"
            )
        weight = np.asarray(array, dtype=np.float32)
        if not np.isfinite(weight).all():
            raise ModelFileError(f"{name!r} holds NaN or infinity: fetch the model again")
        return weight


@dataclass(frozen=True, slots=True)
class _Layer:
    qkv: tuple[Array, Array]
    out: tuple[Array, Array]
    norm: tuple[Array, Array]
    up: tuple[Array, Array]
    down: tuple[Array, Array]
    last_norm: tuple[Array, Array]


def _layer_norm(x: Array, norm: tuple[Array, Array], epsilon: float) -> Array:
    x = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(epsilon))
    return np.asarray(x / spread * norm[0] + norm[1], dtype=np.float32)


def _gelu(x: Array) -> Array:
    with needs("local"):
        from scipy.special import erf  # type: ignore[import-untyped]

    return np.asarray(x * np.float32(0.5) * (1 + erf(x * np.float32(0.5**0.5))), dtype=np.float32)
