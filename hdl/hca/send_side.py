"""The send side of an adapter: from doorbells to flits and completions."""

from __future__ import annotations

from amaranth import Module, Signal, Value
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..axi import Axi4Signature
from ..config.hca import BUS_BITS, HcaConfig
from ..link import FlitLayout
from ..nic.owners.protection import REGION_LAYOUT
from ..nic.owners.translation import INVALIDATE_LAYOUT
from .class_queues import ClassQueues
from .completion_writer import COMPLETION_POST
from .departures import Departures
from .ends import Ends
from .injection.base import InjectionSignature
from .layout import INDEX_BITS, QP_BITS, TIME_BITS
from .memory_check import MemoryCheck
from .message_reader import MessageReader
from .packet_counts import PacketCounts
from .packet_sender import BEAT_LAYOUT, PacketSender
from .posted_work import ELEMENT_WORD_LAYOUT, PostedWork
from .scheduler import Scheduler
from .send_layout import PACKET_LAYOUT, QUEUE_PAIR_LAYOUT, ROUTE_LAYOUT, SEND_DOORBELL_LAYOUT
from .work_fetch import WorkFetch

__all__ = ["SEND_COUNTERS", "SendSide"]

PACKETS_AHEAD = 4
"""Packets that are begun before their first flit is sent: enough for the bus's latency at packets of 10 flits."""
BEATS_AHEAD = 8
"""Beats that are kept while a header or a trailer is sent, so that the bus's other readers are not held up."""

SEND_COUNTERS = {
    "SEND_REFUSED": "refused",
    "MESSAGES_SENT": "sent",
    "MESSAGES_FAILED": "failed",
    "MESSAGES_THROTTLED": "throttled",
    "MESSAGES_DROPPED": "dropped",
    "PACKETS_SENT": "packets",
    "FLITS_SENT": "flits",
    "SEND_BUS_ERRORS": "bus_errors",
    "SEND_VIOLATIONS": "violations",
    "SEND_PAGE_HITS": "page_hits",
    "SEND_PAGE_MISSES": "page_misses",
}
"""The counters of the send side by the register that shows each; all have 32 bits and are modulo 2^32."""


class SendSide(wiring.Component):
    """Doorbells in, packets out, completions back (yum-2006 3.2).

    Members:

    - `node` (in, 10): the adapter's node number.
    - `doorbell` (in, stream of `SEND_DOORBELL_LAYOUT`): send doorbells.
    - `queue_pair` (in, stream of `QUEUE_PAIR_LAYOUT`): a queue pair is opened or closed.
    - `look`, `posted`, `ends`: as in `ClassQueues`. `busy` (out): that queue pair has messages in a queue or under way,
      or packets in the buffers towards the link.
    - `region` (in, stream of `REGION_LAYOUT`): a region is set. `invalidate` (in, stream of `INVALIDATE_LAYOUT`): page
      table entries to forget. Both wait until nothing is read by the old ones: `MessageReader` says how long.
    - `route_valid`, `route`, `drop_classes` (in): as in `Scheduler`.
    - `control` (out, `InjectionSignature`): injection control.
    - `room` (in), `begin`, `begin_vl` (out), `send` (out, stream of `FlitLayout`): to `VlPort`.
    - `now`, `flit`, `flit_vl`, `tail` (in): as in `Departures`.
    - `post` (out, stream of `COMPLETION_POST`): completions.
    - `work_axi`, `data_axi`, `page_axi` (out, `Axi4Signature` of 128 bits): reads, ID 0: of work queue elements, of
      messages, of page tables. With `wqe` posted there is no `work_axi`.
    - `writes`, `write` (in, `ELEMENT_WORD_LAYOUT`), only with `wqe` posted: words of elements in pages.
    - The counters of `SEND_COUNTERS` (out, 32).
    - `quiet` (out): nothing is under way, and no register changes but by an input.

    Latency: from a doorbell to its header on `send` 24 cycles and twice the bus's, if its page is cached. Throughput: a
    flit a cycle, for packets of 40 flits on a bus of a beat a cycle. Reset: no queue pair is open, and nothing is under
    way.
    """

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        link = config.link
        names = ("data", "page") if config.wqe == "posted" else ("work", "data", "page")
        more: dict[str, wiring.Member] = {
            f"{name}_axi": Out(Axi4Signature(data_bits=BUS_BITS)) for name in names
        }
        if config.wqe == "posted":
            more |= {"writes": In(1), "write": In(ELEMENT_WORD_LAYOUT)}
        super().__init__(
            {
                "node": In(10),
                "doorbell": In(stream.Signature(SEND_DOORBELL_LAYOUT)),
                "queue_pair": In(stream.Signature(QUEUE_PAIR_LAYOUT)),
                "look": In(QP_BITS),
                "posted": Out(INDEX_BITS),
                "ends": Out(INDEX_BITS),
                "busy": Out(1),
                "queued": Out(1),
                "dequeued": Out(1),
                "region": In(stream.Signature(REGION_LAYOUT)),
                "invalidate": In(stream.Signature(INVALIDATE_LAYOUT)),
                "route_valid": In(1),
                "route": In(ROUTE_LAYOUT),
                "drop_classes": In(8),
                "control": Out(InjectionSignature(vls=link.vls)),
                "room": In(link.vls),
                "begin": Out(1),
                "begin_vl": Out(link.vl_bits),
                "send": Out(stream.Signature(FlitLayout(link))),
                "now": In(TIME_BITS),
                "flit": In(1),
                "flit_vl": In(link.vl_bits),
                "tail": In(1),
                "post": Out(stream.Signature(COMPLETION_POST)),
                **more,
                **dict.fromkeys(SEND_COUNTERS.values(), Out(32)),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        m.submodules.queues = self.queues = queues = ClassQueues(config)
        m.submodules.fetch = self.fetch = fetch = self._work(m, queues)
        m.submodules.scheduler = self.scheduler = scheduler = Scheduler(config)
        m.submodules.check = check = MemoryCheck(config)
        m.submodules.engine = engine = MessageReader(config)
        m.submodules.sender = self.sender = sender = PacketSender(config)
        m.submodules.departures = self.departures = departures = Departures(config)
        m.submodules.ended = self.ended = ended = Ends(config)
        m.submodules.counts = counts = PacketCounts(config)
        connect(m, flipped(self.doorbell), queues.ring)
        connect(m, flipped(self.queue_pair), queues.setup)
        connect(m, engine.access, check.access)
        connect(m, check.segment, engine.segment)
        connect(m, departures.end, ended.departed)
        connect(m, engine.end, ended.refused)
        connect(m, scheduler.end, ended.unsent)
        connect(m, fetch.end, ended.unfetched)
        connect(m, ended.ended, queues.ended)
        connect(m, ended.post, flipped(self.post))
        connect(m, check.axi, flipped(self.page_axi))
        connect(m, sender.send, flipped(self.send))

        setup, sets = self.queue_pair.payload, self.queue_pair.valid & self.queue_pair.ready
        for part in (fetch, scheduler, engine, ended):
            m.d.comb += [part.setup_valid.eq(sets), part.setup.eq(setup)]
        m.d.comb += [
            check.assigns.eq(sets),
            check.assign.channel.eq(setup.qp),
            check.assign.owner.eq(setup.owner),
            check.assign.open.eq(setup.open),
            queues.look.eq(self.look),
            self.posted.eq(queues.posted),
            self.ends.eq(queues.ends),
            counts.begin.eq(engine.begin),
            counts.begin_qp.eq(engine.packet.payload.qp),
            counts.gone.eq(departures.entered_valid),
            counts.gone_qp.eq(departures.gone_qp),
            counts.look.eq(self.look),
            self.busy.eq(queues.busy | counts.some),
            fetch.waiting.eq(queues.waiting),
            fetch.head.eq(queues.head),
            queues.select.eq(fetch.select),
            queues.take.eq(fetch.take),
            self.queued.eq(queues.entered),
            self.dequeued.eq(queues.take),
            scheduler.held.eq(fetch.held),
            scheduler.work.eq(fetch.work),
            fetch.look.eq(scheduler.look),
            fetch.done.eq(scheduler.done),
            scheduler.route_valid.eq(self.route_valid),
            scheduler.route.eq(self.route),
            scheduler.drop_classes.eq(self.drop_classes),
            scheduler.room.eq(self.room),
            engine.room.eq(self.room),
            engine.message.valid.eq(scheduler.message.valid),
            engine.message.payload.eq(scheduler.message.payload),
            scheduler.message.ready.eq(engine.message.ready & departures.room),
            scheduler.suspended.eq(engine.suspended),
            scheduler.resumable.eq(engine.resumable),
            scheduler.resume_ready.eq(engine.message.ready),
            engine.resume.eq(scheduler.resume),
            engine.resume_class.eq(scheduler.resume_class),
            engine.held.eq(fetch.held),
            self.begin.eq(engine.begin),
            self.begin_vl.eq(engine.begin_vl),
            sender.node.eq(self.node),
            sender.now.eq(self.now),
            departures.begin.eq(engine.begin),
            departures.begin_vl.eq(engine.begin_vl),
            departures.record_valid.eq(sender.record_valid),
            departures.record_vl.eq(sender.record_vl),
            departures.record.eq(sender.record),
            departures.now.eq(self.now),
            departures.flit.eq(self.flit),
            departures.flit_vl.eq(self.flit_vl),
            departures.tail.eq(self.tail),
            departures.start.eq(scheduler.control.start),
            departures.retired.eq(ended.retired),
        ]
        self._control(m, scheduler, departures)
        quiet, reading = self._reads(m, engine, sender)
        # What changes the rules waits until nothing is read by the old ones.
        hold, rests = Signal(), Signal()
        m.d.comb += [
            hold.eq(self.region.valid | self.invalidate.valid),
            engine.hold.eq(hold),
            rests.eq(engine.rests & (reading == 0)),
            self.region.ready.eq(rests),
            check.region.eq(self.region.payload),
            check.regions.eq(self.region.valid & rests),
            check.invalidate.payload.eq(self.invalidate.payload),
            check.invalidate.valid.eq(self.invalidate.valid & rests),
            self.invalidate.ready.eq(check.invalidate.ready & rests),
        ]
        parts = (queues, fetch, scheduler, engine, sender, departures, ended)
        for part in parts:
            quiet = quiet & part.quiet
        m.d.comb += [
            self.quiet.eq(quiet & check.rests & ~(hold | self.route_valid)),
            self.refused.eq(queues.refusals),
            self.sent.eq(ended.sent),
            self.failed.eq(ended.failed),
            self.throttled.eq(ended.throttled),
            self.dropped.eq(ended.dropped + queues.late_dropped),
            self.packets.eq(departures.packets),
            self.flits.eq(departures.flits),
            self.bus_errors.eq(sender.bus_errors),
            self.violations.eq(check.violations),
            self.page_hits.eq(check.hits),
            self.page_misses.eq(check.misses),
        ]
        return m

    def _work(self, m: Module, queues: ClassQueues) -> WorkFetch | PostedWork:
        """The part that work queue elements come from."""
        if self.config.wqe == "fetched":
            fetch = WorkFetch(self.config)
            connect(m, fetch.axi, flipped(self.work_axi))
            return fetch
        posted = PostedWork(self.config)
        m.d.comb += [
            posted.writes.eq(self.writes),
            posted.write.eq(self.write),
            posted.rings.eq(queues.ring.valid & queues.ring.ready),
            posted.ring_page.eq(queues.ring.payload.page),
            posted.stores.eq(queues.stores),
            posted.store.eq(queues.store),
        ]
        return posted

    def _control(self, m: Module, scheduler: Scheduler, departures: Departures) -> None:
        """Injection control: the scheduler asks, and the packets that leave are told."""
        inside, outside = scheduler.control, self.control
        for name, member in outside.signature.members.items():
            if member.flow == Out and name not in ("entered_valid", "entered", "vl_busy"):
                m.d.comb += getattr(outside, name).eq(getattr(inside, name))
        m.d.comb += [
            inside.allow.eq(outside.allow),
            inside.never.eq(outside.never),
            outside.entered_valid.eq(departures.entered_valid),
            outside.entered.eq(departures.entered),
            outside.vl_busy.eq(departures.vl_busy),
        ]

    def _reads(self, m: Module, engine: MessageReader, sender: PacketSender) -> tuple[Value, Signal]:
        """The bus port of the messages: addresses of the engine, data for the sender.

        Returns whether no packet is there, and the bursts that the bus has taken and not answered.
        """
        config, axi = self.config, self.data_axi
        # A packet is in two pages at most.
        most = PACKETS_AHEAD * (config.payload_flits // config.burst_beats + 2)
        bursts = Signal(range(most + 1))
        m.d.sync += bursts.eq(bursts + (axi.arvalid & axi.arready) - (axi.rvalid & axi.rready & axi.rlast))
        m.submodules.packets = packets = fifo.SyncFIFO(width=PACKET_LAYOUT.size, depth=PACKETS_AHEAD)
        m.submodules.beats = beats = fifo.SyncFIFO(width=BEAT_LAYOUT.size, depth=BEATS_AHEAD)
        for name in ("arid", "araddr", "arlen", "arsize", "arburst", "arvalid", "bready"):
            m.d.comb += getattr(axi, name).eq(getattr(engine.axi, name))
        m.d.comb += [
            engine.axi.arready.eq(axi.arready),
            packets.w_data.eq(engine.packet.payload),
            packets.w_en.eq(engine.packet.valid),
            engine.packet.ready.eq(packets.w_rdy),
            sender.packet.payload.eq(packets.r_data),
            sender.packet.valid.eq(packets.r_rdy),
            packets.r_en.eq(sender.packet.ready),
            beats.w_data[:BUS_BITS].eq(axi.rdata),
            beats.w_data[BUS_BITS].eq(axi.rresp[1]),
            beats.w_en.eq(axi.rvalid),
            axi.rready.eq(beats.w_rdy),
            sender.beat.payload.eq(beats.r_data),
            sender.beat.valid.eq(beats.r_rdy),
            beats.r_en.eq(sender.beat.ready),
        ]
        return ~packets.r_rdy & ~beats.r_rdy, bursts
