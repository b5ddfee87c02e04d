"""The connection queue by itself: what a turn counts."""

from __future__ import annotations

from lanikai.firmware.gm.queues import ConnectionQueue
from lanikai.firmware.gm.state import Connection


def test_turn_to_counts_the_entries_that_came_to_the_head() -> None:
    queue = ConnectionQueue()
    entries = [Connection(node, route=node, window=4) for node in range(4)]
    queue.add(entries[0])
    assert [queue.turn_to(entries[0]) for _ in range(2)] == [0, 0], "one entry: nothing turns"
    for entry in entries[1:]:
        queue.add(entry)
    queue = ConnectionQueue()
    for entry in entries:
        queue.add(entry)
    queue.turn_to(entries[0])
    assert queue.turn_to(entries[1]) == 1
    assert queue.turn_to(entries[0]) == 3
    assert queue.turn_to(entries[0]) == 3, "around, the last served one not counted"
