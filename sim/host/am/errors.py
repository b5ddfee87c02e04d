"""How a call of virtual networks ends, and why a message comes back."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from lanikai.firmware.am.wire import MessageKind, Reason

from ...errors import UserError

__all__ = ["AmCode", "AmError", "AmOpcode", "AmStatus", "opcode_of", "status_of"]


class AmCode(IntEnum):
    """Return codes of the Active Messages II interface; `AM_OK` is a call that returns."""

    AM_OK = 0
    AM_ERR_NOT_INIT = 1  # the process, the bundle or the endpoint is no more
    AM_ERR_BAD_ARG = 2  # an argument that makes no sense
    AM_ERR_RESOURCE = 3  # card or host have no more of it
    AM_ERR_NOT_SENT = (
        4  # a reply elsewhere than in its request's handler, or a second one; a handler's request
    )
    AM_ERR_IN_USE = 5  # it still has messages under way, or is taken already


class AmStatus(IntEnum):
    """Statuses of a message that comes back, as the error handler is given them."""

    EBADARGS = 1  # the message's words make no sense
    EBADENTRY = 2  # the translation leads to no node
    EBADTAG = 3  # the endpoint has another tag
    EBADHANDLER = 4  # the endpoint has no such handler; the receiving library says so
    EBADSEGOFF = 5  # bulk data that are not all in the receiver's segment
    EBADLENGTH = 6  # more data than a staging slot holds
    EBADENDPOINT = 7  # there is no such endpoint, or its process has died
    EUNREACHABLE = (
        8  # the node gives no answer, or has been started again. It is not known whether it has arrived
    )
    EHOSTBUS = 9  # the receiver's host bus answered with an error


_STATUS: Mapping[int, AmStatus] = {
    Reason.WRONG_TAG: AmStatus.EBADTAG,
    Reason.NO_ENDPOINT: AmStatus.EBADENDPOINT,
    Reason.TOO_LONG: AmStatus.EBADLENGTH,
    Reason.OUTSIDE: AmStatus.EBADSEGOFF,
    Reason.BAD_MESSAGE: AmStatus.EBADARGS,
    Reason.BAD_ENTRY: AmStatus.EBADARGS,
    Reason.HOST_BUS: AmStatus.EHOSTBUS,
    Reason.RESTARTED: AmStatus.EUNREACHABLE,
    Reason.UNREACHABLE: AmStatus.EUNREACHABLE,
    Reason.NO_ROUTE: AmStatus.EBADENTRY,
}


def status_of(reason: int) -> AmStatus:
    """The status for a reason of the firmware's; `EBADARGS` for one that makes no sense."""
    return _STATUS.get(reason, AmStatus.EBADARGS)


class AmOpcode(IntEnum):
    """Kinds of messages, as the error handler is given them."""

    AM_REQUEST_M = 1
    AM_REQUEST_IM = 2
    AM_REQUEST_XFER_M = 3
    AM_REPLY_M = 4
    AM_REPLY_IM = 5
    AM_REPLY_XFER_M = 6


def opcode_of(kind: MessageKind, *, reply: bool) -> AmOpcode:
    """The opcode of a message."""
    return AmOpcode(1 + kind + 3 * reply)


class AmError(UserError):
    """A call ended with `code`; the message is one line that begins with it."""

    def __init__(self, code: AmCode, message: str) -> None:
        super().__init__(f"{code.name}: {message}")
        self.code = code
