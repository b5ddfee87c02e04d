"""Endpoints of one host that send to each other, and have to be resident at the same time for that."""

from __future__ import annotations

from lanikai.firmware.am.layout import AmLayout, Queue

from .mmu import PagedEndpoint

__all__ = ["next_partner", "unsent_here"]

COUNTS = 1 << 16


def unsent_here(endpoint: PagedEndpoint, layout: AmLayout, node: int) -> set[int]:
    """Other endpoints of its own host for which an endpoint has messages that are not sent.

    Its page is in host memory. The process may have written anything there, so this decides on nothing but turns.
    """
    record, entries = endpoint.record, layout.config.queue_entries
    found = set()
    for reply, queue in ((False, Queue.SEND_REQUEST), (True, Queue.SEND_REPLY)):
        ended = record.done[reply] | record.returning[reply]
        for more in range(min(entries, (record.posted[reply] - record.taken[reply]) % COUNTS)):
            count = record.taken[reply] + more
            word = int(endpoint.words[layout.entry(queue, count) // 4])
            if not ended >> count % entries & 1 and word & 0xFFF == node:
                found.add(word >> 12 & 0xFFF)
    return found - {endpoint.number}


def next_partner(endpoint: PagedEndpoint) -> int | None:
    """The partner whose turn it is: they go round by their numbers. None if there is none."""
    if not endpoint.partners:
        return None
    last = endpoint.last_partner
    endpoint.last_partner = min(endpoint.partners, key=lambda number: (number <= last, number))
    return endpoint.last_partner
