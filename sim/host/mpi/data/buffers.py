"""Buffers as MPI calls are given them, as contiguous bytes.

A buffer is a numpy array, bytes, a bytearray, an array.array, or any other object that has Python's buffer protocol. It
may also be a list that adds how many elements there are, and of which type: `[data, count, datatype]`, `[data,
datatype]`, `[data, count]`. Calls with a part for every rank take `[data, counts, displacements, datatype]`, all but
the data optional.

Strided arrays and those of Fortran's order are sent element by element in the order of their indices. The element at
[i, j] arrives at [i, j] of whatever array receives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import BufferKindError, LengthError
from .arguments import whole
from .datatypes import Datatype, dtype_of

__all__ = ["IN_PLACE", "Data", "Parts", "data_of", "parts_of"]


class _InPlace:
    def __repr__(self) -> str:
        return "IN_PLACE"


IN_PLACE = _InPlace()
"""Instead of a buffer: the elements are already where the result goes."""
_GOOD = "give bytes, a bytearray or a numpy array"


@dataclass
class Data:
    """`count` elements of `dtype`, as `view`, their bytes. `target`: the strided array that they belong to."""

    view: memoryview
    dtype: np.dtype[Any]
    count: int
    target: np.ndarray[Any, Any] | None = None

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The elements, in one dimension: the very bytes."""
        return np.frombuffer(self.view, self.dtype, self.count) if self.count else np.empty(0, self.dtype)

    def put(self, array: np.ndarray[Any, Any]) -> None:
        """Write elements."""
        if self.count:
            self.view[:] = np.ascontiguousarray(array).view(np.uint8).data
        self.finish()

    def finish(self) -> None:
        """Put the bytes where they belong: they have been received."""
        if self.target is not None:
            self.target[...] = self.array.reshape(self.target.shape)


@dataclass
class Parts:
    """Elements of a buffer in parts, one a rank: `counts` and `displacements`, in elements."""

    data: Data
    counts: list[int]
    displacements: list[int]

    def part(self, rank: int) -> Data:
        """The part of a rank."""
        size = self.data.dtype.itemsize
        start, count = self.displacements[rank], self.counts[rank]
        return Data(self.data.view[start * size : (start + count) * size], self.data.dtype, count)


def data_of(buffer: Any, what: str, *, writable: bool = False) -> Data:
    """A buffer's elements. Raises BufferKindError, LengthError, DatatypeError, all beginning with `what`."""
    spec = list(buffer) if isinstance(buffer, list | tuple) else [buffer]
    if not 1 <= len(spec) <= 3:
        raise BufferKindError(f"{what}: a list of {len(spec)}: [data, count, datatype]")
    datatype = spec.pop() if len(spec) > 1 and _is_type(spec[-1]) else None
    if len(spec) == 3:
        raise BufferKindError(f"{what}: {spec[2]!r} is no element type; [data, count, datatype]")
    data = _whole_data(spec[0], datatype, what, writable)
    if len(spec) > 1:
        count = whole(spec[1], f"{what}: count", LengthError)
        if not 0 <= count <= data.count:
            raise LengthError(f"{what}: count = {count}: 0 to the buffer's {data.count} elements")
        if count < data.count and data.target is not None:
            raise BufferKindError(
                f"{what}: a part of an array that is not contiguous; give a copy of the part"
            )
        data.view, data.count = data.view[: count * data.dtype.itemsize], count
    return data


def parts_of(
    buffer: Any, size: int, what: str, *, writable: bool = False, counts: Sequence[int] | None = None
) -> Parts:
    """A buffer in `size` parts: the counts that it names, else `counts`, else equal ones. Raises as `data_of`."""
    spec = list(buffer) if isinstance(buffer, list | tuple) else [buffer]
    datatype = spec.pop() if len(spec) > 1 and _is_type(spec[-1]) else None
    if not 1 <= len(spec) <= 3:
        raise BufferKindError(f"{what}: a list of {len(spec)}: [data, counts, displacements, datatype]")
    if len(spec) == 2 and isinstance(spec[1], tuple | list) and spec[1] and _is_list(spec[1][0]):
        if len(spec[1]) != 2:
            raise BufferKindError(f"{what}: {spec[1]!r}: (counts, displacements)")
        spec[1:] = spec[1]
    data = _whole_data(spec[0], datatype, what, writable)
    if len(spec) > 1 and spec[1] is not None:
        named = _numbers(spec[1], size, f"{what}: counts")
    elif counts is not None:
        named = list(counts)
    else:
        if data.count % size:
            raise LengthError(f"{what}: {data.count} elements are not {size} equal parts")
        named = [data.count // size] * size
    if len(spec) > 2 and spec[2] is not None:
        places = _numbers(spec[2], size, f"{what}: displacements")
    else:
        places = [sum(named[:rank]) for rank in range(size)]
    for rank, (place, count) in enumerate(zip(places, named, strict=True)):
        if count < 0 or place < 0 or place + count > data.count:
            raise LengthError(
                f"{what}: {count} elements at {place} for rank {rank}: the buffer has {data.count}"
            )
    return Parts(data, named, places)


def _is_type(one: Any) -> bool:
    return isinstance(one, Datatype | np.dtype | str) or (
        isinstance(one, type) and issubclass(one, np.generic)
    )


def _is_list(one: Any) -> bool:
    return isinstance(one, list | tuple | np.ndarray) and not (isinstance(one, np.ndarray) and one.ndim == 0)


def _numbers(given: Any, size: int, what: str) -> list[int]:
    if not _is_list(given):
        return [whole(given, what, LengthError)] * size
    if len(given) != size:
        raise LengthError(f"{what}: {len(given)} numbers: {size}, one a rank")
    return [whole(one, what, LengthError) for one in given]


def _whole_data(given: Any, datatype: Any, what: str, writable: bool) -> Data:
    if given is None:
        return Data(memoryview(bytearray()), dtype_of(datatype or "u1", what), 0)
    if isinstance(given, np.ndarray):
        array = given
    else:
        try:
            array = np.asarray(memoryview(given))
        except (TypeError, ValueError):
            raise BufferKindError(f"{what}: {type(given).__name__} is no buffer; {_GOOD}") from None
    if array.dtype.hasobject:
        raise BufferKindError(f"{what}: an array of Python objects; use the call in lower case")
    if writable and not array.flags.writeable:
        raise BufferKindError(f"{what}: the buffer cannot be written; give a bytearray or a numpy array")
    target = None
    if not array.flags.c_contiguous:
        target, array = (array if writable else None), np.ascontiguousarray(array)
    flat = array.reshape(-1)
    view = flat.view(np.uint8).data if flat.nbytes else memoryview(bytearray())
    dtype = array.dtype if datatype is None else dtype_of(datatype, what)
    if len(view) % dtype.itemsize:
        raise LengthError(f"{what}: {len(view)} bytes are no whole number of {dtype.name}")
    if target is not None and dtype != target.dtype:
        raise BufferKindError(f"{what}: the array is not contiguous; give it without a type, or a copy of it")
    return Data(view, dtype, len(view) // dtype.itemsize, target)
