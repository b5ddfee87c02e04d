"""The reasons why a message or a command failed, in words: the errors of statuses."""

from __future__ import annotations

from lanikai.firmware.gm.config import GmConfig
from lanikai.firmware.gm.layout import Status
from lanikai.hdl.config import NicConfig

from ..errors import (
    AbortedError,
    BusFaultError,
    ClosedPortError,
    GmError,
    MemoryUseError,
    MessageTooLongError,
    NodeDeadError,
    SendTimedOutError,
    TooManyFlowsError,
    UnknownNodeError,
    UnknownPortError,
    UnregisteredMemoryError,
)

__all__ = ["failure"]


def failure(status: Status, what: str, *, node: int, port: int, nic: NicConfig, gm: GmConfig) -> GmError:
    """The error of a status, for `what`, which went to `port` of `node`."""
    kind, reason = {
        Status.CLOSED_PORT: (ClosedPortError, f"port {port} of node {node} is not open"),
        Status.UNKNOWN_PORT: (UnknownPortError, f"node {node} has no port {port}"),
        Status.TOO_LONG: (MessageTooLongError, "longer than the receive buffer that waits for it"),
        Status.UNKNOWN_NODE: (UnknownNodeError, f"the NIC has no route to node {node}"),
        Status.UNREGISTERED: (UnregisteredMemoryError, "the NIC finds the memory not registered"),
        Status.HOST_BUS: (BusFaultError, "the host's bus answered the DMA with an error"),
        Status.MISALIGNED: (MemoryUseError, "a DMA address is a multiple of 4"),
        Status.IN_USE: (MemoryUseError, "a message or a receive token still uses it"),
        Status.TIMED_OUT: (
            SendTimedOutError,
            f"port {port} of node {node} had no receive token for it, or gave no answer, for "
            f"{gm.send_timeout_ticks} ticks or {gm.send_tries} tries",
        ),
        Status.ABORTED: (AbortedError, "its sender has given it up"),
        Status.NODE_DEAD: (
            NodeDeadError,
            f"node {node} gives no answer, has been started again, or was declared dead",
        ),
        Status.NOT_EXPOSED: (
            MemoryUseError,
            f"port {port} of node {node} has not exposed that memory, or not all of it",
        ),
        Status.NO_FLOW: (TooManyFlowsError, f"the rate control unit holds {nic.flows} flows"),
    }.get(status, (GmError, "the NIC refused it"))
    return kind(f"{what} failed: {reason}")
