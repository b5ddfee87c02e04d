"""The cost of each step of the VIA programs, in cycles of the card's processor: one table a design."""

from __future__ import annotations

from ..costs import CostTable

__all__ = ["SVIA_COSTS"]

SVIA_COSTS = CostTable(
    "svia",
    {
        "dispatch": 6,
        "look": 2,
        "poll": 5,
        "doorbell": 12,
        "record": 12,
        "program_descriptor": 12,
        "process": 16,
        "process_receive": 16,
        "program_data": 10,
        "program_up": 10,
        "page": 4,
        "program_probe": 10,
        "program_tail": 10,
        "tail": 6,
        "remote": 6,
        "ended": 6,
        "program_send": 24,
        "answer": 24,
        "packet": 20,
        "program_status": 12,
        "status_done": 4,
        "program_queue": 12,
        "queue_done": 4,
        "complete": 12,
        "wait": 8,
        "rearm": 4,
        "set_up": 6,
        "notice": 12,
        "timer": 12,
    },
)
