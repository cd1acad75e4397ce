"""Putting a row right where one bit of it has flipped.

The checksum has 32 bits and is linear: any two single flips in a row of less than 2**31 bits give
different checksums, so that the flip which makes the checksum hold is the one that happened.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from cvx.store.rows import row_crc

_MOST_BITS = 400_000
"""Larger rows are not tried: it would take minutes."""

Row = tuple[object, ...]


def put_right(row: Sequence[object], crc: object) -> Row | None:
    """Return a row as it was written, if a single flipped bit explains its checksum.

    Parameters
    ----------
    row : sequence
        Its values, without the checksum; text that is no UTF-8 with surrogate escapes.
    crc : object
        The checksum that is stored with it.

    Returns
    -------
    tuple or None
        The values. They are those of ``row`` where the flip was in the checksum itself.

    Examples
    --------
    >>> crc = row_crc(1, "a mug", 0.5)
    >>> put_right((1, "a muf", 0.5), crc), put_right((1, "a cup", 0.5), crc)
    ((1, 'a mug', 0.5), None)
    """
    if not isinstance(crc, int):
        return None
    try:
        if (row_crc(*row) ^ crc).bit_count() == 1:
            return tuple(row)
    except (TypeError, ValueError):
        return None
    if sum(map(_bits, row)) > _MOST_BITS:
        return None
    for place, value in enumerate(row):
        for other in _flipped(value):
            candidate = (*row[:place], other, *row[place + 1 :])
            if row_crc(*candidate) == crc:
                return candidate
    return None


def _bits(value: object) -> int:
    if isinstance(value, bytes):
        return 8 * len(value)
    return 32 * len(value) if isinstance(value, str) else 64


def _flipped(value: object) -> Iterator[object]:
    """Yield everything that the value may have been, one bit away in the file."""
    if isinstance(value, int):
        yield from (other for bit in range(64) if -(2**63) <= (other := value ^ (1 << bit)) < 2**63)
    elif isinstance(value, float):
        (raw,) = struct.unpack("<Q", struct.pack("<d", value))
        for bit in range(64):
            yield struct.unpack("<d", struct.pack("<Q", raw ^ (1 << bit)))[0]
        # A whole number is kept as an integer in the file, also where the column is a REAL.
        if value.is_integer() and abs(value) < 2**62:
            yield from (float(int(value) ^ (1 << bit)) for bit in range(48))
    elif isinstance(value, bytes):
        yield from _bytes_flipped(value)
    elif isinstance(value, str):
        for raw_text in _bytes_flipped(value.encode("utf-8", "surrogateescape")):
            try:
                yield raw_text.decode("utf-8")
            except UnicodeDecodeError:
                continue


def _bytes_flipped(raw: bytes) -> Iterator[bytes]:
    changed = bytearray(raw)
    for at in range(len(changed)):
        for bit in range(8):
            changed[at] ^= 1 << bit
            yield bytes(changed)
            changed[at] ^= 1 << bit
