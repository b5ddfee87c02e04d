"""Attributes of communicators (MPI 1.1, 5.7): values under keys, with functions that see them come and go."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .base import Comm

__all__ = ["NOT_COPIED", "TAG_UB", "Keyval", "finished"]

NOT_COPIED = object()
"""Value that a copy function returns for an attribute that the new communicator is not to have."""


def _accept(comm: Comm, value: Any) -> None:
    return None


def _store(comm: Comm, value: Any) -> Any:
    return value


async def finished(result: Any) -> Any:
    """The result of a function, which may be a coroutine."""
    return await result if inspect.isawaitable(result) else result


@dataclass(frozen=True, eq=False)
class Keyval:
    """The key of an attribute: a `name` for messages, and functions or coroutines.

    - `copy(comm, keyval, value)`: at `Dup`, the value for the new communicator, or NOT_COPIED. True: the same value;
      None: not copied.
    - `delete(comm, keyval, value)`: called when the attribute is deleted or replaced, or its communicator freed. If it
      raises, the attribute stays and so does the communicator.
    - `check(comm, value)`: called when the attribute is to be set. It raises an AttributeKeyError for an impossible
      value, before anything changes.
    - `store(comm, value)`: called when the attribute is set. It gives the value that is kept.

    MPI has neither of the last two. Here they are how QoS attributes ask the bandwidth manager (gulati-thesis-2001
    4.4.2).
    """

    name: str = "keyval"
    copy: Callable[[Any, Keyval, Any], Any] | bool | None = None
    delete: Callable[[Any, Keyval, Any], Any] | None = None
    check: Callable[[Any, Any], None] = _accept
    store: Callable[[Any, Any], Any] = _store

    async def copied(self, comm: Comm, value: Any) -> Any:
        """The value for a duplicate of `comm`, or NOT_COPIED."""
        if self.copy is True:
            return value
        return await finished(self.copy(comm, self, value)) if callable(self.copy) else NOT_COPIED

    async def deleted(self, comm: Comm, value: Any) -> None:
        """Tell the delete function."""
        if self.delete is not None:
            await finished(self.delete(comm, self, value))


TAG_UB = Keyval("TAG_UB")
"""Attribute of every communicator: its largest tag."""
