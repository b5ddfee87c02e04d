"""Control packets of a host: probes, answers and releases on VL 15, by a queue pair of the driver's (yum-2006 4.1)."""

from __future__ import annotations

from collections import Counter, deque
from typing import NamedTuple

from lanikai.hdl.hca.layout import CONTROL_VL
from lanikai.hdl.packet import Kind

from .completion_queue import Completion, CompletionQueue
from .driver import HcaDriver
from .errors import HcaError
from .queue_pair import QueuePair
from .region import Region

__all__ = ["CONTROL_PAYLOAD_BYTES", "CONTROL_QP", "ControlPacket", "ControlPort"]

CONTROL_QP = 0
"""The queue pair that control packets are sent to, at every adapter."""
CONTROL_PAYLOAD_BYTES = 128
"""Payload of a control packet: 8 of its 10 flits (6.1); the others are header and trailer."""
ENTRIES = 64
SEND_CYCLES = 20_000
"""Wait of `send` for room: longer than a router's agent writes VL tables, so that only a network that stands exceeds
it."""
DRIVER_OWNER = 0
CONTROL_LIFE = 0
"""The life of every control port's queue pair, as routers' agents and other hosts know it."""


class ControlPacket(NamedTuple):
    """A control packet that has arrived.

    - `source`: the node that it names as its source, a router's agent that of the host that it answers for.
    - `kind`: that of its header. `payload`: its bytes.
    """

    source: int
    kind: int
    payload: bytes


class ControlPort:
    """The control port of one host. `open` makes it, before any other queue pair of its adapter.

    Its adapter takes packets on VL 15 alone for it, where no process can send. The port looks at the completion once
    more. So data of a process is never taken for a control packet.

    - `failed`: packets that the adapter has not sent, by `CqeStatus`: they are as good as lost.
    - `refused`: packets that arrived and are no control packets: of kind DATA, or on another VL.
    """

    def __init__(
        self, driver: HcaDriver, pair: QueuePair, *, sends: CompletionQueue, arrivals: CompletionQueue
    ) -> None:
        self.driver, self.pair = driver, pair
        self._sends, self._arrivals = sends, arrivals
        self._sent = 0
        self._out: Region
        self._into: Region
        self._inbox: deque[ControlPacket] = deque()
        self.failed: Counter[int] = Counter()
        self.refused = 0

    @classmethod
    async def open(cls, driver: HcaDriver) -> ControlPort:
        """Open the port of an adapter. Raises HcaError if the adapter has no VL 15, or queue pair 0 is in use."""
        if driver.config.link.vls <= CONTROL_VL:
            raise HcaError(
                f"control packets need VL {CONTROL_VL}: the adapter has {driver.config.link.vls} VLs"
            )
        sends = await driver.create_completion_queue(owner=DRIVER_OWNER, entries=2 * ENTRIES)
        arrivals = await driver.create_completion_queue(owner=DRIVER_OWNER, entries=4 * ENTRIES)
        pair = await driver.create_queue_pair(
            owner=DRIVER_OWNER,
            traffic_class=0,
            vls=(CONTROL_VL,),
            send_completions=sends,
            receive_completions=arrivals,
            send_entries=min(ENTRIES, driver.most_send_entries),
            receive_entries=ENTRIES,
            life=CONTROL_LIFE,
        )
        if pair.number != CONTROL_QP:
            raise HcaError(f"the control port is queue pair {CONTROL_QP}, which is in use: open it first")
        port = cls(driver, pair, sends=sends, arrivals=arrivals)
        size = ENTRIES * CONTROL_PAYLOAD_BYTES
        port._out = await driver.register(DRIVER_OWNER, driver.allocate(DRIVER_OWNER, size), writable=False)
        port._into = await driver.register(DRIVER_OWNER, driver.allocate(DRIVER_OWNER, size))
        for tag in range(ENTRIES):
            port._buffer(tag, ring=False)
        pair.ring_receive()
        return port

    def _buffer(self, tag: int, *, ring: bool = True) -> None:
        place = self._into.start + tag * CONTROL_PAYLOAD_BYTES
        self.pair.receive(self._into, place, CONTROL_PAYLOAD_BYTES, tag=tag, ring=ring)

    async def send(
        self,
        kind: Kind,
        destination: int,
        payload: bytes,
        *,
        bandwidth: int = 0,
        within_cycles: int = SEND_CYCLES,
    ) -> None:
        """Send a packet of `kind` to a node. Probes and releases go from router to router, to each one's agent.

        Waits while `ENTRIES` of them are under way, or as many as the adapter has room for, `within_cycles` at most. A
        packet that the adapter ends with an error later is counted in `failed`. Raises HcaError for a payload that is
        too long, and if there was no room in time; the packet is not sent then.
        """
        if len(payload) > CONTROL_PAYLOAD_BYTES:
            raise HcaError(f"control packet of {len(payload)} bytes: at most {CONTROL_PAYLOAD_BYTES}")
        self._ends(self._sends.poll())
        port = self.driver.port
        deadline = port.now + within_cycles
        while not self.pair.send_room:
            if port.now >= deadline:
                raise HcaError(
                    f"node {port.node}: no room for a control packet for {within_cycles} cycles: {ENTRIES} wait, and "
                    f"the network takes none of them on VL {CONTROL_VL}"
                )
            self._ends(await self._sends.wait(within_cycles=deadline - port.now))
        at = self._sent % ENTRIES * CONTROL_PAYLOAD_BYTES
        self._sent += 1
        self._out.buffer.write(payload.ljust(CONTROL_PAYLOAD_BYTES, b"\0"), at)
        self.pair.send(
            self._out,
            self._out.start + at,
            CONTROL_PAYLOAD_BYTES,
            vl=CONTROL_VL,
            destination=destination,
            destination_qp=CONTROL_QP,
            kind=kind,
            bandwidth=bandwidth,
        )

    def _ends(self, ends: list[Completion]) -> None:
        for one in ends:
            if not one.ok:
                self.failed[one.status] += 1

    async def receive(self) -> ControlPacket:
        """Wait for the next control packet."""
        while not self._inbox:
            for one in await self._arrivals.wait():
                control = one.vl == CONTROL_VL and one.kind != Kind.DATA
                self.refused += not control
                if one.ok and control:
                    payload = self._into.buffer.read(one.bytes, one.tag * CONTROL_PAYLOAD_BYTES)
                    self._inbox.append(ControlPacket(one.source, one.kind, payload))
                self.pair.received += 1
                self._buffer(one.tag)
        return self._inbox.popleft()
