"""Activity counters of an adapter: what it did, to be turned into energy (yum-2006 3.4)."""

from __future__ import annotations

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ADAPTER_COUNTED", "AdapterCounters", "adapter_activity_signals"]

ADAPTER_COUNTED = {
    "buffer_writes": 2,
    "buffer_reads": 2,
    "arbitrations": 1,
    "link_flits": 2,
    "bus_beats": 2,
    "queue_writes": 1,
    "queue_reads": 1,
}
"""The counters, and for each the events that there may be in a cycle: the width of its input."""


class AdapterCounters(wiring.Component):
    """Counts what the parts of an adapter do that cost energy.

    For each name of `ADAPTER_COUNTED` there is an input of that name, a bit for each event of a cycle. The counter is
    the output of that name and `_count` (32 bits, modulo 2^32):

    - `buffer_writes`, `buffer_reads`: a flit into and out of the VL buffers, towards the link and from it.
    - `arbitrations`: a decision of the VL arbiter that sends a flit.
    - `link_flits`: a flit on the adapter's link, either way. No router counts it (`sim/energy/activity.py`).
    - `bus_beats`: a beat of 16 bytes that the DMA reads, or writes.
    - `queue_writes`, `queue_reads`: a message enters its class' doorbell queue, leaves it.

    Latency: a counter shows an event from the next cycle on. Throughput: every event of a cycle. Reset: all are 0.
    """

    def __init__(self) -> None:
        super().__init__(
            {name: In(events) for name, events in ADAPTER_COUNTED.items()}
            | {f"{name}_count": Out(32) for name in ADAPTER_COUNTED}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for name, events in ADAPTER_COUNTED.items():
            count, event = getattr(self, f"{name}_count"), getattr(self, name)
            m.d.sync += count.eq(count + sum(event[i] for i in range(events)))
        return m


def adapter_activity_signals(*, counters: bool, name: str = "hca") -> list[tuple[str, str]]:
    """(Verilog module, variable) of the counters of an adapter converted as `name`; none without them.

    The variables are `counted_` and names of `ADAPTER_COUNTED`.
    """
    return [(name, f"counted_{one}") for one in ADAPTER_COUNTED] if counters else []
