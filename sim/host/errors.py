"""Errors of the GM host library: one line that says what is wrong, where, and what would be right."""

from __future__ import annotations

from ..errors import UserError

__all__ = [
    "AbortedError",
    "ArgumentTypeError",
    "BusFaultError",
    "ClosedPortError",
    "GmError",
    "IdtRangeError",
    "MemoryUseError",
    "MessageTooLongError",
    "NoTokensError",
    "NodeDeadError",
    "SendTimedOutError",
    "TooManyFlowsError",
    "UnknownNodeError",
    "UnknownPortError",
    "UnregisteredMemoryError",
]


class GmError(UserError):
    """A GM call or a message failed. Other messages are not touched by it."""


class ArgumentTypeError(GmError, TypeError):
    """An argument is not of the type that the call takes."""


class SendTimedOutError(GmError):
    """A message was not taken within the bounds of `GmConfig`: `send_tries`, `send_timeout_ticks`."""


class AbortedError(GmError):
    """The sender has given the message up: by `GmPort.abort`, or by closing the port."""


class NodeDeadError(GmError):
    """The node is silent, has been started again, or was declared dead."""


class ClosedPortError(GmError):
    """The port of the call, or the port that a message was for, is not open."""


class UnknownPortError(GmError):
    """There is no such port."""


class UnknownNodeError(GmError):
    """There is no such node, or no route to it."""


class NoTokensError(GmError):
    """All send tokens, or all receive tokens, of the port are in use."""


class UnregisteredMemoryError(GmError):
    """The memory is not registered for DMA with this port."""


class MemoryUseError(GmError):
    """Memory that is not there, badly aligned, or still in use."""


class MessageTooLongError(GmError):
    """A message is longer than the receive buffer that waits for it."""


class TooManyFlowsError(GmError):
    """The rate control unit has no room for another flow."""


class IdtRangeError(GmError):
    """An inter-packet dispatch time that the card cannot hold."""


class BusFaultError(GmError):
    """The host's bus answered a DMA with an error."""
