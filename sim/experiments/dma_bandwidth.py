"""dma-bandwidth: the bandwidth of each DMA engine, with and without a hardware queue before it.

nagar-thesis-2001 4.3.7: a queue lowers the cost of starting a transfer, and "the DMA can directly proceed to the next
operation when the previous operation gets done". The thesis gives no numbers for an engine alone.

Here a coroutine on the card's processor port keeps one engine of a `lanai7` card at work. It does nothing else and pays
for its register accesses alone: the best that any firmware can do. Without a queue it waits for the engine's event,
then starts the next transfer. With one it fills the queue whenever that has room.

- `host read`, `host write`: the host DMA engine, host memory to SRAM and back, over the profile's PCI bus.
- `send`: the send engine of node 0, packets to nodes 1 and 2 in turn, so that a buffer always waits.
- `receive`: the receive engine of node 1; nodes 0 and 2 both send to it, so that a flit always waits.

A transfer has the bytes of its size. For the network it is cut into packets of the MTU. For the host DMA engine, which
counts bytes in 16 bits, it is cut into parts of 32 KB.

The peak is the most that bus or link carry in such transfers:

- Link: the flits of the packets, header and CRC among them, at its rate.
- Bus: bursts of `burst_beats` words, each with the clocks that the bus itself takes (`lanikai.sim.models.pci_host`):
  address, turnaround, wait states, idle clock. Before a write burst there is arbitration too, as the bus takes it when
  the one before has been answered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import cycle, islice
from typing import TYPE_CHECKING, Annotated, Any

from lanikai.hdl.config import Config, NicConfig, preset
from lanikai.hdl.packet import Header, packet_flits
from pydantic import Field

from ..errors import UserError
from ..units import KB, MB, mb_per_s
from .framework.base import Claim, Experiment, Outcome, Point, Size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..models.pci_timing import PciTiming
    from ..systems.cluster import Cluster, ClusterConfig, Node

__all__ = ["DmaBandwidth", "DmaBandwidthParameters", "bus_cycles", "link_cycles", "pieces"]

ENGINES = ("host read", "host write", "send", "receive")
SIZES = {
    "quick": [4, 256, 4096, 65536],
    "full": [4, 16, 64, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536],
}
"""Transfer sizes, bytes."""
WINDOW_CYCLES = {"quick": 12_000, "full": 60_000}
"""Least cycles of a measurement, from the end of a transfer to the end of another.

The firmware sees an end 8 cycles late. Where transfers are short and it is filling the queue, it sees an end when it
looks next, with those that have ended by then. So a window is right to 8 cycles, or to a transfer of the short ones.
"""
WARM_UP = 6
"""Ends before the measurement: enough for a queue's fill to make no difference."""
RESOLUTION = 0.002
"""Relative error of a measurement: 8 cycles at both ends, or a transfer of 14 to 29, of the shorter window."""
GOOD, GOOD_BYTES = 0.98, 4096
"""With a queue an engine reaches this part of its peak in transfers of so many bytes and more."""
MTU_BYTES = preset(NicConfig, "lanai7").mtu_bytes
PART_BYTES = 32 * KB
"""Longest transfer given to the host DMA engine in one piece."""
HEADER_BYTES = 16
PLACE_BYTES = 8 * KB
"""A place for a packet in the SRAM."""
SEND_PLACES, RECEIVE_PLACES = 8 * KB, 64 * KB
Bytes = Annotated[int, Field(ge=4, le=64 * KB, multiple_of=4)]


class DmaBandwidthParameters(Config):
    """Parameters of dma-bandwidth."""

    transfer_bytes: list[Bytes] = Field(
        [],
        max_length=64,
        description="transfer sizes, bytes; empty: those of the size",
        json_schema_extra={
            "range": f"list of multiples of 4, each 4 to {64 * KB}, above {MTU_BYTES} multiples of that"
        },
    )


def pieces(engine: str, transfer_bytes: int, nic: NicConfig) -> list[int]:
    """The pieces of one transfer that an engine is given, in bytes."""
    most = PART_BYTES if engine.startswith("host") else nic.mtu_bytes
    whole, rest = divmod(transfer_bytes, most)
    return [most] * whole + [rest] * bool(rest)


def bus_cycles(piece_bytes: int, nic: NicConfig, pci: PciTiming, *, to_host: bool) -> int:
    """Cycles of a piece on a bus that is never without a burst; addresses begin a page."""
    words = -(-piece_bytes * 8 // nic.bus_bits)
    # A page is a whole number of bursts of any power of two; others are cut at its end.
    page = 4096 * 8 // nic.bus_bits
    full, rest = divmod(words, page)
    bursts = full * -(-page // nic.burst_beats) + -(-rest // nic.burst_beats)
    if to_host:
        each = 1 + pci.write_wait_cycles + pci.idle_cycles + pci.arbitration_cycles
    else:
        each = 1 + pci.read_turnaround_cycles + pci.read_wait_cycles + pci.idle_cycles
    return words + bursts * each


def link_cycles(piece_bytes: int, nic: NicConfig) -> float:
    """Cycles of a packet on the link."""
    return float(packet_flits(piece_bytes, nic.link) / nic.link.rate)


class DmaBandwidth(Experiment):
    """Bandwidth of the three engines against the size of a transfer, with and without queues."""

    name = "dma-bandwidth"
    asks = "How much of its bus or link does each DMA engine use, with and without a hardware queue?"
    source = "nagar-thesis-2001 4.3.7, 5.2.2 (no numbers for an engine alone)"
    entry = "lanikai.sim.experiments.dma_bandwidth:measure"
    Parameters = DmaBandwidthParameters

    def points(self, parameters: DmaBandwidthParameters, size: Size) -> list[Point]:
        """A point an engine, a size, and a card with or without queues. Raises UserError for a size that would end
        in a smaller packet."""
        for length in parameters.transfer_bytes:
            if length > MTU_BYTES and length % MTU_BYTES:
                raise UserError(f"transfer_bytes = {length}: above {MTU_BYTES} a multiple of it (the MTU)")
        return [
            Point(
                label=f"{engine} {length}, {'queue' if queued else 'no queue'}",
                parameters={"engine": engine, "queue": queued, "transfer_bytes": length},
                spec={
                    "engine": engine,
                    "queue": queued,
                    "transfer_bytes": length,
                    "window_cycles": WINDOW_CYCLES[size],
                },
            )
            for engine in ENGINES
            for length in parameters.transfer_bytes or SIZES[size]
            for queued in (True, False)
        ]

    def system(self, parameters: Any, point: Point) -> ClusterConfig:
        """Three `lanai7` nodes, whose cards have queues or have none."""
        from ..systems.cluster import cluster_preset

        nic = preset(NicConfig, "lanai7")
        if not point.parameters["queue"]:
            nic = nic.replace(host_dma_queue_entries=0, send_queue_entries=0, receive_queue_entries=0)
        return cluster_preset("lanai7", nodes=3, nic=nic, firmware=None, memory_bytes=1 << 20)

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Bandwidth, the peak of bus or link in such transfers, the part of it that is reached, and cycles from one
        transfer to the next."""
        system = self.system(parameters, point)
        engine, length = point.parameters["engine"], point.parameters["transfer_bytes"]
        hz = system.nic.clock_hz
        least = 0.0
        for piece in pieces(engine, length, system.nic):
            if engine.startswith("host"):
                least += bus_cycles(piece, system.nic, system.pci, to_host=engine == "host write")
            else:
                least += link_cycles(piece, system.nic)
        achieved = mb_per_s(measured["bytes"], measured["cycles"], hz)
        peak = length * hz / least / MB
        return {
            "bandwidth_mb_per_s": achieved,
            "peak_mb_per_s": peak,
            "of_peak": achieved / peak,
            "cycles_per_transfer": measured["cycles"] * length / measured["bytes"],
            "transfers": measured["bytes"] / length,
        }

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """At least 98% of the peak with a queue, and a queue never makes an engine slower."""
        found = {
            tuple(one.point.parameters[key] for key in ("engine", "transfer_bytes", "queue")): one.results
            for one in outcomes
        }
        claims = []
        for engine in ENGINES:
            long = {
                length: values["of_peak"]
                for (who, length, queued), values in found.items()
                if who == engine and queued and length >= GOOD_BYTES
            }
            gains = [
                values["bandwidth_mb_per_s"] / found[who, length, False]["bandwidth_mb_per_s"]
                for (who, length, queued), values in found.items()
                if who == engine and queued and (who, length, False) in found
            ]
            claims += [
                Claim.every(
                    f"{engine}: at least {GOOD:.0%} of the peak in transfers of {GOOD_BYTES} bytes and more "
                    f"with a queue ({min(long.values(), default=0):.1%})",
                    (part >= GOOD for part in long.values()),
                    nothing=f"no transfer of the points has {GOOD_BYTES} bytes or more",
                ),
                Claim.every(
                    f"{engine}: a queue never slows it down, and makes it up to {max(gains, default=0):.2f} times as "
                    "fast",
                    (gain >= 1 - RESOLUTION for gain in gains),
                ),
            ]
        return claims

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Part of the peak against size, an engine a panel."""
        panels = figure.subplots(2, 2, sharex=True, sharey=True)
        for engine, axes in zip(ENGINES, panels.flat, strict=True):
            for queued, style in ((True, "o-"), (False, "s--")):
                mine = [
                    one
                    for one in outcomes
                    if (one.point.parameters["engine"], one.point.parameters["queue"]) == (engine, queued)
                ]
                mine.sort(key=lambda one: int(one.point.parameters["transfer_bytes"]))
                axes.plot(
                    [one.point.parameters["transfer_bytes"] for one in mine],
                    [100 * one.results["of_peak"] for one in mine],
                    style,
                    label="queue" if queued else "no queue",
                )
            axes.axhline(100 * GOOD, color="0.6", linewidth=0.8, label=f"{GOOD:.0%}")
            axes.set_title(engine)
            axes.set_xscale("log", base=2)
            axes.set_ylim(0, 105)
        for axes in panels[:, 0]:
            axes.set_ylabel("of the peak (%)")
        for axes in panels[-1]:
            axes.set_xlabel("transfer (bytes)")
        panels[0, 0].legend()
        figure.suptitle("What a DMA engine of a lanai7 card reaches of its bus's or link's peak")


Start = Callable[[int], Awaitable[None]]
"""Starts piece `i`, or puts it into the queue."""


class _Engine:
    """One engine of a node, kept at work.

    - `name`: the name of its registers and of its event.
    - `start`: as above.
    - `begun`, `ended`: transfers.
    - `seen_cycle`: the cycle in which the firmware saw that so many had ended.
    """

    def __init__(self, node: Node, name: str, start: Start, *, queued: bool) -> None:
        from lanikai.firmware import registers

        self._port, self._registers = node.processor, registers
        self._name, self._event, self._start, self._queued = name, name.lower(), start, queued
        self.begun = self.ended = self.seen_cycle = 0

    async def write(self, register: str, **fields: int) -> None:
        await self._port.write(self._registers.address(register), self._registers.pack(register, **fields))

    async def ends(self) -> None:
        """Feed the engine until the firmware has seen another end, or more than one."""
        event = {self._event: 1}
        if not self.begun:
            await self.write("IMR", mask=self._registers.pack("ISR", **event))
        if not self._queued:
            await self._begin()
            await self._port.event()
            self.ended, self.seen_cycle = self.ended + 1, self._port.cycle
            await self.write("ISR", **event)
            return
        before = self.ended
        while True:
            await self.write("ISR", **event)
            word = await self._port.read(self._registers.address(f"{self._name}_QUEUE"))
            status = self._registers.unpack(f"{self._name}_QUEUE", word)
            self.ended, self.seen_cycle = self.ended + (status["ended"] - self.ended) % 256, self._port.cycle
            for _ in range(min(status["room"], 8)):
                await self._begin()
            if self.ended != before:
                return
            if not status["room"]:
                # Whatever has ended since the event was cleared has set it again.
                await self._port.event()

    async def _begin(self) -> None:
        await self._start(self.begun)
        self.begun += 1


def _host(node: Node, sizes: Sequence[int], *, to_host: bool, queued: bool) -> _Engine:
    async def start(i: int) -> None:
        await engine.write("HOST_DMA_HOST", address=64 * KB)
        await engine.write("HOST_DMA_SRAM", address=4096)
        await engine.write("HOST_DMA_CONTROL", bytes=sizes[i % len(sizes)], to_host=to_host)

    engine = _Engine(node, "HOST_DMA", start, queued=queued)
    return engine


async def _sender(
    cluster: Cluster, number: int, size: int, destinations: Sequence[int], *, queued: bool
) -> _Engine:
    """Send packets of `size` bytes from node `number` to the `destinations` in turn, each from a place in the SRAM."""
    from lanikai.hdl.nic.ports import SRAM_BASE

    node = cluster.nodes[number]
    for i, destination in enumerate(destinations):
        route = cluster.network.source_route(number, destination)
        bits = Header(route=route, destination=destination, source=number, length=size).pack()
        for word in range(HEADER_BYTES // 4):
            await node.processor.write(
                SRAM_BASE + SEND_PLACES + i * PLACE_BYTES + 4 * word, bits >> 32 * word & 0xFFFFFFFF
            )

    async def start(i: int) -> None:
        await engine.write("SEND_ADDRESS", address=SEND_PLACES + i % len(destinations) * PLACE_BYTES)
        await engine.write("SEND_CONTROL", bytes=size, vl=0)

    engine = _Engine(node, "SEND", start, queued=queued)
    return engine


def _receiver(cluster: Cluster, number: int, *, queued: bool) -> _Engine:
    """Receive into buffers of the MTU on node `number`, a few in turn."""
    nic = cluster.config.nic

    async def start(i: int) -> None:
        await engine.write("RECEIVE_ADDRESS", address=RECEIVE_PLACES + i % 4 * PLACE_BYTES)
        await engine.write("RECEIVE_CONTROL", bytes=nic.mtu_bytes)

    engine = _Engine(cluster.nodes[number], "RECEIVE", start, queued=queued)
    return engine


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point: the engine at work for the window, from one end to another."""
    name, queued = spec["engine"], spec["queue"]
    sizes = pieces(name, spec["transfer_bytes"], cluster.config.nic)

    async def work(engine: _Engine) -> None:
        while True:
            await engine.ends()

    if name.startswith("host"):
        engine = _host(cluster.nodes[0], sizes, to_host=name == "host write", queued=queued)
    else:
        sources, targets = ((0, 2), (1,)) if name == "receive" else ((0,), (1, 2))
        senders = [await _sender(cluster, i, sizes[0], targets, queued=queued) for i in sources]
        receivers = [_receiver(cluster, i, queued=queued) for i in targets]
        engine = receivers[0] if name == "receive" else senders[0]
        for other in [*receivers, *senders]:
            if other is not engine:
                cluster.clock.spawn(work(other), "other engine")
    while engine.ended < WARM_UP:
        await engine.ends()
    first, start = engine.ended, engine.seen_cycle
    while engine.seen_cycle - start < spec["window_cycles"]:
        await engine.ends()
    return {
        "bytes": sum(islice(cycle(sizes), first, engine.ended)),
        "cycles": engine.seen_cycle - start,
    }
