"""The kernel agent of a node: the card's driver, which gives processes their VIs and connects them."""

from __future__ import annotations

from collections.abc import Mapping

from lanikai.firmware.via.config import ARRIVAL, ViaConfig
from lanikai.firmware.via.descriptor import Op
from lanikai.firmware.via.layout import ViRecord
from lanikai.firmware.via.shadow import SHADOW_QUEUE_BYTES
from lanikai.hdl.config import NicConfig
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus

from ..bus import HostBus
from ..config import KitConfig
from ..errors import MemoryUseError
from ..kit.errors import ResourceError
from .admission import CardAdmission, Demand, Refusal, via_capacity, vtick
from .attributes import ViAttributes, ViState
from .completion_queue import VipCompletionQueue
from .connect import Connector
from .errors import ErrorCode, ErrorReport, ResourceCode, VipError, VipReturn
from .holdings import Holdings
from .messages import Message
from .nic import Ptag, VipNic
from .queue import ViQueue
from .vi import Other, Vi

__all__ = ["Agent"]

_LOST = {
    CompletionStatus.NO_DESCRIPTOR: ErrorCode.VIP_ERROR_RECVQ_EMPTY,
    CompletionStatus.REMOTE_ACCESS: ErrorCode.VIP_ERROR_RDMAW_PROT,
    CompletionStatus.TRANSPORT: ErrorCode.VIP_ERROR_RDMA_TRANSPORT,
}
"""Asynchronous errors of the reasons for which the firmware ends a connection; VIP_ERROR_CONN_LOST of all others."""


class Agent(Holdings):
    """The kernel agent of one host, whose card's firmware speaks "via" with the same `config`.

    - `name`: the card's, for `VipQueryNic`.
    - `vis`: channel -> VI, of all processes. `nics`: the open NICs.
    - `connector`: connections that are being made.
    - `admission`: what the card has promised.

    `kill` ends a process. Raises ConfigError as `ViaLayout` does.
    """

    def __init__(
        self,
        bus: HostBus,
        *,
        nic: NicConfig,
        routes: Mapping[int, int],
        config: ViaConfig | None = None,
        kit: KitConfig | None = None,
    ) -> None:
        super().__init__(bus, nic=nic, routes=routes, config=config, kit=kit)
        self.name = f"lanikai{bus.node}"
        self.vis: dict[int, Vi] = {}
        self.nics: list[VipNic] = []
        self.admission = CardAdmission(capacity=via_capacity(_design(self.config)))
        self.connector = Connector(bus.node, self, self.bell)

    async def _hear(self, node: int, message: Message) -> None:
        await self.connector.hear(node, message)

    async def _lost(self, node: int, message: Message) -> None:
        await self.connector.lost(node, message)

    async def _hear_broken(self, channel: int, connection: int, reason: CompletionStatus) -> None:
        """The firmware has ended a connection; nothing happens if the VI does not have that one any more."""
        async with self.lock:
            vi = self.vis.get(channel)
            other = None if vi is None or vi.state is not ViState.CONNECTED else vi.other
            if vi is not None and other is not None and other.connection == connection:
                self.connector.say_disconnect(other.node, channel, other.channel, other.connection)
                code = _LOST.get(reason, ErrorCode.VIP_ERROR_CONN_LOST)
                if reason is CompletionStatus.REMOTE_ACCESS and vi.send.refused is Op.RDMA_READ:
                    code = ErrorCode.VIP_ERROR_RDMAR_PROT
                await self.lose_vi(vi, reason.name, code)

    # The card's promises.

    def reserve(self, vi: Vi, other: ViAttributes | None, own: ViAttributes | None = None) -> None:
        """Have the card promise what the VI sends, and what the other end sends to it (None: not known yet).

        `own`: attributes that it is to have, None for those that it has. Raises VipError (VIP_INVALID_QOS), and leaves
        an older promise as it is.
        """
        qualities = [
            (vi.attributes if own is None else own).quality,
            None if other is None else other.quality,
        ]
        known = [one for one in qualities if one is not None]
        if not known:
            return self.admission.release(vi.channel)
        demand = Demand(
            send_bytes_per_s=0 if qualities[0] is None else qualities[0].bytes_per_s,
            receive_bytes_per_s=0 if qualities[1] is None else qualities[1].bytes_per_s,
            message_bytes=min(one.message_bytes for one in known),
        )
        found = self.admission.reserve(owner=vi.nic.owner, vi=vi.channel, demand=demand)
        if isinstance(found, Refusal):
            raise VipError(
                VipReturn.VIP_INVALID_QOS,
                f"node {self.bus.node}: {found.reason}",
                acceptable_bytes_per_s=found.acceptable_bytes_per_s,
            )

    def release(self, vi: Vi) -> None:
        """Take a VI's promise back, if it has one."""
        self.admission.release(vi.channel)

    def vtick(self, attributes: ViAttributes) -> int:
        """RTC ticks between two messages of a VI with these attributes; 0 for best effort."""
        quality = attributes.quality
        if quality is None:
            return 0
        tick_ns = float(1_000_000_000 * self.nic.tick_cycles / self.nic.clock_hz)
        return vtick(quality.bytes_per_s, quality.message_bytes, tick_ns=tick_ns)

    # VIs. The caller has the lock.

    async def create_vi(
        self,
        nic: VipNic,
        attributes: ViAttributes,
        told: tuple[VipCompletionQueue | None, VipCompletionQueue | None],
    ) -> Vi:
        """A VI, idle, whose queues may be rung. Raises ResourceError, MemoryUseError; then nothing is left behind."""
        self.may_have_one_more(nic, "vis", sum(vi.nic is nic for vi in self.vis.values()))
        ptag: Ptag = attributes.ptag
        form, entries = self.layout.form, self.config.queue_entries
        shadow: int | None = None
        if self.layout.window_bytes:
            # A VI for which its window has no room has no shadow: its descriptors are fetched.
            shadow = ptag.shadows.popleft() if ptag.shadows else None
        size = form.slot_bytes * entries
        try:
            ring = self.pages.allocate(2 * size)
        except MemoryUseError:
            self._give_shadow(ptag, shadow)
            raise
        try:
            channel = self.take("channel")
        except ResourceError:
            self.pages.release(ring)
            self._give_shadow(ptag, shadow)
            raise
        ring.data[:] = 0
        queues = [
            ViQueue(
                self,
                ptag.page,
                channel,
                ring,
                size * receive,
                form=form,
                entries=entries,
                receive=bool(receive),
                shadow=None if shadow is None else shadow + SHADOW_QUEUE_BYTES * receive,
            )
            for receive in range(2)
        ]
        vi = Vi(
            nic, channel, attributes, ring=ring, send=queues[0], receive=queues[1], told=told, bell=self.bell
        )
        for queue, completions in vi.queues:
            if completions is not None:
                completions.members[channel, queue.receive] = queue
        ptag.users += 1
        self.vis[channel] = vi
        await self._may_ring(vi, True)
        return vi

    async def destroy_vi(self, vi: Vi) -> None:
        """Take a VI back, in whatever state it is."""
        if vi.state is ViState.CONNECT_PENDING:
            await self.connector.drop_vi(vi, VipReturn.VIP_ERROR)
        if vi.state is ViState.CONNECTED:
            await self.disconnect_vi(vi, again=False)
        else:
            await self._end(vi)
        vi.alive = False
        for queue, _ in vi.queues:
            queue.watch.touch()
        vi.become(ViState.IDLE)
        ptag: Ptag = vi.attributes.ptag
        ptag.users -= 1
        self._give_shadow(ptag, vi.send.shadow)
        for queue, completions in vi.queues:
            if completions is not None:
                completions.forget(queue)
        self.pages.release(vi.ring)
        del self.vis[vi.channel]
        self.connector.peers.pop(vi.channel, None)
        self.give_back("channel", vi.channel)
        self.bell.ring()

    def _give_shadow(self, ptag: Ptag, shadow: int | None) -> None:
        if shadow is not None:
            ptag.shadows.append(shadow)

    async def _may_ring(self, vi: Vi, yes: bool) -> None:
        """Open a VI's channel to its process' page, empty; or close it: then the card touches nothing of it."""
        if yes:
            owner = vi.attributes.ptag.owner
            await self.set_up(("DOORBELL_CHANNEL", {"channel": vi.channel, "owner": owner, "open": 1}))
        else:
            await self.set_up(("DOORBELL_CHANNEL", {"channel": vi.channel}))

    async def open_vi(self, vi: Vi, other: Other) -> None:
        """Have the card connect a VI with another one, which alone it hears. The word that says so comes last."""
        window = self.layout.window(vi.attributes.ptag.owner)
        shadows = [0 if queue.shadow is None else window + queue.shadow for queue, _ in vi.queues]
        told = [None if completions is None else completions.kit.number for completions in vi.told]
        words = ViRecord(
            send_ring=vi.send.start,
            receive_ring=vi.receive.start,
            send_completions=told[0],
            receive_completions=told[1],
            send_shadow=shadows[0],
            receive_shadow=shadows[1],
            route=self.routes[other.node],
            node=other.node,
            channel=other.channel,
            connection=other.connection,
            reliability=vi.attributes.reliability,
            rdma_write=vi.attributes.rdma_write,
            rdma_read=vi.attributes.rdma_read,
            most_bytes=vi.attributes.most_bytes,
            vtick=self.vtick(vi.attributes),
            receive_vtick=self.vtick(other.attributes),
        ).words()
        at = self.layout.record(vi.channel)
        order = sorted(range(len(words)), key=lambda i: i == ViRecord.OPEN_WORD)
        await self.bus.write_all([(at + 4 * i, words[i]) for i in order])
        vi.other = other

    async def close_vi(self, vi: Vi) -> None:
        """Have the card end a VI's connection; flush its queues, take its promise back, and make it idle."""
        await self._end(vi)
        vi.closes = True
        await self._may_ring(vi, True)
        vi.closes = False
        vi.become(ViState.IDLE)

    async def change_vi(self, vi: Vi, attributes: ViAttributes) -> None:
        """Give an idle VI other attributes. With another tag, its queues must be empty."""
        old: Ptag = vi.attributes.ptag
        new: Ptag = attributes.ptag
        if new is not old:
            vi.closes = True
            await self._may_ring(vi, False)
            self._give_shadow(old, vi.send.shadow)
            first = new.shadows.popleft() if new.shadows else None
            vi.send.shadow = first
            vi.receive.shadow = None if first is None else first + SHADOW_QUEUE_BYTES
            for queue, _ in vi.queues:
                queue.move(new.page)
            old.users, new.users = old.users - 1, new.users + 1
        vi.attributes = attributes
        if new is not old:
            await self._may_ring(vi, True)
            vi.closes = False

    async def disconnect_vi(self, vi: Vi, *, again: bool = True) -> None:
        """End a connection from this end. `again`: the VI will be used again."""
        if (other := vi.other) is not None:
            self.connector.say_disconnect(other.node, vi.channel, other.channel, other.connection)
        if again:
            await self.close_vi(vi)
        else:
            await self._end(vi)

    async def lose_vi(self, vi: Vi, why: str, code: ErrorCode = ErrorCode.VIP_ERROR_CONN_LOST) -> None:
        """End a connection that is lost: all descriptors that have not ended are flushed, and the process is told."""
        vi.become(ViState.ERROR, why)
        await self._end(vi)
        vi.nic.report(
            ErrorReport(code=code, resource=ResourceCode.VIP_RESOURCE_VI, nic=vi.nic, vi=vi, reason=why)
        )

    async def _end(self, vi: Vi) -> None:
        """Close a VI's channel, and end all its descriptors. The firmware flushes those that it has heard of."""
        vi.closes, vi.other = True, None
        await self.bus.write(self.layout.record(vi.channel) + 4 * ViRecord.OPEN_WORD, 0)
        await self._may_ring(vi, False)
        for queue, completions in vi.queues:
            if completions is not None:
                completions.drain()
            untold = queue.flush(CompletionStatus.FLUSHED)
            if completions is not None:
                completions.tell(queue, untold)
        vi.closes = False
        self.release(vi)
        self.bell.ring()

    # Processes.

    async def open_nic(self) -> VipNic:
        """A process' NIC. Raises ResourceError if the card has no page left."""
        nic = VipNic(self, self.take("owner"), most_memory_bytes=self.config.limits.most_memory_bytes)
        self.nics.append(nic)
        return nic

    async def close_nic(self, nic: VipNic) -> None:
        """Take back all that a process has; the caller has the lock."""
        nic.alive = False
        await self.connector.drop(nic)
        for vi in [vi for vi in self.vis.values() if vi.nic is nic]:
            await self.destroy_vi(vi)
        for queue in [queue for queue in self.completion_queues if queue.nic is nic]:
            await self.destroy_queue(queue)
        for handle in list(nic.memory):
            await self.deregister(nic, handle)
        for ptag in list(nic.ptags):
            self.destroy_ptag(ptag)
        nic.release_all()
        self.admission.release_owner(nic.owner)
        self.regions.forget(nic.owner)
        self.give_back("owner", nic.owner)
        self.nics.remove(nic)
        self.bell.ring()

    async def kill(self, nic: VipNic) -> None:
        """End a process, whatever it does or waits for: its calls end with VIP_ERROR.

        All that it has is taken back. The other ends of its connections hear that they are lost.
        """
        async with self.lock:
            if nic.alive:
                await self.close_nic(nic)


def _design(config: ViaConfig) -> str:
    """The design whose capacity was measured."""
    if config.design == "sequential":
        return "svia"
    return "pvia" if config.order == ARRIVAL else "qosvia"
