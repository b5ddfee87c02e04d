"""The receive side of the adapter: packets from the link into posted buffers, and completions behind them."""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..axi import Axi4Signature
from ..config.hca import BUS_BITS, HcaConfig
from ..link import FlitLayout
from ..nic.owners.protection import REGION_LAYOUT
from ..nic.owners.translation import INVALIDATE_LAYOUT
from .completion_writer import COMPLETION_POST
from .memory_check import MemoryCheck
from .receive.data_writer import DataWriter
from .receive.layout import RECEIVE_DOORBELL, RECEIVE_QP
from .receive.messages import DROPS, ReceiveMessages
from .receive.packet_stage import PacketStage
from .receive.rings import ReceiveRings

__all__ = ["RECEIVE_COUNTERS", "ReceiveSide"]

RECEIVE_COUNTERS = (
    "packets",
    "length_errors",
    "crc_errors",
    *DROPS,
    "bus_errors",
    "refusals",
    "violations",
    "hits",
    "misses",
)
"""The engine's counters, 32 bits each, modulo 2^32 since reset. They are documented where they are counted:

- `packets`, `length_errors`, `crc_errors`: `PacketStage`.
- The names of `DROPS`: there.
- `bus_errors`: `DataWriter`.
- `refusals`: of doorbells, `ReceiveRings`.
- `violations`, `hits`, `misses`: `MemoryCheck`.
"""


class ReceiveSide(wiring.Component):
    """Takes packets from the port, and serves receive rings, buffers and messages without firmware (yum-2006 3.2).

    Members:

    - `flits` (in, stream of `FlitLayout`): whole packets, one after the other, as `VlPort` has them on `receive`.
    - `setup` (in, stream of `RECEIVE_QP`): a queue pair's receive side is opened, closed, or made anew.
    - `region` (in, stream of `REGION_LAYOUT`), `invalidate` (in, stream of `INVALIDATE_LAYOUT`): as `MemoryCheck` has
      them.
    - `doorbell` (in, stream of `RECEIVE_DOORBELL`): buffers are posted; taken at once, but in the cycle of a set-up.
    - `refused` (out): that write does nothing.
    - `post` (out, stream of `COMPLETION_POST`): ends of messages, to a `CompletionWriter`.
    - `data_axi`, `ring_axi`, `page_axi` (out, `Axi4Signature` of 128 bits): writes of data, reads of rings, reads of
      page tables. They have ID 0.
    - The counters of `RECEIVE_COUNTERS` (out, 32).
    - `activity` (out): a flit is taken in this cycle.
    - `quiet` (out): nothing is under way, and no register changes but by an input.

    Set-ups, regions and invalidations are taken when every packet that was begun has ended: its writes are answered,
    its completion is posted, and no element is being fetched. After one has been taken, nothing of the old queue pair,
    region or page is read or written. Packets are not begun while one waits, but come in as long as the stage has room.

    A process holds up nobody. A packet without a buffer, or of a closed queue pair, is dropped. The engine stops taking
    packets only while `STAGE_PACKETS` of them wait for the bus, or for a set-up, which waits for the bus, too.

    Latency: 15 cycles from a packet's tail on `flits` to its post, if its element and page are on the card. Its
    payload's flits and the bus's time to its answer come to that. Throughput: a flit a cycle for packets of 22 flits
    and more, if the bus takes a beat a cycle. Reset: no queue pair is open.
    """

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        bus = Axi4Signature(data_bits=BUS_BITS)
        super().__init__(
            {
                "flits": In(stream.Signature(FlitLayout(config.link))),
                "setup": In(stream.Signature(RECEIVE_QP)),
                "region": In(stream.Signature(REGION_LAYOUT)),
                "invalidate": In(stream.Signature(INVALIDATE_LAYOUT)),
                "doorbell": In(stream.Signature(RECEIVE_DOORBELL)),
                "refused": Out(1),
                "post": Out(stream.Signature(COMPLETION_POST)),
                "data_axi": Out(bus),
                "ring_axi": Out(bus),
                "page_axi": Out(bus),
                **{name: Out(32) for name in RECEIVE_COUNTERS},
                "activity": Out(1),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, setup = self.config, self.setup.payload
        m.submodules.stage = self.stage = stage = PacketStage(config)
        m.submodules.messages = self.messages = messages = ReceiveMessages(config)
        m.submodules.rings = self.rings = rings = ReceiveRings(config)
        m.submodules.check = self.check = check = MemoryCheck(config)
        m.submodules.writer = self.writer = writer = DataWriter(config)
        connect(m, flipped(self.flits), stage.flits)
        connect(m, stage.packet, messages.packet)
        connect(m, messages.access, check.access)
        connect(m, check.segment, messages.segment)
        connect(m, messages.write, writer.write)
        connect(m, flipped(self.doorbell), rings.doorbell)
        connect(m, writer.post, flipped(self.post))
        connect(m, writer.axi, flipped(self.data_axi))
        connect(m, rings.axi, flipped(self.ring_axi))
        connect(m, check.axi, flipped(self.page_axi))
        m.d.comb += [
            rings.ask.eq(messages.ask),
            rings.ask_qp.eq(messages.ask_qp),
            rings.take.eq(messages.take),
            messages.none.eq(rings.none),
            messages.found.eq(rings.found),
            messages.buffer.eq(rings.buffer),
            stage.read_valid.eq(writer.read_valid),
            stage.read_address.eq(writer.read_address),
            writer.read_data.eq(stage.read_data),
            stage.release.eq(writer.release),
        ]
        parts = {"packets": stage, "length_errors": stage, "crc_errors": stage, "bus_errors": writer}
        parts |= {"refusals": rings, "violations": check, "hits": check, "misses": check}
        m.d.comb += [
            getattr(self, name).eq(getattr(parts.get(name, messages), name)) for name in RECEIVE_COUNTERS
        ]

        # What changes the rules waits until all that goes by the old ones has ended.
        hold, ended, known = Signal(), Signal(), Signal()
        m.d.comb += [
            hold.eq(self.setup.valid | self.region.valid | self.invalidate.valid),
            messages.hold.eq(hold),
            rings.hold.eq(hold),
            ended.eq(messages.rests & writer.rests & rings.rests),
            self.setup.ready.eq(ended),
            self.region.ready.eq(ended),
            known.eq(setup.qp < config.queue_pairs),
            rings.sets.eq(self.setup.valid & ended),
            rings.setup.eq(setup),
            messages.sets.eq(rings.sets),
            messages.setup.eq(setup),
            writer.forget.eq(rings.sets & known),
            writer.forget_qp.eq(setup.qp),
            check.assigns.eq(rings.sets),
            check.assign.channel.eq(setup.qp),
            check.assign.owner.eq(setup.owner),
            check.assign.open.eq(setup.open),
            check.region.eq(self.region.payload),
            check.regions.eq(self.region.valid & ended),
            check.invalidate.payload.eq(self.invalidate.payload),
            check.invalidate.valid.eq(self.invalidate.valid & ended),
            self.invalidate.ready.eq(check.invalidate.ready & ended),
            self.refused.eq(rings.refused),
            self.activity.eq(self.flits.valid & self.flits.ready),
            self.quiet.eq(
                stage.empty
                & ended
                & check.rests
                & rings.quiet
                & ~(self.flits.valid | messages.packet.valid | hold)
            ),
        ]
        return m
