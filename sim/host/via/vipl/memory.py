"""Calls of protection tags and registered memory."""

from __future__ import annotations

from ..attributes import MemAttributes
from ..errors import VipError, VipReturn
from ..nic import Ptag, Registered, VipNic
from .checks import agent_of, check_ptag, in_kernel, invalid
from .ends import ends_with

__all__ = [
    "VipCreatePtag",
    "VipDeregisterMem",
    "VipDestroyPtag",
    "VipQueryMem",
    "VipRegisterMem",
    "VipSetMemAttributes",
]


@ends_with(
    VIP_INVALID_PARAMETER="no NIC handle",
    VIP_ERROR_RESOURCE="card or host have no more, or the process has as many as it may",
)
async def VipCreatePtag(nic: VipNic) -> Ptag:
    """A protection tag. VIs may use memory of the same tag alone; so may the other ends of their connections.

    It is a page of the card's window. Ends with VIP_ERROR_RESOURCE if the card has none left.
    """
    async with in_kernel(nic):
        return await agent_of(nic).create_ptag(nic)


@ends_with(
    VIP_INVALID_PARAMETER="no NIC handle",
    VIP_INVALID_PTAG="it is none of the process'",
    VIP_ERROR_RESOURCE="a VI or memory has it",
)
async def VipDestroyPtag(nic: VipNic, ptag: Ptag) -> None:
    """Take a tag back. Ends with VIP_INVALID_PTAG, and VIP_ERROR_RESOURCE if a VI or memory has it."""
    async with in_kernel(nic):
        check_ptag(nic, ptag)
        if ptag.users:
            raise VipError(
                VipReturn.VIP_ERROR_RESOURCE, f"{nic}: {ptag.users} VIs and regions have this protection tag"
            )
        agent_of(nic).destroy_ptag(ptag)


@ends_with(
    VIP_INVALID_PARAMETER="no NIC handle, no attributes, or bytes that the process does not have",
    VIP_INVALID_PTAG="its tag is none of the process'",
    VIP_ERROR_RESOURCE="card or host have no more, or the process has as many as it may",
)
async def VipRegisterMem(nic: VipNic, address: int, length: int, attributes: MemAttributes) -> int:
    """Register `length` bytes of the process' memory from virtual `address` on, and return their handle.

    Ends with VIP_INVALID_PTAG, VIP_INVALID_PARAMETER for bytes that the process does not have, VIP_ERROR_RESOURCE.
    """
    async with in_kernel(nic):
        _check(nic, attributes)
        buffer = nic.find(address, length) if length > 0 else None
        if buffer is None:
            raise invalid(nic, f"{length} bytes at {address:#x}: they are not in a buffer of its memory")
        return await agent_of(nic).register(nic, buffer, attributes)


@ends_with(
    VIP_INVALID_PARAMETER="no NIC handle, or a handle that is not that of this memory",
)
async def VipDeregisterMem(nic: VipNic, address: int, handle: int) -> None:
    """Deregister memory: its handle is never good again. Ends with VIP_INVALID_PARAMETER."""
    async with in_kernel(nic):
        _find(nic, address, handle)
        await agent_of(nic).deregister(nic, handle)


@ends_with(
    VIP_INVALID_PARAMETER="no NIC handle, or a handle that is not that of this memory",
)
async def VipQueryMem(nic: VipNic, address: int, handle: int) -> MemAttributes:
    """The attributes of registered memory. Ends with VIP_INVALID_PARAMETER."""
    async with in_kernel(nic):
        return _find(nic, address, handle).attributes


@ends_with(
    VIP_INVALID_PARAMETER="no NIC handle, no attributes, or a handle that is not that of this memory",
    VIP_INVALID_PTAG="its tag is none of the process'",
)
async def VipSetMemAttributes(nic: VipNic, address: int, handle: int, attributes: MemAttributes) -> None:
    """Give registered memory other attributes; its handle stays. Ends with VIP_INVALID_PARAMETER, VIP_INVALID_PTAG."""
    async with in_kernel(nic):
        registered = _find(nic, address, handle)
        _check(nic, attributes)
        await agent_of(nic).change(registered, attributes)


def _check(nic: VipNic, attributes: MemAttributes) -> None:
    if not isinstance(attributes, MemAttributes):
        raise invalid(nic, f"{attributes!r}: MemAttributes")
    check_ptag(nic, attributes.ptag)


def _find(nic: VipNic, address: int, handle: int) -> Registered:
    found = nic.memory.get(handle)
    if found is None or not 0 <= address - found.region.buffer.start < found.region.buffer.length:
        raise invalid(
            nic, f"handle {handle!r} is not that of memory at {address:#x}: VipRegisterMem gives it"
        )
    return found
