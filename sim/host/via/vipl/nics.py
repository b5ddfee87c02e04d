"""Calls of the NIC: open, close, query, errors, names of nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lanikai.firmware.via.config import MOST_MESSAGE_BYTES
from lanikai.hdl.nic.owners.completion_layout import INDEX_BITS

from ...kit.errors import ResourceError
from ..agent import Agent
from ..attributes import MOST_DISCRIMINATOR_BYTES, RDMA_READ_LEVELS, NetAddress, NicAttributes, Reliability
from ..errors import ErrorReport, VipError, VipReturn
from ..nic import VipNic
from .checks import agent_of, check_nic, in_kernel, invalid
from .ends import ends_with

__all__ = [
    "VIP_SMI_AUTODISCOVERY",
    "VipCloseNic",
    "VipErrorCallback",
    "VipNSGetHostByAddr",
    "VipNSGetHostByName",
    "VipNSInit",
    "VipNSShutdown",
    "VipOpenNic",
    "VipQueryNic",
    "VipQuerySystemManagementInfo",
]

VIP_SMI_AUTODISCOVERY = 1
"""InfoType of `VipQuerySystemManagementInfo`: the addresses of the nodes that can be reached."""


@ends_with(
    gone=False,
    VIP_INVALID_PARAMETER="no agent",
    VIP_ERROR_RESOURCE="the card has no page left",
)
async def VipOpenNic(agent: Agent) -> VipNic:
    """Open a node's card for a process. Ends with VIP_ERROR_RESOURCE if the card has no page left."""
    if not isinstance(agent, Agent):
        raise invalid(repr(agent), "the kernel agent of a node")
    await agent.spend(agent.kit.system_call_ns)
    async with agent.lock:
        try:
            return await agent.open_nic()
        except ResourceError as error:
            raise VipError(VipReturn.VIP_ERROR_RESOURCE, str(error)) from None


@ends_with(
    VIP_INVALID_PARAMETER="no NIC handle",
)
async def VipCloseNic(nic: VipNic) -> None:
    """Close it: all that the process has of it is taken back, and its connections end."""
    async with in_kernel(nic):
        await agent_of(nic).close_nic(nic)


@ends_with(
    VIP_INVALID_PARAMETER="no NIC handle",
)
async def VipQueryNic(nic: VipNic) -> NicAttributes:
    """The card's attributes; of what a process may have less than the card, that is what they say."""
    check_nic(nic)
    card, layout = agent_of(nic).nic, agent_of(nic).layout
    limits = agent_of(nic).config.limits
    return NicAttributes(
        name=agent_of(nic).name,
        node=nic.node,
        thread_safe=True,
        most_discriminator_bytes=MOST_DISCRIMINATOR_BYTES,
        most_register_bytes=len(agent_of(nic).bus.memory),
        most_regions=_least(limits.most_regions, card.regions),
        most_vis=_least(limits.most_vis, card.channels - 1),
        most_descriptors=agent_of(nic).config.queue_entries,
        most_segments=layout.form.data_segments,
        most_completion_queues=_least(limits.most_completion_queues, card.completion_queues),
        most_completion_entries=1 << (INDEX_BITS - 1),
        most_transfer_bytes=MOST_MESSAGE_BYTES,
        native_mtu_bytes=layout.fragment_bytes,
        most_ptags=_least(limits.most_tags, card.owners - 1),
        reliability_levels=tuple(Reliability),
        rdma_read_levels=RDMA_READ_LEVELS,
    )


@ends_with(
    VIP_INVALID_PARAMETER="no NIC handle, or a handler that cannot be called",
)
async def VipErrorCallback(
    nic: VipNic, context: Any, handler: Callable[[Any, ErrorReport], None] | None
) -> None:
    """Have `handler(context, report)` called of asynchronous errors, those that were before first. None: keep the last
    ones until there is a handler."""
    check_nic(nic)
    if handler is not None and not callable(handler):
        raise invalid(nic, f"{handler!r}: something that can be called")
    nic.handle_errors(context, handler)


@ends_with(
    VIP_INVALID_PARAMETER="no NIC handle",
    VIP_ERROR_NOT_SUPPORTED="information that there is not",
)
async def VipQuerySystemManagementInfo(nic: VipNic, info_type: int) -> list[NetAddress]:
    """The nodes that can be reached (VIP_SMI_AUTODISCOVERY). Ends with VIP_ERROR_NOT_SUPPORTED for anything else."""
    check_nic(nic)
    if info_type != VIP_SMI_AUTODISCOVERY:
        raise VipError(
            VipReturn.VIP_ERROR_NOT_SUPPORTED,
            f"{nic}: information {info_type!r}; there is {VIP_SMI_AUTODISCOVERY} (VIP_SMI_AUTODISCOVERY)",
        )
    return [NetAddress(node) for node in sorted(agent_of(nic).routes)]


@ends_with(
    VIP_INVALID_PARAMETER="no NIC handle",
    VIP_ERROR_NAMESERVICE="it has been called already",
)
async def VipNSInit(nic: VipNic) -> None:
    """Begin to use the name service, whose names are node0, node1, and so on."""
    async with in_kernel(nic):
        if nic.named:
            raise VipError(VipReturn.VIP_ERROR_NAMESERVICE, f"{nic}: its name service has been begun already")
        nic.named = True


@ends_with(
    VIP_INVALID_PARAMETER="no NIC handle",
    VIP_ERROR_NAMESERVICE="VipNSInit was not called",
)
async def VipNSShutdown(nic: VipNic) -> None:
    """End that."""
    async with in_kernel(nic):
        _named(nic)
        nic.named = False


@ends_with(
    VIP_INVALID_PARAMETER="no NIC handle",
    VIP_ERROR_NAMESERVICE="VipNSInit was not called, or no node has the name",
)
async def VipNSGetHostByName(nic: VipNic, name: str) -> NetAddress:
    """The address of a node. Ends with VIP_ERROR_NAMESERVICE for a name that there is not."""
    async with in_kernel(nic):
        _named(nic)
        for node in _nodes(nic):
            if name == f"node{node}":
                return NetAddress(node)
        known = ", ".join(f"node{node}" for node in _nodes(nic))
        raise VipError(VipReturn.VIP_ERROR_NAMESERVICE, f"{nic}: no host {name!r}; there are {known}")


@ends_with(
    VIP_INVALID_PARAMETER="no NIC handle, or no address",
    VIP_ERROR_NAMESERVICE="VipNSInit was not called, or the node cannot be reached",
)
async def VipNSGetHostByAddr(nic: VipNic, address: NetAddress) -> str:
    """The name of a node. Ends with VIP_ERROR_NAMESERVICE for one that cannot be reached."""
    async with in_kernel(nic):
        _named(nic)
        if not isinstance(address, NetAddress):
            raise invalid(nic, f"{address!r}: a NetAddress")
        if address.node not in _nodes(nic):
            raise VipError(
                VipReturn.VIP_ERROR_NAMESERVICE,
                f"{nic}: node {address.node} has no name: it cannot be reached",
            )
        return f"node{address.node}"


def _least(limit: int | None, most: int) -> int:
    return most if limit is None else min(limit, most)


def _named(nic: VipNic) -> None:
    if not nic.named:
        raise VipError(VipReturn.VIP_ERROR_NAMESERVICE, f"{nic}: call VipNSInit first")


def _nodes(nic: VipNic) -> list[int]:
    return sorted({nic.node, *agent_of(nic).routes})
