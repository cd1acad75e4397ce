"""Estimates how many tokens a text is for a language model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

CountTokens: TypeAlias = Callable[[str], int]
"""From a text to its number of tokens; give that of your model's tokenizer."""

_BYTES_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """Estimate tokens without a tokenizer: a quarter of the UTF-8 bytes, rounded up.

    English prose has some four bytes a token with the usual tokenizers; code and other scripts
    differ, so give the tokenizer of your model where the budget is tight.

    Examples
    --------
    >>> estimate_tokens("the spare key is under the pot")
    8
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)
