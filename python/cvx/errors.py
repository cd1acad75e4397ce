"""Every error that cvx raises, in one tree under `CvxError`.

Each class is also the builtin that fits it, so that ``except ValueError`` and ``except KeyError``
work. Messages name the value, the bound and the cure. The native module raises these classes.
"""

from __future__ import annotations

from cvx.escaping import printable


class CvxError(Exception):
    """The root of all of them.

    Examples
    --------
    >>> str(UnknownNodeError("there is no node 7: the index has 3"))
    'there is no node 7: the index has 3'
    """

    # KeyError shows the repr of its argument, OSError a tuple: a message is a message. What it
    # quotes may be anybody's, and ends up in terminals and logs.
    def __str__(self) -> str:
        return printable(str(self.args[0])) if self.args else ""


class InvalidInputError(CvxError, ValueError):
    """A value that cannot be used, whatever the state of the index."""


class InvalidParameterError(InvalidInputError):
    """A parameter of an index or of a call lies outside its bounds (dim, m, ef, beta, alpha...)."""


class InvalidKError(InvalidParameterError):
    """A number of results below 1."""


class UnknownMetricError(InvalidParameterError):
    """A metric other than cosine, l2 and ip."""


class InvalidVectorError(InvalidInputError):
    """Something that is no vector of finite floats, or no matrix of them."""


class DimensionError(InvalidVectorError):
    """A vector of another length than the dimension of the index."""


class NonFiniteVectorError(InvalidVectorError):
    """NaN or infinity in a vector."""


class ZeroVectorError(InvalidVectorError):
    """A vector of length zero, which has no direction, under the cosine metric."""


class LengthMismatchError(InvalidInputError):
    """Columns of a batch that differ in length."""


class InvalidEntityError(InvalidInputError):
    """An entity id below 0 or beyond 64 bits."""


class RewardRangeError(InvalidInputError):
    """A reward outside [0, 1]."""


class InvalidFilterError(InvalidInputError):
    """A filter with a field that cannot be understood."""


class InvertedRangeError(InvalidFilterError):
    """A range that ends before it begins; a range with one side only is fine."""


class EdgeWeightError(InvalidInputError):
    """The weight of an edge, or a boost, outside its range."""


class InvalidEdgeError(InvalidInputError):
    """An edge that cannot be: from a node to itself, or of a kind that is implied."""


class EffectBeforeCauseError(InvalidEdgeError):
    """A link whose effect happened before its cause."""


class InvalidEdgeKindNameError(InvalidInputError):
    """A name for an edge kind that is not lower snake case."""


class UnknownError(CvxError, KeyError):
    """Something was asked for by a name or number that nothing has."""


class UnknownNodeError(UnknownError):
    """A node id that was never given, or whose node was deleted."""


class UnknownEntityError(UnknownError):
    """An entity without a single node in the namespace asked."""


class UnknownLevelError(UnknownError):
    """A level that has no region; the message lists those that have."""


class UnknownRegionError(UnknownError):
    """A node that is no hub of the level."""


class UnknownEdgeKindError(UnknownError):
    """An edge kind that is neither built in nor declared; the message lists the known ones."""


class UnknownEdgeError(UnknownError):
    """An edge that does not exist."""


class NoVectorError(CvxError, LookupError):
    """A vector was needed of a node, or an index, that has none."""


class CapacityError(CvxError, OverflowError):
    """More nodes or edge kinds than an index can hold."""


class SnapshotError(CvxError):
    """A snapshot that could not be written or read."""


class NotASnapshotError(SnapshotError, ValueError):
    """A file that is not a cvx snapshot."""


class UnsupportedVersionError(SnapshotError, ValueError):
    """A snapshot of a format that this version does not read."""


class TruncatedSnapshotError(SnapshotError, ValueError):
    """A snapshot that ends before it should."""


class CorruptedSnapshotError(SnapshotError, ValueError):
    """A snapshot whose checksums or contents do not hold."""


class SnapshotIOError(SnapshotError, OSError):
    """The file system refused."""


class InternalError(CvxError, RuntimeError):
    """A fault of cvx itself: please report it with the message."""


class PoisonedIndexError(InternalError):
    """A change broke off half way; the index in memory can no longer be trusted."""


class TimestampOrderError(InvalidInputError):
    """A step that lies before the one recorded last."""


class EpisodeError(CvxError, RuntimeError):
    """An episode was used in a way its state does not allow."""


class EpisodeEndedError(EpisodeError):
    """A step after the end of an episode, or a second outcome."""


class DecisionTakenError(EpisodeError):
    """A second action on one decision."""


class ForeignEpisodeError(EpisodeError):
    """An episode or decision that another memory handed out."""


class StaleRegionsError(CvxError, RuntimeError):
    """Something learned on the regions of another epoch."""


class UnknownFeatureError(UnknownError):
    """A weight for a feature that the scorer does not have; the message lists those it has."""


class StoreError(CvxError, RuntimeError):
    """Something about a store: it cannot be opened, read or written as it was asked."""


class RecordClosedError(StoreError):
    """The record was closed."""


class NestedTransactionError(StoreError):
    """A transaction was opened inside another one."""


class RecordMismatchError(StoreError):
    """A record and an index that do not belong together."""


class RecordVersionError(StoreError, ValueError):
    """A database of another schema version, or no record at all."""


class EmbedderError(CvxError, RuntimeError):
    """Something that turns texts into vectors does not work."""


class MissingExtraError(EmbedderError, ImportError):
    """A package that this part of cvx needs is not installed; the message says which extra."""


class EmbedderNotApprovedError(EmbedderError, PermissionError):
    """An embedder over the network that a store names, and the user neither named nor approved."""


class EmbedderUnreachableError(EmbedderError, ConnectionError):
    """An embedding server that cannot be reached, or breaks off every answer."""


class EmbedderTimeoutError(EmbedderError, TimeoutError):
    """An embedding server that did not answer in time, retries included."""


class EmbedderRefusedError(EmbedderError):
    """An embedding server that answers with an error."""


class EndpointMissingError(EmbedderRefusedError, LookupError):
    """A server without the endpoint asked for: it speaks another protocol."""


class EmbedderAccessError(EmbedderRefusedError, PermissionError):
    """An embedding server that wants another key."""


class ModelNotFoundError(EmbedderRefusedError, LookupError):
    """A model that the server does not have; the message says how to get it."""


class TextTooLongError(EmbedderRefusedError, ValueError):
    """A text with more tokens than the model reads."""


class EmbedderAnswerError(EmbedderError, ValueError):
    """An answer that is no matrix of finite numbers with one row a text."""


class EmbedderDimensionError(EmbedderAnswerError):
    """Vectors of another dimension than expected."""


class ModelFileError(EmbedderError, OSError):
    """A folder that holds no model which can be read."""


class ModelFileChangedError(ModelFileError):
    """A file of a model that has another SHA-256 than it should."""


class EmbeddingCacheError(EmbedderError, OSError):
    """An embedding cache that cannot be opened, or could not forget."""


class CvxWarning(UserWarning):
    """The root of all warnings."""

    def __str__(self) -> str:
        return printable(super().__str__())


class EffectFirstWarning(CvxWarning):
    """A link whose effect happened before its cause was stored, as was chosen."""


class OneOutcomeWarning(CvxWarning):
    """Weights were to be learned from outcomes that are all alike: no feature got any."""


class ConstantFeatureWarning(CvxWarning):
    """Weights were to be learned for a feature that never varies: it got none."""


class DamagedCacheWarning(CvxWarning):
    """An embedding cache was damaged, set aside and started anew."""


class CacheUnavailableWarning(CvxWarning):
    """An embedding cache could not be read or written; texts are embedded without it."""


class EmbedderUnavailableWarning(CvxWarning):
    """An embedder did not answer a recall, which went by words alone."""


class LegacyEndpointWarning(CvxWarning):
    """A server offers only an older endpoint, with the drawback that the message names."""


class DamagedRowsWarning(CvxWarning):
    """An index was built without rows of the record that are not what was written."""


class RecordIOError(StoreError, OSError):
    """The disk is full, or the file system refused; nothing of the transaction was stored."""


class LockTimeoutError(RecordIOError, TimeoutError):
    """Another thread or process has kept every writer out for too long; nothing was stored."""


class DamagedRecordError(StoreError, ValueError):
    """The record holds rows, or pages, that are not what was written."""


class ForeignSchemaError(DamagedRecordError):
    """A database with triggers, views, tables or indexes that no record has, or without its own."""


class LostTailError(StoreError, ValueError):
    """The record ends before something that was written: the newest changes are gone."""


class ForkedRecordError(StoreError):
    """A record opened in the parent process was used in a child."""


class ReadOnlyError(StoreError, PermissionError):
    """A write to a view of the past, or to a store that was opened to be read only."""


class PastNotKeptError(StoreError, LookupError):
    """What the record knew then is not kept: by the version that wrote it, or any more."""


class SettingsMismatchError(StoreError, ValueError):
    """A store of vectors of another embedder."""


class DuplicateKeyError(InvalidInputError):
    """Another event of the namespace is called so already."""


class NamespaceError(CvxError, PermissionError):
    """A memory that is bound to a namespace was asked for what is not of it."""


class UnknownEventError(UnknownError):
    """An event id that was never given, or whose event was erased."""


class StoreNotFoundError(StoreError, FileNotFoundError):
    """A folder that is no store, where one was asked for."""


class SystemRoleError(InvalidParameterError):
    """Recalled memory was about to speak with the authority of the system prompt."""


class PipelineNotKeptWarning(CvxWarning):
    """A pipeline with a part of the user's own was set: no store can keep it."""


class StaleCueWarning(CvxWarning):
    """The same cue was asked turn after turn, while the turns went on."""


class LexicalOnlyWarning(UserWarning):
    """A memory was opened without an embedder; the default knows spelling, not meaning."""


class OutputError(CvxError, OSError):
    """A place where results are to be written, and cannot be."""


class CoreError(CvxError, RuntimeError):
    """A causal memory core was used in a way its state does not allow."""


class CoreFileError(CoreError, OSError):
    """A DuckDB file that cannot be opened, read or written."""


class CoreLockedError(CoreFileError, PermissionError):
    """A DuckDB file that another process has open."""


class CoreDamagedError(CoreFileError, ValueError):
    """A DuckDB file that is damaged, or none at all."""


class CoreSchemaError(CoreFileError, ValueError):
    """A DuckDB file whose events are not those of a causal memory core."""


class InputFileError(CvxError, OSError):
    """A file that was given and cannot be read."""


class ExportError(CvxError, ValueError):
    """An export that cannot be taken in: damaged, cut, of another version, or there already."""
