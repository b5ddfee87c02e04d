"""Parts that the calls share: checks of handles, limits of time, the way into the kernel."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...config import cycles
from ...errors import MemoryUseError
from ...kit.errors import ResourceError
from ..agent import Agent
from ..attributes import MOST_DISCRIMINATOR_BYTES, NetAddress, ViState
from ..completion_queue import VipCompletionQueue
from ..errors import VipError, VipReturn
from ..nic import Ptag, VipNic
from ..vi import Vi

__all__ = [
    "agent_of",
    "check_address",
    "check_nic",
    "check_ptag",
    "check_queue",
    "check_state",
    "check_vi",
    "deadline_of",
    "in_kernel",
    "invalid",
]


def agent_of(nic: VipNic) -> Agent:
    """The kernel agent of a NIC's node."""
    assert isinstance(nic.driver, Agent)
    return nic.driver


def invalid(what: object, message: str) -> VipError:
    """VIP_INVALID_PARAMETER."""
    return VipError(VipReturn.VIP_INVALID_PARAMETER, f"{what}: {message}")


def check_nic(nic: VipNic) -> VipNic:
    """Raise VipError for what is no NIC, or one that is closed, or whose process is gone."""
    if not isinstance(nic, VipNic):
        raise invalid(repr(nic), "a NIC, as VipOpenNic opens it")
    nic.check()
    return nic


@asynccontextmanager
async def in_kernel(nic: VipNic) -> AsyncIterator[None]:
    """A system call, with the agent's lock. Raises VipError: VIP_ERROR if the process is gone, VIP_ERROR_RESOURCE for
    what card or host have no more of."""
    check_nic(nic)
    await agent_of(nic).spend(agent_of(nic).kit.system_call_ns)
    async with agent_of(nic).lock:
        nic.check()
        try:
            yield
        except (ResourceError, MemoryUseError) as error:
            raise VipError(VipReturn.VIP_ERROR_RESOURCE, str(error)) from None


def deadline_of(nic: VipNic, timeout_ms: float | None, *, least_ms: float = 0) -> int | None:
    """The cycle in which a wait ends; None for VIP_INFINITE. Raises VipError for a time that is too short."""
    if timeout_ms is None:
        return None
    if (
        not isinstance(timeout_ms, (int, float))
        or not timeout_ms >= least_ms
        or (least_ms == 0 and timeout_ms < 0)
    ):
        raise invalid(nic, f"timeout_ms = {timeout_ms!r}: at least {least_ms:g}, or None for VIP_INFINITE")
    return agent_of(nic).bus.cycle + cycles(round(timeout_ms * 1_000_000), agent_of(nic).nic)


def check_vi(vi: Vi) -> Vi:
    """Raise VipError for a VI that is destroyed, or whose process is gone."""
    if not isinstance(vi, Vi):
        raise invalid(repr(vi), "a VI, as VipCreateVi makes it")
    vi.nic.check()
    if not vi.alive:
        raise invalid(vi, "it is destroyed")
    return vi


def check_state(vi: Vi, *states: ViState) -> None:
    """Raise VipError (VIP_INVALID_STATE) for a VI in another state."""
    if vi.state not in states:
        wanted = " or ".join(state.value for state in states)
        why = f" ({vi.why})" if vi.why else ""
        raise VipError(VipReturn.VIP_INVALID_STATE, f"{vi}: it is in {vi.state.value}{why}, not in {wanted}")


def check_queue(queue: VipCompletionQueue, nic: VipNic | None = None) -> VipCompletionQueue:
    """Raise VipError for a completion queue that is destroyed, or not the process'."""
    if not isinstance(queue, VipCompletionQueue):
        raise invalid(repr(queue), "a completion queue, as VipCreateCQ makes it")
    queue.nic.check()
    if queue not in agent_of(queue.nic).completion_queues or nic not in (None, queue.nic):
        raise invalid(
            nic or queue.nic, f"completion queue {queue.kit.number} is not its own, or is destroyed"
        )
    return queue


def check_ptag(nic: VipNic, ptag: object) -> Ptag:
    """Raise VipError (VIP_INVALID_PTAG) for a protection tag that is none of the process."""
    if not isinstance(ptag, Ptag) or ptag not in nic.ptags:
        raise VipError(
            VipReturn.VIP_INVALID_PTAG,
            f"{nic}: a protection tag that is not its own; VipCreatePtag makes one",
        )
    return ptag


def check_address(nic: VipNic, address: NetAddress, *, local: bool) -> None:
    """Raise VipError for an address that there cannot be, and VIP_NOT_REACHABLE for a node without a route: also for
    the own node."""
    if not isinstance(address, NetAddress) or not isinstance(address.discriminator, bytes):
        raise invalid(nic, f"{address!r}: a NetAddress with a discriminator of bytes")
    if len(address.discriminator) > MOST_DISCRIMINATOR_BYTES:
        raise invalid(
            nic, f"a discriminator of {len(address.discriminator)} bytes: at most {MOST_DISCRIMINATOR_BYTES}"
        )
    if local and address.node != nic.node:
        raise invalid(nic, f"local address on node {address.node}: it must be on node {nic.node}")
    if not local and address.node == nic.node:
        raise VipError(
            VipReturn.VIP_NOT_REACHABLE,
            f"node {nic.node} has no route to itself: VIA connects processes of different nodes",
        )
    if not local and address.node not in agent_of(nic).routes:
        known = ", ".join(map(str, agent_of(nic).routes)) or "none"
        raise VipError(
            VipReturn.VIP_NOT_REACHABLE,
            f"node {nic.node} has no route to node {address.node}; it reaches {known}",
        )
