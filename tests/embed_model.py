"""A tiny sentence encoder with random weights, and a plain reference of what it computes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

HIDDEN, LAYERS, HEADS, INNER, PLACES = 12, 2, 3, 20, 16
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "mug", "shelf", "on", "the", "is", "clean"]
WORDS += ["to", "put", "drawer", "##s", "##ing", *"bcdefghijklmnopqrstuvwxyz"]
TEXTS = ["put a mug on the shelf", "mugs", "clean the drawer", "", "to clean is cleaning"]
Weights = dict[str, Any]


def weights(seed: int = 0) -> Weights:
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> Any:
        return rng.normal(0, 0.5, shape).astype(np.float32)

    made = {
        "embeddings.word_embeddings.weight": draw(len(WORDS), HIDDEN),
        "embeddings.position_embeddings.weight": draw(PLACES, HIDDEN),
        "embeddings.token_type_embeddings.weight": draw(2, HIDDEN),
        "embeddings.position_ids": np.arange(PLACES)[None],
        "pooler.dense.weight": draw(HIDDEN, HIDDEN),
    }
    norms = ["embeddings.LayerNorm"]
    for i in range(LAYERS):
        at = f"encoder.layer.{i}."
        norms += [f"{at}attention.output.LayerNorm", f"{at}output.LayerNorm"]
        for name, out, inp in [
            *((f"attention.self.{w}", HIDDEN, HIDDEN) for w in ("query", "key", "value")),
            ("attention.output.dense", HIDDEN, HIDDEN),
            ("intermediate.dense", INNER, HIDDEN),
            ("output.dense", HIDDEN, INNER),
        ]:
            made[f"{at}{name}.weight"] = draw(out, inp)
            made[f"{at}{name}.bias"] = draw(out)
    for name in norms:
        made[f"{name}.weight"] = 1 + draw(HIDDEN) / 5
        made[f"{name}.bias"] = draw(HIDDEN)
    return made


def build(folder: Path, made: Weights | None = None, **config: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {word: i for i, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    # Published files carry both settings; the embedder has to undo them.
    tokenizer.enable_truncation(5)
    tokenizer.enable_padding(length=9)
    tokenizer.save(str(folder / "tokenizer.json"))
    safetensors.numpy.save_file(made or weights(), folder / "model.safetensors")
    sizes = {
        "model_type": "bert",
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": INNER,
        "max_position_embeddings": PLACES,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
    }
    (folder / "config.json").write_text(json.dumps(sizes | config))
    return folder


def reference(tokens: list[int], w: Weights, pooling: str = "mean") -> list[float]:
    """One text, one token, one head at a time, in float64 and plain loops."""
    w = {name: value.astype(np.float64) for name, value in w.items()}

    def linear(name: str, row: Any) -> Any:
        return w[f"{name}.weight"] @ row + w[f"{name}.bias"]

    def norm(name: str, row: Any) -> Any:
        spread = math.sqrt(sum((v - row.mean()) ** 2 for v in row) / len(row) + 1e-12)
        return (row - row.mean()) / spread * w[f"{name}.weight"] + w[f"{name}.bias"]

    def gelu(v: float) -> float:
        return v * 0.5 * (1 + math.erf(v / math.sqrt(2)))

    rows = []
    for place, token in enumerate(tokens):
        row = w["embeddings.word_embeddings.weight"][token].copy()
        row += w["embeddings.position_embeddings.weight"][place]
        row += w["embeddings.token_type_embeddings.weight"][0]
        rows.append(norm("embeddings.LayerNorm", row))
    for i in range(LAYERS):
        at = f"encoder.layer.{i}."
        q, k, v = (
            [linear(f"{at}attention.self.{part}", row) for row in rows]
            for part in ("query", "key", "value")
        )
        following = []
        for place, row in enumerate(rows):
            seen = []
            for head in range(HEADS):
                part = slice(head * HIDDEN // HEADS, (head + 1) * HIDDEN // HEADS)
                marks = [
                    math.exp(q[place][part] @ key[part] / math.sqrt(HIDDEN / HEADS)) for key in k
                ]
                seen.append(
                    sum(m / sum(marks) * value[part] for m, value in zip(marks, v, strict=True))
                )
            mixed = linear(f"{at}attention.output.dense", np.concatenate(seen))
            row = norm(f"{at}attention.output.LayerNorm", row + mixed)
            inner = np.array([gelu(x) for x in linear(f"{at}intermediate.dense", row)])
            row = norm(f"{at}output.LayerNorm", row + linear(f"{at}output.dense", inner))
            following.append(row)
        rows = following
    pooled = rows[0] if pooling == "cls" else sum(rows) / len(rows)
    return [float(x) for x in pooled / math.sqrt(sum(x * x for x in pooled))]


def tokens_of(text: str) -> list[int]:
    """Whole words, then their longest known beginnings: enough for these texts."""
    ids = [2]
    for word in text.split():
        if word in WORDS:
            ids.append(WORDS.index(word))
        else:
            stem = next(word[:n] for n in range(len(word), 0, -1) if word[:n] in WORDS)
            ids += [WORDS.index(stem), WORDS.index("##" + word[len(stem) :])]
    return [*ids, 3]
