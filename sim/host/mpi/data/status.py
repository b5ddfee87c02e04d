"""The status of a message that has been received."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError
from ..matching import ANY_SOURCE, ANY_TAG
from .datatypes import dtype_of

__all__ = ["UNDEFINED", "Status", "check_status"]

UNDEFINED = -32766
"""No number: a count that is not whole, a rank that is not there, the colour of a rank that Split leaves out."""


@dataclass
class Status:
    """A message that has been received.

    - `source`: the sender's rank in the communicator.
    - `tag`: its tag.
    - `length`: its bytes.
    - `cancelled`: whether its request was cancelled.

    The status of a send, and a new one, has ANY_SOURCE and ANY_TAG. Calls with an argument `status` fill it in.
    """

    source: int = ANY_SOURCE
    tag: int = ANY_TAG
    length: int = 0
    cancelled: bool = False

    def Get_source(self) -> int:
        """The sender's rank in the communicator."""
        return self.source

    def Get_tag(self) -> int:
        """The message's tag."""
        return self.tag

    def Get_count(self, datatype: Any = "u1") -> int:
        """Its elements of a type, bytes by default; UNDEFINED if it is not a whole number of them."""
        whole, rest = divmod(self.length, dtype_of(datatype, "Get_count").itemsize)
        return UNDEFINED if rest else whole

    def Is_cancelled(self) -> bool:
        """Whether the request was cancelled."""
        return self.cancelled

    @property
    def count(self) -> int:
        """Its bytes."""
        return self.length

    def fill(self, other: Status) -> None:
        """Become equal to another one."""
        self.source, self.tag, self.length, self.cancelled = (
            other.source,
            other.tag,
            other.length,
            other.cancelled,
        )


def check_status(status: Any, what: str) -> None:
    """Raise ArgumentError, beginning with `what`, if `status` is neither a Status nor None."""
    if status is not None and not isinstance(status, Status):
        raise ArgumentError(f"{what}: status = {status!r}: a Status, or None")
