"""Descriptors as a program of VIPL has them: what it asks for, and how that has ended."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntFlag
from typing import Any

from lanikai.firmware.via.descriptor import Descriptor, Op, Segment
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus

__all__ = ["Op", "Segment", "VipDescriptor", "VipStatus", "status_bits"]


class VipStatus(IntFlag):
    """The Status field of a descriptor (specification, descriptor format)."""

    DONE = 0x1
    FORMAT_ERROR = 0x2
    PROTECTION_ERROR = 0x4
    LENGTH_ERROR = 0x8
    PARTIAL_ERROR = 0x10
    DESC_FLUSHED_ERROR = 0x20
    TRANSPORT_ERROR = 0x40
    RDMA_PROT_ERROR = 0x80
    REMOTE_DESC_ERROR = 0x100
    ERROR_MASK = 0x1FE
    OP_RECEIVE = 0x10000
    OP_RDMA_WRITE = 0x20000
    OP_REMOTE_RDMA_WRITE = 0x30000
    OP_RDMA_READ = 0x40000
    OP_MASK = 0x70000
    IMMEDIATE = 0x80000

    def __str__(self) -> str:
        """The names of its parts, as `DONE | LENGTH_ERROR | OP_RECEIVE`; NOT_DONE before the descriptor's end."""
        if not self & VipStatus.DONE:
            return "NOT_DONE"
        names = ["DONE", *(one.name or "" for one in VipStatus if one & VipStatus.ERROR_MASK & self)]
        op = self & VipStatus.OP_MASK
        names.append(_OPS.get(op, hex(op)))
        return " | ".join([*names, "IMMEDIATE"] if self & VipStatus.IMMEDIATE else names)

    def __format__(self, spec: str) -> str:
        """As `str`, formatted by `spec`."""
        return format(str(self), spec)


_OPS = {
    VipStatus(0): "OP_SEND",
    VipStatus.OP_RECEIVE: "OP_RECEIVE",
    VipStatus.OP_RDMA_WRITE: "OP_RDMA_WRITE",
    VipStatus.OP_REMOTE_RDMA_WRITE: "OP_REMOTE_RDMA_WRITE",
    VipStatus.OP_RDMA_READ: "OP_RDMA_READ",
}
_ERRORS = {
    CompletionStatus.OK: VipStatus(0),
    CompletionStatus.IMMEDIATE: VipStatus(0),
    CompletionStatus.WRITTEN: VipStatus(0),
    CompletionStatus.BUS_ERROR: VipStatus.TRANSPORT_ERROR,
    CompletionStatus.TOO_LONG: VipStatus.LENGTH_ERROR,
    CompletionStatus.NO_REGION: VipStatus.PROTECTION_ERROR,
    CompletionStatus.NOT_OWNER: VipStatus.PROTECTION_ERROR,
    CompletionStatus.OUTSIDE: VipStatus.PROTECTION_ERROR,
    CompletionStatus.READ_ONLY: VipStatus.PROTECTION_ERROR,
    CompletionStatus.NO_PAGE: VipStatus.PROTECTION_ERROR,
    CompletionStatus.MISALIGNED: VipStatus.FORMAT_ERROR,
    CompletionStatus.FORMAT: VipStatus.FORMAT_ERROR,
    CompletionStatus.FLUSHED: VipStatus.DESC_FLUSHED_ERROR,
    CompletionStatus.TRANSPORT: VipStatus.TRANSPORT_ERROR,
    CompletionStatus.NO_DESCRIPTOR: VipStatus.REMOTE_DESC_ERROR,
    CompletionStatus.REMOTE_ACCESS: VipStatus.RDMA_PROT_ERROR,
    CompletionStatus.PARTIAL: VipStatus.PARTIAL_ERROR,
}
"""Error bits of each way in which the card ends a descriptor. OVERRUN is of completion queues alone."""
_SENT = {Op.RDMA_WRITE: VipStatus.OP_RDMA_WRITE, Op.RDMA_READ: VipStatus.OP_RDMA_READ}


def status_bits(status: CompletionStatus, op: Op, *, receive: bool) -> VipStatus:
    """The Status field of a descriptor of operation `op` that ended with `status`."""
    bits = VipStatus.DONE | _ERRORS[status]
    if not receive:
        return bits | _SENT.get(op, VipStatus(0))
    written = status == CompletionStatus.WRITTEN
    bits |= VipStatus.OP_REMOTE_RDMA_WRITE if written else VipStatus.OP_RECEIVE
    return bits | VipStatus.IMMEDIATE if written or status == CompletionStatus.IMMEDIATE else bits


class VipDescriptor:
    """VIP_DESCRIPTOR. It may be posted again when it has ended and has been taken off its queue.

    What it asks for, `request`, is given as to `lanikai.firmware.via.descriptor.Descriptor`: `op`, `segments`,
    `remote`, `immediate`, `fence`. The queue's ring has a copy of it: the agent has registered the ring, so no call
    takes the descriptor's own memory handle.

    How it has ended:

    - `status`: its Status field; 0 until it has ended.
    - `length`: bytes that were moved.
    - `immediate`: immediate data that have come, None if none have.
    """

    def __init__(
        self, segments: Sequence[Segment] = (), *, request: Descriptor | None = None, **fields: Any
    ) -> None:
        self.request = Descriptor(segments=tuple(segments), **fields) if request is None else request
        self.posted = False
        self.begin()

    def begin(self) -> None:
        """Note that it is posted: it has not ended."""
        self.status = VipStatus(0)
        self.length = 0
        self.immediate: bytes | None = None

    def end(
        self, status: CompletionStatus, length: int, immediate: bytes | None = None, *, receive: bool
    ) -> None:
        """Note how it has ended."""
        self.status = status_bits(status, self.request.op, receive=receive)
        self.length, self.immediate = length, immediate

    @property
    def errors(self) -> str:
        """The names of its error bits."""
        return " and ".join(bit.name or "" for bit in VipStatus if bit & VipStatus.ERROR_MASK & self.status)

    @property
    def failed(self) -> bool:
        """Whether it has ended with an error."""
        return bool(self.status & VipStatus.ERROR_MASK)
