"""The errors of experiments: games, demonstrations, and language models that play.

They are `cvx.errors.CvxError` too, so that a command catches what it and the library raise at once.
"""

from __future__ import annotations

from cvx.errors import CvxError


class GameError(CvxError, ValueError):
    """A game that cannot be played: damaged, unfinished, or asked for the impossible."""


class GameNotFoundError(GameError, FileNotFoundError):
    """A game file or a folder of games that is not there."""


class DemonstrationError(GameError):
    """A game that the demonstrator did not win within its steps."""


class LLMError(CvxError, RuntimeError):
    """A language model that cannot be reached or answers with an error."""


class LLMTimeoutError(LLMError, TimeoutError):
    """A language model that did not answer in time, retries included."""


class LLMAnswerError(LLMError, ValueError):
    """A language model whose answers name no admissible command."""


class LLMCacheError(LLMError, OSError):
    """A folder of answers that cannot be read or written."""


class LLMCacheMissError(LLMError, LookupError):
    """An answer that is not on disk, where nobody else may be asked."""


class AuditError(CvxError, OSError):
    """A log of a run that cannot be written, or read."""
