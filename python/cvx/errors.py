"""Every error and warning of cvx, in one tree under `CvxError`.

Each class is also the builtin that fits it, so that ``except ValueError`` and ``except KeyError``
work; a class of its own says that a caller may act otherwise. Messages name the value, the bound
and the cure. The native module raises these classes.
"""

from __future__ import annotations

import re
import sys
import warnings

from cvx.escaping import printable

_LONG_NUMBER = re.compile(r"\d[\d,]{63,}")
"""Nobody reads a hundred digits; a checksum has at most 64."""


class CvxError(Exception):
    """The root of all of them.

    Examples
    --------
    >>> str(UnknownError("there is no node 7: the index has 3"))
    'there is no node 7: the index has 3'
    """

    # KeyError shows the repr of its argument, OSError a tuple: a message is a message. What it
    # quotes may be anybody's, and ends up in terminals and logs.
    def __str__(self) -> str:
        told = printable(str(self.args[0])) if self.args else ""
        return _LONG_NUMBER.sub(lambda digits: f"{digits[0][:18]}...", told)


class InvalidInputError(CvxError, ValueError):
    """A value that cannot be used: of another type, outside its bounds, or not to be stored."""


class InvalidVectorError(InvalidInputError):
    """Something that is no vector of finite floats of the right length, or a matrix of them."""


class DuplicateKeyError(InvalidInputError):
    """Another event of the namespace is called so already."""


class ExportError(InvalidInputError):
    """An export that cannot be taken in: damaged, cut, of another version, or there already."""


class UnknownError(CvxError, KeyError):
    """Something was asked for by an id, a name or a time that nothing has."""


class NamespaceError(CvxError, PermissionError):
    """A memory that is bound to a namespace was asked for what is not of it."""


class SettingsMismatchError(CvxError, ValueError):
    """A store was made with another embedder, metric, clock, preset or tokenizer than is given."""


class StoreError(CvxError, OSError):
    """Something about a store: it cannot be opened, read or written as it was asked."""


class StoreNotFoundError(StoreError, FileNotFoundError):
    """A folder that is no store, where one was asked for."""


class StoreVersionError(StoreError, ValueError):
    """A database of another schema version, or none of cvx at all."""


class DamagedStoreError(StoreError, ValueError):
    """A store holds rows, pages or tables that are not what was written."""


class LostTailError(StoreError, ValueError):
    """The record ends before something that was written: the newest changes are gone."""


class RecordIOError(StoreError):
    """The disk is full, or the file system refused; nothing of the transaction was stored."""


class LockTimeoutError(RecordIOError, TimeoutError):
    """Another thread or process has kept every writer out for too long; nothing was stored."""


class SnapshotError(StoreError, ValueError):
    """A snapshot of an index that could not be written or read."""


class ReplicaLostError(StoreError):
    """Too few nodes of a cluster have a shard: what was to be written is not acknowledged."""


class MissingShardsError(CvxError, TimeoutError):
    """A shard of a cluster did not answer in time, and without it there is no answer."""


class FileError(CvxError, OSError):
    """A file that was given and cannot be read, or a place where results cannot be written."""


class ReadOnlyError(CvxError, RuntimeError):
    """A write to a view of the past, or to a store that was opened to be read only."""


class EpisodeEndedError(CvxError, RuntimeError):
    """A step after the end of an episode, or a second outcome where one was final."""


class NotLoggedError(CvxError, RuntimeError):
    """Decisions were made without noting the chances that off-policy evaluation needs."""


class StaleRegionsError(CvxError, RuntimeError):
    """Something learned on the regions of another epoch."""


class InternalError(CvxError, RuntimeError):
    """A fault of cvx itself: please report it with the message."""


class MissingExtraError(CvxError, ImportError):
    """A package that this part of cvx needs is not installed; the message says which."""


class EmbedderError(CvxError, RuntimeError):
    """Something that turns texts into vectors does not work."""


class EmbedderNotApprovedError(EmbedderError, PermissionError):
    """An embedder over the network that a store names, and the user neither named nor approved."""


class EmbedderUnreachableError(EmbedderError, ConnectionError):
    """An embedding server that cannot be reached, or breaks off every answer."""


class EmbedderTimeoutError(EmbedderError, TimeoutError):
    """An embedding server that did not answer in time, retries included."""


class EmbedderRefusedError(EmbedderError):
    """An embedding server that answers with an error, or wants another key."""


class EndpointMissingError(EmbedderRefusedError, LookupError):
    """A server without the endpoint asked for: it speaks another protocol."""


class ModelNotFoundError(EmbedderRefusedError, LookupError):
    """A model that the server does not have; the message says how to get it."""


class TextTooLongError(EmbedderRefusedError, ValueError):
    """A text with more tokens than the model reads."""


class EmbedderAnswerError(EmbedderError, ValueError):
    """An answer that is no matrix of finite numbers with one row a text."""


class EmbedderDimensionError(EmbedderAnswerError):
    """Vectors of another dimension than expected."""


class ModelFileError(EmbedderError, OSError):
    """A folder that holds no model which can be read, or a file of one that has changed."""


class EmbeddingCacheError(EmbedderError, OSError):
    """An embedding cache that cannot be opened, or could not forget."""


class CvxWarning(UserWarning):
    """The root of all warnings."""

    def __str__(self) -> str:
        return printable(super().__str__())


class EchoWarning(CvxWarning):
    """Something was added that only repeats what was recalled: nothing new was stored."""


class AsOfWarning(CvxWarning):
    """A view of the past shows nothing: its time is before the first recording of the store."""


class EffectFirstWarning(CvxWarning):
    """A link whose effect happened before its cause was stored, as was chosen."""


class NotWrittenWarning(CvxWarning):
    """A memory was closed without what its recalls had noted, since another process was writing."""


class LearningWarning(CvxWarning):
    """Weights were to be learned of what never varies: outcomes all alike, or a feature."""


class CacheWarning(CvxWarning):
    """An embedding cache was damaged and started anew, or could not be read or written."""


class EmbedderWarning(CvxWarning):
    """An embedder did not answer a recall, which went by words; or offers an older endpoint."""


class DamagedRowsWarning(CvxWarning):
    """An index was built without rows of the record that are not what was written."""


class PipelineNotKeptWarning(CvxWarning):
    """A pipeline with a part of the user's own was set: no store can keep it."""


class ClockWarning(CvxWarning):
    """The last change of a store is recorded ahead of this machine's clock."""


class StaleCueWarning(CvxWarning):
    """The same cue was asked turn after turn, while the turns went on."""


class UnjudgedWarning(CvxWarning):
    """A judge of causes has had no clear word on anything it was asked."""


class EpisodeDiscardedWarning(CvxWarning):
    """A ``with memory.episode(...)`` block was left without an outcome."""


class LexicalOnlyWarning(CvxWarning):
    """A memory was opened without an embedder; the default knows spelling, not meaning."""


def warn(message: str, category: type[CvxWarning]) -> None:
    """Warn of something, at the line of the user's program that called cvx.

    How many calls of cvx lie between the two changes with every decorator, and is not counted.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


_OURS = ("cvx.", "contextlib")
