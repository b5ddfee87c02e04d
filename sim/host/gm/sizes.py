"""Size classes of messages, as GM has them: a message of size n has up to 2^n - 8 bytes."""

from __future__ import annotations

from ..checks import whole
from ..errors import MemoryUseError

__all__ = ["SIZES", "length_for_size", "size_for_length"]

SIZES = range(3, 32)
"""The sizes that exist."""


def length_for_size(size: int) -> int:
    """The longest message of a size, bytes. Raises MemoryUseError for a size that does not exist, ArgumentTypeError."""
    if whole("size", size) not in SIZES:
        raise MemoryUseError(
            f"size = {size}: {SIZES[0]} to {SIZES[-1]}, for messages of up to 2^size - 8 bytes"
        )
    return (1 << size) - 8


def size_for_length(length: int) -> int:
    """The smallest size for messages of so many bytes. Raises MemoryUseError if none is large enough or `length` is
    negative, ArgumentTypeError."""
    if not 0 <= whole("length", length) <= length_for_size(SIZES[-1]):
        raise MemoryUseError(f"length = {length}: 0 to {length_for_size(SIZES[-1])} bytes have a size")
    return max(SIZES[0], (length + 7).bit_length())
