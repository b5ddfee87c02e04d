"""Messages on their way, and what the transport says of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lanikai.hdl.packet import Header

from .wire import AmHeader, Reason

__all__ = ["Ending", "Fresh", "Message", "Outcome", "Packet"]


@dataclass(eq=False, kw_only=True)
class Message:
    """A message of a resident endpoint, from its `Transport.offer` to its `Outcome`.

    It is a copy that the firmware has checked: the process may write its entry meanwhile.

    - `node`, `endpoint`: the destination.
    - `header`: all fields but `stamp`, `incarnation` and `expected`, which each try sets. `header.source_endpoint` is
      the sender, and `header.reply` says whether it goes by the channels of replies.
    - `words`: the message's words, `header.words` of them.
    - `context`: the firmware's own (frame, queue, count of the entry).
    """

    node: int
    endpoint: int
    header: AmHeader
    words: tuple[int, ...] = ()
    context: object = None


@dataclass(frozen=True, kw_only=True)
class Packet:
    """A packet to be sent.

    - `header`: all of it but the route.
    - `words`: all words behind the header; then come the message's data, if it has some.
    - `message`: whose data follow, `message.header.bytes` of them; None: no data follow (an answer, a VOID).
    """

    header: Header
    words: tuple[int, ...]
    message: Message | None = None

    @property
    def data_bytes(self) -> int:
        """Bytes of data that follow the words."""
        return 0 if self.message is None else self.message.header.bytes


@dataclass(frozen=True, kw_only=True, eq=False)
class Fresh:
    """A message that has come and waits for `Transport.answer`. Until then copies of it are thrown away.

    - `node`: the source. `header.source_endpoint` is the endpoint there.
    - `endpoint`: the destination.
    - `words`: the message's words; its data stand behind them in the packet.
    - `slot`: the transport's own.
    """

    node: int
    endpoint: int
    header: AmHeader
    words: tuple[int, ...]
    slot: object

    @property
    def data_offset(self) -> int:
        """Bytes between the packet's header and its data."""
        return 32 + 4 * len(self.words)


class Ending(Enum):
    """The end of a message at its sender's card."""

    DELIVERED = "delivered"
    """It is in the destination endpoint, once."""
    RETURNED = "returned"
    """It is not and never will be: `Outcome.reason`. Of UNREACHABLE and RESTARTED alone that is not known."""
    WITHDRAWN = "withdrawn"
    """It is not and never will be, as its endpoint was to be quiet. It may be offered again."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The end of a message: one for each that was offered, but those of an endpoint that was abandoned."""

    message: Message
    ending: Ending
    reason: Reason = Reason.DELIVERED
