"""Element types under MPI's names. Each stands for a numpy type; so does a numpy type itself wherever one is asked for.

`signature` is a type as the header of a message carries it: 16 bits, so that ranks which give a collective operation
different types are told so.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DatatypeError

__all__ = ["DATATYPES", "Datatype", "dtype_of", "signature", "type_name"]


@dataclass(frozen=True)
class Datatype:
    """An element type: MPI's `name` and the numpy `dtype`."""

    name: str
    dtype: np.dtype[Any]

    def Get_size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def Get_extent(self) -> tuple[int, int]:
        """Lower bound and extent of an element, bytes."""
        return 0, self.dtype.itemsize

    def Get_name(self) -> str:
        """MPI's name of it."""
        return self.name

    @property
    def size(self) -> int:
        """`Get_size`."""
        return self.Get_size()

    @property
    def extent(self) -> int:
        """Its extent, bytes."""
        return self.dtype.itemsize


_PLAIN = {
    "BYTE": "u1",
    "CHAR": "i1",
    "SIGNED_CHAR": "i1",
    "UNSIGNED_CHAR": "u1",
    "SHORT": "i2",
    "UNSIGNED_SHORT": "u2",
    "INT": "i4",
    "UNSIGNED": "u4",
    "LONG": "i8",
    "UNSIGNED_LONG": "u8",
    "LONG_LONG": "i8",
    "UNSIGNED_LONG_LONG": "u8",
    "INT8_T": "i1",
    "INT16_T": "i2",
    "INT32_T": "i4",
    "INT64_T": "i8",
    "UINT8_T": "u1",
    "UINT16_T": "u2",
    "UINT32_T": "u4",
    "UINT64_T": "u8",
    "FLOAT": "f4",
    "DOUBLE": "f8",
    "C_BOOL": "?",
    "BOOL": "?",
    "C_FLOAT_COMPLEX": "c8",
    "COMPLEX": "c8",
    "C_DOUBLE_COMPLEX": "c16",
    "DOUBLE_COMPLEX": "c16",
}
_PAIRS = {
    "SHORT_INT": "i2",
    "INT_INT": "i4",
    "TWOINT": "i4",
    "LONG_INT": "i8",
    "FLOAT_INT": "f4",
    "DOUBLE_INT": "f8",
}
"""Types of a value and an index, for MINLOC and MAXLOC."""


def _pair(value: str) -> np.dtype[Any]:
    return np.dtype([("value", value), ("index", "i4")], align=True)


DATATYPES = {name: Datatype(name, np.dtype(text)) for name, text in _PLAIN.items()} | {
    name: Datatype(name, _pair(value)) for name, value in _PAIRS.items()
}
"""All types, by name."""


def dtype_of(given: Any, what: str) -> np.dtype[Any]:
    """The numpy type of a Datatype, a numpy type or a type code. Raises DatatypeError, which begins with `what`."""
    if isinstance(given, Datatype):
        return given.dtype
    if isinstance(given, np.dtype | str | type):
        try:
            found = np.dtype(given)
        except TypeError:
            found = np.dtype(object)
        if not found.hasobject and found.itemsize:
            return found
    raise DatatypeError(
        f"{what}: {given!r} is no element type; give MPI.INT, MPI.DOUBLE, ... or a numpy type"
    )


def signature(dtype: np.dtype[Any]) -> int:
    """A type in 16 bits: equal for equal types, byte order and fields included."""
    return zlib.crc32(repr(dtype.descr).encode()) & 0xFFFF


_NAMES = {
    signature(one.dtype): one.dtype.name for one in reversed(DATATYPES.values()) if one.dtype.fields is None
} | {signature(one.dtype): one.name for one in DATATYPES.values() if one.dtype.fields is not None}


def type_name(bits: int) -> str:
    """The name of a type that a header has told of."""
    return _NAMES.get(bits, "another type")
