"""The forward pass of a BERT-like sentence encoder, in numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.errors import ModelFileError
from cvx.extras import needs
from cvx.types import IntArray, Vector

Array: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of an encoder, as ``config.json`` gives them.

    Attributes
    ----------
    hidden, layers, heads, positions : int
        Width, number of layers, attention heads a layer, longest input in tokens.
    activation : str
        "gelu", "gelu_new", "gelu_pytorch_tanh" or "relu".
    epsilon : float
        Added to variances before the root.
    """

    hidden: int
    layers: int
    heads: int
    positions: int
    activation: str
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
        if positions_kind != "absolute" or activation not in _ACTIVATIONS:
            raise ModelFileError(
                f"config.json asks for {positions_kind!r} positions and {activation!r}: "
                f"'absolute' and one of {sorted(_ACTIVATIONS)} are known"
            )
        try:
            shape = cls(
                hidden=int(config["hidden_size"]),
                layers=int(config["num_hidden_layers"]),
                heads=int(config["num_attention_heads"]),
                positions=int(config["max_position_embeddings"]),
                activation=activation,
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
        inner = _ACTIVATIONS[self.shape.activation](x @ layer.up[0] + layer.up[1])
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


def _gelu_tanh(x: Array) -> Array:
    inner = np.float32((2 / np.pi) ** 0.5) * (x + np.float32(0.044715) * x**3)
    return np.asarray(np.float32(0.5) * x * (1 + np.tanh(inner)), dtype=np.float32)


def _relu(x: Array) -> Array:
    return np.maximum(x, np.float32(0))


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": _gelu,
    "gelu_new": _gelu_tanh,
    "gelu_pytorch_tanh": _gelu_tanh,
    "relu": _relu,
}
