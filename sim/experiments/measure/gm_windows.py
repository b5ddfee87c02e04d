"""The windows that flows of GM messages are measured in. Deliveries are counted packet by packet, when a packet's last
byte stands in its receiver's memory.

- `RoundWindow`: for flows of one sender, whose dispatch pattern repeats after a round of packets. It holds a whole
  number of rounds, so shares are exact.
- `TimeWindow`: for flows of several senders, which have no common round. A flow's bandwidth is its bytes over the whole
  window, so that a flow that stops in it loses what it did not send. A window holds no whole number of packets of every
  flow. So a packet counts as spread evenly over the time since the flow's packet before it, and a packet that a
  window's end cuts counts for the part inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...units import mb_per_s

if TYPE_CHECKING:
    from ...systems.cluster import Cluster

__all__ = ["TAIL_CYCLES", "RoundWindow", "TimeWindow", "amount_within", "bandwidths", "wait_for_next"]

PROGRESS_STEPS = 32
TAIL_CYCLES = 70_000
"""The longest wait after a window has closed for the packets that its end cuts.

It is twice the longest IDT of an experiment, and a packet of each of three other flows.
"""
LOOK_CYCLES = 200
"""Period of looking whether they are there."""


def amount_within(events: Sequence[tuple[int, float]], opened: int, closed: int) -> float:
    """The sum of `events`, (cycle, amount) in the order of cycles, between two cycles.

    Each amount is spread evenly over the time since the event before. The first one there is counts at its own cycle.
    """
    total = 0.0
    before: int | None = None
    for cycle, amount in events:
        if before is None or cycle == before:
            total += amount if opened < cycle <= closed else 0
        else:
            inside = min(cycle, closed) - max(before, opened)
            total += amount * max(0, inside) / (cycle - before)
        before = cycle
    return total


class RoundWindow:
    """A window of packets. It counts delivered packets of all `flows` together: `warm_up_packets` go by, the next
    `window_packets` are measured.

    - `done`: is set with the last of them.
    - `cycles`: from the delivery that opened the window to the one that closed it.
    - `payload_bytes`: bytes of each flow in it.
    """

    def __init__(self, cluster: Cluster, *, flows: int, warm_up_packets: int, window_packets: int) -> None:
        self._cluster = cluster
        self._warm_up = warm_up_packets
        self._end = warm_up_packets + window_packets
        self._delivered = 0
        self._opened = 0
        self.cycles = 0
        self.payload_bytes = [0] * flows
        self.done = cluster.clock.flag()

    def deliver(self, flow: int, length: int) -> None:
        """Note that a packet's last byte stands in its receiver's memory."""
        self._delivered += 1
        if self._delivered <= self._warm_up:
            self._opened = self._cluster.clock.cycle
        elif self._delivered <= self._end:
            self.payload_bytes[flow] += length
            self.cycles = self._cluster.clock.cycle - self._opened
        if self._delivered == self._end:
            self.done.set()
        if self._delivered % 8 == 0:
            self._cluster.progress(
                min(1.0, self._delivered / self._end), f"{self._delivered} of {self._end} packets"
            )


class TimeWindow:
    """A window of time. It counts each flow's packets in a stretch of time. `measure` may be called again and again."""

    def __init__(self, cluster: Cluster, *, flows: int) -> None:
        self._cluster = cluster
        self._open = False
        self._events: list[list[tuple[int, float]]] = [[] for _ in range(flows)]

    def deliver(self, flow: int, length: int) -> None:
        """Note that a packet's last byte stands in its receiver's memory."""
        if not self._open:
            self._events[flow].clear()
        self._events[flow].append((self._cluster.clock.cycle, length))

    async def measure(
        self, *, warm_up_cycles: int, window_cycles: int, progress: bool = True
    ) -> dict[str, Any]:
        """Let the warm-up go by, then measure `payload_bytes` of each flow in the `window_cycles`.

        Parts of packets that the window's ends cut count as fractions. Returns when the packets that its end cuts have
        come, or `TAIL_CYCLES` later.
        """
        clock = self._cluster.clock
        for events in self._events:
            events.clear()
        await clock.sleep(warm_up_cycles)
        self._open = True
        opened = clock.cycle
        for step in range(PROGRESS_STEPS):
            start, end = (window_cycles * one // PROGRESS_STEPS for one in (step, step + 1))
            await clock.sleep(end - start)
            if progress:
                self._cluster.progress((step + 1) / PROGRESS_STEPS, f"{end} of {window_cycles} cycles")
        closed = clock.cycle
        await wait_for_next(
            self._cluster,
            lambda: [events[-1][0] if events else opened for events in self._events],
            opened,
            closed,
        )
        self._open = False
        return {
            "payload_bytes": [amount_within(events, opened, closed) for events in self._events],
            "window_cycles": closed - opened,
            "clock_hz": self._cluster.config.nic.clock_hz,
        }


async def wait_for_next(
    cluster: Cluster, latest: Callable[[], Sequence[int]], opened: int, closed: int
) -> None:
    """Return when every flow with an event in a window has had one after it, or `TAIL_CYCLES` later.

    `latest`: the cycle of each flow's latest event, at the time of the call.
    """
    active = [opened < cycle for cycle in latest()]
    for _ in range(TAIL_CYCLES // LOOK_CYCLES):
        if all(cycle > closed for cycle, waited in zip(latest(), active, strict=True) if waited):
            return
        await cluster.clock.sleep(LOOK_CYCLES)


def bandwidths(measured: Mapping[str, Any]) -> list[float]:
    """MB/s of each flow, from what `TimeWindow.measure` returns."""
    return [
        mb_per_s(payload, measured["window_cycles"], measured["clock_hz"])
        for payload in measured["payload_bytes"]
    ]
