"""Attributes of communicators (MPI 1.1, 5.7): values under keys, with functions that see them come and go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .communicator import Communicator

__all__ = ["NOT_COPIED", "TAG_UB", "Keyval", "dup_fn"]

NOT_COPIED = object()
"""What a copy function returns for an attribute that the new communicator is not to have."""


async def _null_copy(communicator: Communicator, value: Any) -> Any:
    return NOT_COPIED


async def dup_fn(communicator: Communicator, value: Any) -> Any:
    """Copy function (MPI_DUP_FN): the new communicator has the same value."""
    return value


async def _null_delete(communicator: Communicator, value: Any) -> None:
    return None


def _accept(communicator: Communicator, value: Any) -> None:
    return None


async def _store(communicator: Communicator, value: Any) -> Any:
    return value


@dataclass(frozen=True, eq=False)
class Keyval:
    """The key of an attribute: a `name` for messages, and functions, each given the communicator and a value.

    - `copy`: at `dup`, the value for the new communicator, or NOT_COPIED (by default).
    - `delete`: the attribute is deleted or replaced, or its communicator freed.
    - `check`: the attribute is to be set: raises an AttributeKeyError for a value that cannot be, before anything
      changes.
    - `store`: the attribute is set: what is kept as its value. MPI has neither of these two; here they are how QoS
      attributes ask the bandwidth manager (gulati-thesis-2001 4.4.2).
    """

    name: str
    copy: Callable[[Communicator, Any], Awaitable[Any]] = _null_copy
    delete: Callable[[Communicator, Any], Awaitable[None]] = _null_delete
    check: Callable[[Communicator, Any], None] = _accept
    store: Callable[[Communicator, Any], Awaitable[Any]] = _store


TAG_UB = Keyval("TAG_UB")
"""Set on every communicator: its largest tag."""
