"""Codes of VIPL: how calls end, and asynchronous errors (VI Architecture Specification 1.0, VIPL).

One idiom for all calls. A call returns what the C call writes through its pointers. VIP_SUCCESS is a call that returns,
VIP_NOT_DONE is None, and every other code is the `code` of a raised `VipError`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from ...errors import UserError

__all__ = ["ErrorCode", "ErrorReport", "ResourceCode", "VipError", "VipReturn"]


class VipReturn(IntEnum):
    """How a call ends."""

    VIP_SUCCESS = 0
    VIP_NOT_DONE = 1
    VIP_INVALID_PARAMETER = 2  # an argument that makes no sense, or a handle that is not the caller's
    VIP_ERROR_RESOURCE = 3  # there is no more of it, or it is in use
    VIP_TIMEOUT = 4
    VIP_REJECT = 5  # the other end has called VipConnectReject
    VIP_INVALID_RELIABILITY_LEVEL = 6  # the two ends differ, or the card has no such level
    VIP_INVALID_MTU = 7  # the two ends differ in MaxTransferSize, or the card has no such size
    VIP_INVALID_QOS = 8  # the two ends differ, or a card has not the capacity
    VIP_INVALID_PTAG = 9
    VIP_INVALID_RDMAREAD = 10  # RDMA reads at a level that has none
    VIP_DESCRIPTOR_ERROR = 11  # a descriptor has ended with an error, or there is none
    VIP_INVALID_STATE = 12  # a VI is in a state in which the call means nothing
    VIP_ERROR_NAMESERVICE = 13
    VIP_NO_MATCH = 14  # nobody waits at that address
    VIP_NOT_REACHABLE = 15  # there is no route to the node, or its agent is silent
    VIP_ERROR_NOT_SUPPORTED = 16
    VIP_ERROR = 17  # the process is no more


class ErrorCode(IntEnum):
    """Kinds of asynchronous errors."""

    VIP_ERROR_POST_DESC = 0  # a descriptor was posted that the card cannot take
    VIP_ERROR_CONN_LOST = 1  # the other end has disconnected, or is gone
    VIP_ERROR_RECVQ_EMPTY = 2  # a message came to an empty receive queue of a reliable connection
    VIP_ERROR_VI_OVERRUN = 3  # a completion queue was overrun: its entries are made up for
    VIP_ERROR_RDMAW_PROT = 4  # an RDMA write was refused by the other end
    VIP_ERROR_RDMAW_DATA = 5
    VIP_ERROR_RDMAW_ABORT = 6
    VIP_ERROR_RDMAR_PROT = 7  # an RDMA read was refused by the other end
    VIP_ERROR_COMP_PROT = 8  # the bus refused a completion queue's memory
    VIP_ERROR_RDMA_TRANSPORT = 9  # a message was lost on a reliable connection
    VIP_ERROR_CATASTROPHIC = 10


class ResourceCode(IntEnum):
    """The things that asynchronous errors befall."""

    VIP_RESOURCE_NIC = 0
    VIP_RESOURCE_VI = 1
    VIP_RESOURCE_CQ = 2
    VIP_RESOURCE_DESCRIPTOR = 3


class VipError(UserError):
    """A call ended with `code`; the message is one line that begins with it.

    - `descriptor`: the descriptor that has ended with an error (VIP_DESCRIPTOR_ERROR), None for an empty queue.
    - `acceptable_bytes_per_s`: the bandwidth that would be accepted (VIP_INVALID_QOS), 0 for none.
    """

    def __init__(
        self, code: VipReturn, message: str, descriptor: Any = None, *, acceptable_bytes_per_s: int = 0
    ) -> None:
        super().__init__(f"{code.name}: {message}")
        self.code, self.descriptor = code, descriptor
        self.acceptable_bytes_per_s = acceptable_bytes_per_s


@dataclass(frozen=True, kw_only=True)
class ErrorReport:
    """An asynchronous error, as the handler of `VipErrorCallback` is given it.

    It names the handles that it is about, None for those that it is not about. `reason`: a line for people.
    """

    code: ErrorCode
    resource: ResourceCode
    nic: Any
    vi: Any = None
    completion_queue: Any = None
    descriptor: Any = None
    reason: str = ""
