"""A cache of a language model's answers on disk."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cvx.errors import CacheWarning
from experiments.chat.client import Answer
from experiments.errors import LLMCacheError, LLMCacheMissError


class AnswerCache:
    """A folder with a file for each answer, named by a hash of all that the answer depends on.

    That is the model's name, temperature, seed, bound on tokens and every message; the address of
    the server is not part of it. Processes may share a folder: a file appears whole or not at all.

    Parameters
    ----------
    folder : path-like
        Made when the first answer is kept.
    only : bool, default False
        Whether an answer that is not known is an error: a run is repeated, and nobody is asked.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> request = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    >>> with TemporaryDirectory() as folder:
    ...     cache = AnswerCache(folder)
    ...     cache.put(request, Answer("good day"))
    ...     cache.get(request)
    Answer(text='good day', cached=True, prompt_tokens=0, completion_tokens=0)
    """

    def __init__(self, folder: str | os.PathLike[str], *, only: bool = False) -> None:
        self.folder = Path(folder)
        self.only = only

    def get(self, request: Mapping[str, Any]) -> Answer | None:
        """Return the answer to a request, None if it is not known.

        Raises
        ------
        LLMCacheMissError
            It is not known, and nobody else may be asked.
        LLMCacheError
            The file cannot be read.

        Warns
        -----
        CacheWarning
            The file is not what was written; the answer counts as not known.
        """
        path = self._path(request)
        try:
            text = path.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            found = None
        except UnicodeDecodeError:
            found = self._damaged(path)
        except OSError as error:
            raise LLMCacheError(f"{path} cannot be read: {error}") from error
        else:
            found = _read(text, request) or self._damaged(path)
        if found is None and self.only:
            raise LLMCacheMissError(
                f"{self.folder} has no answer {path.stem} of {request.get('model')}: the run to "
                "repeat asked something else; allow asking the server"
            )
        return found

    def put(self, request: Mapping[str, Any], answer: Answer) -> None:
        """Keep an answer.

        Raises
        ------
        LLMCacheError
            The folder cannot be written to.
        """
        kept = {
            "request": request,
            "text": answer.text,
            "tokens": [answer.prompt_tokens, answer.completion_tokens],
        }
        kept["check"] = _digest(kept)
        path = self._path(request)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_whole(path, json.dumps(kept, ensure_ascii=True, sort_keys=True))
        except OSError as error:
            raise LLMCacheError(f"{path} cannot be written: {error}") from error

    def _path(self, request: Mapping[str, Any]) -> Path:
        name = _digest(request)
        return self.folder / name[:2] / f"{name}.json"

    @staticmethod
    def _damaged(path: Path) -> None:
        warnings.warn(
            f"{path} is not what was written: the model is asked again",
            CacheWarning,
            stacklevel=4,
        )


def _write_whole(path: Path, text: str) -> None:
    """Write a file that appears whole or not at all; nothing of it is left where that fails."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as part:
            part.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _read(text: str, request: Mapping[str, Any]) -> Answer | None:
    try:
        kept = json.loads(text)
        check = kept.pop("check")
        if check != _digest(kept) or kept["request"] != json.loads(json.dumps(request)):
            return None
        return Answer(kept["text"], True, *kept["tokens"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
