"""Flows of GM messages between the nodes of a cluster, kept going; they are measured in a window of `gm_windows`.

A flow's sender always has the next message ready; its receiver reads every message and gives its buffer back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import SimulationError
from ...published import table
from ..framework.base import Claim, Outcome, within
from .gm_hosts import start_gm
from .gm_windows import RoundWindow, TimeWindow, bandwidths

if TYPE_CHECKING:
    from ...host.bus import Watch
    from ...host.gm.library import Gm
    from ...host.gm.message import SendHandle
    from ...host.gm.port import GmPort
    from ...host.memory import Buffer
    from ...systems.cluster import Cluster

__all__ = [
    "BANDWIDTH_TOLERANCE",
    "IDT_RANGE",
    "MAX_IDT_TICKS",
    "MESSAGES_IN_FLIGHT",
    "SHARE_TOLERANCE",
    "T_TICKS",
    "Flow",
    "RoundWindow",
    "Sender",
    "TimeWindow",
    "bandwidths",
    "ideal_mb_per_s",
    "idt_ticks",
    "inverse_idt_claims",
    "measure_rounds",
    "measure_window",
    "prepare_flows",
    "proportions",
    "shares",
    "start_flows",
]

_RTC = table("rtc")
T_TICKS: int = _RTC["peak_interval_ticks"]
"""T: a lone flow's packets leave every T ticks."""
SHARE_TOLERANCE = 0.01
"""Relative: shares against the 1/IDT proportions."""
BANDWIDTH_TOLERANCE = 0.03
"""Relative: bandwidths against the published ones."""
MAX_IDT_TICKS = 2000
"""Longest IDT of an experiment with a `TimeWindow`: its shortest one still holds ten such packets."""
IDT_RANGE = f"0 (not regulated) to {MAX_IDT_TICKS}"
MESSAGES_IN_FLIGHT = 4
"""Messages of a flow that have been sent and not acknowledged. With so many a sender always has the next one ready."""


def idt_ticks(idt_over_t: float) -> int:
    """An IDT in ticks, rounded to the whole ticks that the rate control unit counts in."""
    return round(idt_over_t * T_TICKS)


def ideal_mb_per_s(ticks: int) -> float:
    """MB/s of a flow whose packets, each of a full MTU, leave every `ticks`."""
    return float(_RTC["mtu_bytes"] / (ticks * _RTC["tick_us"]))


def proportions(idts: Sequence[float]) -> list[float]:
    """The 1/IDT proportions of flows, which add up to 1."""
    total = sum(1 / idt for idt in idts)
    return [1 / idt / total for idt in idts]


def inverse_idt_claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    """The claim of thesis 5.4 on every setting that was run, published or not: the `share` of each result against the
    point's `idt_over_T`."""
    return [
        Claim.every(
            "bandwidth is shared in the inverse ratio of the IDT values (shares within 1%)",
            (
                within(
                    outcome.results["share"],
                    proportions(outcome.point.parameters["idt_over_T"]),
                    SHARE_TOLERANCE,
                )
                for outcome in outcomes
            ),
        )
    ]


def shares(bandwidths_mb_per_s: Sequence[float]) -> list[float]:
    """Each flow's part of the sum; if the sum is nothing, none."""
    total = sum(bandwidths_mb_per_s)
    return [one / total if total else 0.0 for one in bandwidths_mb_per_s]


@dataclass(frozen=True, kw_only=True)
class Flow:
    """Messages of `message_bytes` from a port of node `source` to a port of node `target`, a packet every `idt_ticks`.

    `idt_ticks` is 0 for a flow that is not regulated. It is None if the control program is the unmodified one, which
    has no IDT.
    """

    source: int
    source_port: int = 0
    target: int
    target_port: int = 0
    message_bytes: int
    idt_ticks: int | None = 0


Deliver = Callable[[int, int], None]
"""A function that is told a flow's place in the list and a packet's bytes, when its last byte stands in its receiver's
memory."""


async def measure_window(cluster: Cluster, flows: Sequence[Flow], spec: Mapping[str, Any]) -> dict[str, Any]:
    """Start GM everywhere and all flows. Returns the measurement of a `TimeWindow` of the spec's `warm_up_cycles` and
    `window_cycles`."""
    window = TimeWindow(cluster, flows=len(flows))
    await start_flows(cluster, start_gm(cluster), flows, window.deliver)
    return await window.measure(warm_up_cycles=spec["warm_up_cycles"], window_cycles=spec["window_cycles"])


async def measure_rounds(
    cluster: Cluster, hosts: Sequence[Gm], flows: Sequence[Flow], spec: Mapping[str, Any]
) -> dict[str, Any]:
    """Start all flows between `hosts`. Returns the measurement of a `RoundWindow` of the spec's `warm_up_packets` and
    `window_packets`: `payload_bytes` of each flow, `window_cycles`, `clock_hz`."""
    window = RoundWindow(
        cluster,
        flows=len(flows),
        warm_up_packets=spec["warm_up_packets"],
        window_packets=spec["window_packets"],
    )
    await start_flows(cluster, hosts, flows, window.deliver)
    await window.done.wait()
    return {
        "payload_bytes": window.payload_bytes,
        "window_cycles": window.cycles,
        "clock_hz": cluster.config.nic.clock_hz,
    }


class Sender:
    """A sender that sends a buffer again and again, `MESSAGES_IN_FLIGHT` at a time, until it is stopped."""

    def __init__(
        self, cluster: Cluster, host: Gm, port: GmPort, buffer: Buffer, flow: Flow, name: str
    ) -> None:
        self._cluster, self._host, self._port, self._buffer = cluster, host, port, buffer
        self._flow, self._name = flow, name
        self._stopping = False
        self._ended = cluster.clock.flag()

    @property
    def port(self) -> GmPort:
        """The port that it sends from."""
        return self._port

    def start(self) -> None:
        """Begin to send."""
        self._stopping = False
        self._ended.clear()
        self._cluster.clock.spawn(self._run(), self._name)

    async def stop(self) -> None:
        """Send no further message, and return when all have been acknowledged."""
        self._stopping = True
        await self._ended.wait()

    async def renew(self, idt_ticks: int) -> None:
        """Give a stopped flow a new IDT, and no arrears of its old one: its port is closed and opened again. The port
        must have no other flow."""
        number = self._port.number
        await self._port.close()
        self._port = await self._host.open_port(number)
        await self._port.register(self._buffer)
        await self._port.set_idt(node=self._flow.target, port=self._flow.target_port, ticks=idt_ticks)

    async def _run(self) -> None:
        on_their_way: deque[SendHandle] = deque()
        while not self._stopping:
            on_their_way.append(
                await self._port.send(self._buffer, node=self._flow.target, port=self._flow.target_port)
            )
            if len(on_their_way) == MESSAGES_IN_FLIGHT:
                await on_their_way.popleft().wait()
        for handle in on_their_way:
            await handle.wait()
        self._ended.set()


async def start_flows(
    cluster: Cluster, hosts: Sequence[Gm], flows: Sequence[Flow], deliver: Deliver
) -> list[Sender]:
    """Do as `prepare_flows`, then start them all."""
    senders = await prepare_flows(cluster, hosts, flows, deliver)
    for sender in senders:
        sender.start()
    return senders


async def prepare_flows(
    cluster: Cluster, hosts: Sequence[Gm], flows: Sequence[Flow], deliver: Deliver
) -> list[Sender]:
    """Set all flows up, each with random bytes of its own. Returns their senders.

    Flows to one port would take each other's buffers, so a target port has one flow only.
    """
    ports: dict[tuple[int, int], GmPort] = {}

    async def port_of(node: int, number: int) -> GmPort:
        if (node, number) not in ports:
            ports[node, number] = await hosts[node].open_port(number)
        return ports[node, number]

    senders = []
    for number, flow in enumerate(flows):
        port = await port_of(flow.source, flow.source_port)
        buffer = await port.dma_malloc(flow.message_bytes)
        buffer.write(cluster.random.randbytes(flow.message_bytes))
        target = hosts[flow.target]
        into = await port_of(flow.target, flow.target_port)
        await _start_receiver(cluster, target, into, number, buffer.read(), deliver)
        if flow.idt_ticks is not None:
            await port.set_idt(node=flow.target, port=flow.target_port, ticks=flow.idt_ticks)
        senders.append(Sender(cluster, hosts[flow.source], port, buffer, flow, f"flow {number}"))
    return senders


async def _start_receiver(
    cluster: Cluster, gm: Gm, port: GmPort, flow: int, content: bytes, deliver: Deliver
) -> None:
    """Have a host receive the flow: buffers, a watch on the end of every packet's place in them, a loop. The packets
    are those that are cut MTU-sized."""
    mtu = gm.nic.mtu_bytes
    for number in range(2 * MESSAGES_IN_FLIGHT):
        buffer = await port.dma_malloc(len(content))
        for start in range(0, len(content), mtu):
            length = min(mtu, len(content) - start)
            watch = gm.bus.watch(buffer.start + start + length - 1, 1)
            cluster.clock.spawn(
                _count(watch, deliver, flow, length), f"flow {flow} buffer {number} at {start}"
            )
        await port.provide_receive_buffer(buffer)
    cluster.clock.spawn(_keep_receiving(port, content), f"receiver of flow {flow}")


async def _count(watch: Watch, deliver: Deliver, flow: int, length: int) -> None:
    """Count the packets that end at one place."""
    while True:
        await watch.wait()
        deliver(flow, length)


async def _keep_receiving(port: GmPort, content: bytes) -> None:
    """Receive messages, look at every byte of them, give their buffers back."""
    while True:
        message = await port.receive()
        if message.read() != content:
            raise SimulationError(f"a message from node {message.node} did not arrive as it was sent")
        await port.provide_receive_buffer(message.buffer)
