"""The plain model of protection and translation: regions, channels and page tables, and the result of an access."""

from __future__ import annotations

from dataclasses import dataclass

from lanikai.hdl.nic.owners.completion_layout import CompletionStatus

__all__ = ["Region", "expected"]

PAGE = 4096


@dataclass
class Region:
    """A memory region. `table` is the place of its page table in host memory."""

    key: int
    owner: int
    start: int
    bytes: int
    table: int
    writable: bool = True
    valid: bool = True


def expected(regions, channels, memory, *, channel, region, key, address, size, write, alignment=4):
    """The (status, pieces) of an access. Pieces are (address, bytes) in host memory. `channels`: owner of each open
    channel."""
    found = regions.get(region)
    if found is None or not found.valid or found.key != key or channel not in channels:
        return CompletionStatus.NO_REGION, []
    if found.owner != channels[channel]:
        return CompletionStatus.NOT_OWNER, []
    if address < found.start or address + size > found.start + found.bytes:
        return CompletionStatus.OUTSIDE, []
    if write and not found.writable:
        return CompletionStatus.READ_ONLY, []
    if address % alignment:
        return CompletionStatus.MISALIGNED, []
    pieces = [(None, 0)] if size == 0 else []
    while size:
        at = found.table + 4 * (address // PAGE - found.start // PAGE)
        entry = int.from_bytes(memory[at : at + 4], "little")
        if not entry & 1:
            return CompletionStatus.NO_PAGE, []
        piece = min(size, PAGE - address % PAGE)
        pieces.append(((entry & ~0xFFF) + address % PAGE, piece))
        address, size = address + piece, size - piece
    return CompletionStatus.OK, pieces
