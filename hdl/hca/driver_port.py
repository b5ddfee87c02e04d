"""The driver's port: the registers that set up an adapter, and its counters."""

from __future__ import annotations

from pathlib import Path

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..config.hca import HcaConfig
from ..nic.link_port.vl_port import port_config
from ..nic.owners.protection import REGION_LAYOUT
from ..nic.owners.translation import INVALIDATE_LAYOUT, Scope
from ..register_bank import RegisterBank
from ..register_port import ProcessorSignature
from ..registers import load
from ..router.scheduler import has_tables
from ..vl_arbiter.base import TableSignature
from .completion_writer import COMPLETION_SETUP
from .injection.control import setup_kinds
from .injection.policy import SETUP_LAYOUT
from .layout import INDEX_BITS, QP_BITS
from .send_layout import QUEUE_PAIR_LAYOUT, ROUTE_LAYOUT

__all__ = ["COUNTERS", "HCA_REGISTERS", "DriverPort"]

HCA_REGISTERS = load(Path(__file__).parent / "hca.rdl")
"""The registers by name."""
COUNTERS = tuple(name for name, register in HCA_REGISTERS.items() if register.offset >= 0x100)
"""The registers that show a counter."""
_TABLES = ("VL_TABLE_ENTRY", "VL_TABLE_COMMIT")


class DriverPort(wiring.Component):
    """The registers of `hca.rdl`.

    Members:

    - `driver` (in, `ProcessorSignature`): accesses. Its `event` is 0.
    - `queue_pair` (out, stream of `QUEUE_PAIR_LAYOUT`): a queue pair is opened or closed.
    - `look` (out, 8), `posted`, `ends`, `busy` (in): as in `ClassQueues`.
    - `completion` (out, stream of `COMPLETION_SETUP`): a completion queue is set up.
    - `region` (out, stream of `REGION_LAYOUT`): a region is set.
    - `invalidate` (out, stream of `INVALIDATE_LAYOUT`): page table entries to forget.
    - `route_valid`, `route` (out, `ROUTE_LAYOUT`): the route to a node is set.
    - `drop_classes` (out, 8): a register.
    - `injection_valid`, `injection` (out, `SETUP_LAYOUT`): a word for injection control.
    - `table` (out, `TableSignature`), only if the link's arbiter has tables: writes of them.
    - `counters` (in, 32 for each of `COUNTERS`): what those registers show.

    An access does nothing, and is counted in REFUSED, if it names something that does not exist. So is the opening of a
    queue pair that is open, or whose messages are still under way.

    Writes of QP_COMMAND, CQ_RING, REGION_SET, INVALIDATE and the VL tables wait for those that they go to. Other
    accesses wait for nothing.

    Latency: 1 cycle to read. Throughput: an access a cycle, but for writes that wait. Reset: registers are 0.
    """

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        self._tables = has_tables(port_config(config.port))
        members: dict[str, wiring.Member] = {
            "driver": In(ProcessorSignature()),
            "queue_pair": Out(stream.Signature(QUEUE_PAIR_LAYOUT)),
            "look": Out(QP_BITS),
            "posted": In(INDEX_BITS),
            "ends": In(INDEX_BITS),
            "busy": In(1),
            "completion": Out(stream.Signature(COMPLETION_SETUP)),
            "region": Out(stream.Signature(REGION_LAYOUT)),
            "invalidate": Out(stream.Signature(INVALIDATE_LAYOUT)),
            "route_valid": Out(1),
            "route": Out(ROUTE_LAYOUT),
            "drop_classes": Out(8),
            "injection_valid": Out(1),
            "injection": Out(SETUP_LAYOUT),
            "counters": In(32).array(len(COUNTERS)),
        }
        if self._tables:
            members["table"] = In(TableSignature(vls=config.link.vls, entries=config.vl_table_entries))
        super().__init__(members)
        self.refused = Signal(32, name="refused")

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        registers = {name: one for name, one in HCA_REGISTERS.items() if self._tables or name not in _TABLES}
        m.submodules.bank = self._bank = bank = RegisterBank(registers)
        request, response, bus = self.driver.request, self.driver.response, bank.bus
        taken, mapped = Signal(), Signal()
        area = request.address[16:]
        offset = request.address[2:16] << 2
        # Writes that wait, each until its own `ready`; and reasons to refuse an access.
        self._waits: list[Value] = []
        self._refusals: list[Value] = [~mapped]
        m.d.comb += [
            taken.eq(request.valid & response.ready),
            bus.read.eq(taken & ~request.write & (area == 0)),
            bus.write.eq(taken & request.write & (area == 0)),
            bus.read_offset.eq(offset),
            bus.write_offset.eq(offset),
            bus.write_data.eq(request.data),
            mapped.eq((area == 0) & Mux(request.write, bus.write_mapped, bus.read_mapped)),
            bank.IDENTITY.r_data.queue_pairs.eq(config.queue_pairs),
            bank.IDENTITY.r_data.completion_queues.eq(config.completion_queues),
            bank.IDENTITY.r_data.classes.eq(config.classes),
            bank.IDENTITY.r_data.posted.eq(config.wqe == "posted"),
            bank.IDENTITY.r_data.posted_log2.eq(_posted_log2(config)),
            bank.REFUSED.r_data.accesses.eq(self.refused),
            self.drop_classes.eq(bank.DROP_CLASSES.value.classes),
        ]
        from_bank = Signal()
        m.d.sync += from_bank.eq(bus.read & bus.read_mapped)
        m.d.comb += response.data.eq(Mux(from_bank, bus.read_data, 0))
        for name, counter in zip(COUNTERS, self.counters, strict=True):
            (field,) = HCA_REGISTERS[name].fields
            m.d.comb += getattr(bank, name).r_data[field].eq(counter)
        self._queue_pair(m)
        self._completion(m)
        self._memory(m)
        self._network(m)
        m.d.comb += response.ready.eq(~Cat(*self._waits).any())
        with m.If(taken & Cat(*self._refusals).any()):
            m.d.sync += self.refused.eq(self.refused + 1)
        return m

    def _writes(self, m: Module, *names: str) -> Signal:
        """Whether one of these registers is to be written in this cycle, if it need not wait."""
        request = self.driver.request
        offsets = [HCA_REGISTERS[name].offset for name in names]
        writes = Signal(name=f"writes_{names[0]}")
        m.d.comb += writes.eq(
            request.valid
            & request.write
            & Cat(*(request.address[2:] == offset >> 2 for offset in offsets)).any()
        )
        return writes

    def _offer(self, m: Module, name: str, stream: wiring.PureInterface, exists: Value) -> None:
        """A write of register `name` goes to `stream` and waits for it. It is refused unless what it names `exists`."""
        writes = self._writes(m, name)
        m.d.comb += stream.valid.eq(writes & exists)
        self._waits.append(stream.valid & ~stream.ready)
        self._refusals.append(writes & ~exists)

    def _queue_pair(self, m: Module) -> None:
        config, bank = self.config, self._bank
        owner, peer, payload = bank.QP_OWNER.value, bank.QP_PEER.value, self.queue_pair.payload
        selected = bank.QP_SELECT.value.qp
        # Whether it is open: a bit each, as the adapter's parts have it.
        is_open, opens = Signal(config.queue_pairs), bank.QP_COMMAND.w_data.open
        here, exists, fits = Signal(), Signal(), Signal()
        ring_fits = bank.QP_SEND_RING.value.entries_log2 <= _posted_log2(config)
        m.d.comb += [
            self.look.eq(selected),
            here.eq((selected < config.queue_pairs) & is_open.bit_select(selected, 1)),
            exists.eq(selected < config.queue_pairs),
            fits.eq(
                (owner.traffic_class < config.classes)
                & (owner.send_queue < config.completion_queues)
                & (owner.receive_queue < config.completion_queues)
                & (owner.owner < config.owners)
                & (ring_fits if config.wqe == "posted" else 1)
            ),
            payload.qp.eq(selected),
            payload.open.eq(opens),
            payload.owner.eq(owner.owner),
            payload.traffic_class.eq(owner.traffic_class),
            payload.send_queue.eq(owner.send_queue),
            payload.receive_queue.eq(owner.receive_queue),
            payload.send_log2.eq(bank.QP_SEND_RING.value.entries_log2),
            payload.send_base.eq(bank.QP_SEND_RING.value.base),
            payload.receive_log2.eq(bank.QP_RECEIVE_RING.value.entries_log2),
            payload.receive_base.eq(bank.QP_RECEIVE_RING.value.base),
            payload.destination.eq(peer.destination),
            payload.destination_qp.eq(peer.destination_qp),
            payload.connected.eq(peer.connected),
            payload.vls.eq(bank.QP_VLS.value.vls),
            payload.life.eq(bank.QP_LIFE.value.life),
            payload.destination_life.eq(bank.QP_LIFE.value.destination_life),
            bank.QP_COMMAND.r_data.open.eq(here),
            bank.QP_COMMAND.r_data.busy.eq(exists & ~here & self.busy),
            bank.QP_INDEX.r_data.posted.eq(Mux(exists, self.posted, 0)),
            bank.QP_INDEX.r_data.ended.eq(Mux(exists, self.ends, 0)),
        ]
        # A queue pair that is closed and not busy stays so until it is opened.
        allowed = exists & (~opens | (fits & ~here & ~self.busy))
        self._offer(m, "QP_COMMAND", self.queue_pair, allowed)
        with m.If(self.queue_pair.valid & self.queue_pair.ready):
            m.d.sync += is_open.bit_select(selected, 1).eq(opens)

    def _completion(self, m: Module) -> None:
        bank, payload = self._bank, self.completion.payload
        selected, ring = bank.CQ_SELECT.value.queue, bank.CQ_RING.w_data
        m.d.comb += [
            payload.queue.eq(selected),
            payload.owner.eq(bank.CQ_OWNER.value.owner),
            payload.base.eq(ring.base << 4),
            payload.entries_log2.eq(ring.entries_log2),
        ]
        # A queue that is switched off has no owner, nor has a region that is taken away.
        owned = (payload.owner < self.config.owners) | (ring.entries_log2 == 0)
        self._offer(m, "CQ_RING", self.completion, (selected < self.config.completion_queues) & owned)

    def _memory(self, m: Module) -> None:
        bank, region, invalidate = self._bank, self.region.payload, self.invalidate.payload
        selected, given, forget = (
            bank.REGION_SELECT.value.region,
            bank.REGION_SET.w_data,
            bank.INVALIDATE.w_data,
        )
        owned = (given.owner < self.config.owners) | ~given.valid
        exists = (selected < self.config.regions) & owned
        m.d.comb += [
            region.region.eq(selected),
            region.start.eq(bank.REGION_START.value.address),
            region.bytes.eq(bank.REGION_BYTES.value.bytes),
            region.table.eq(bank.REGION_TABLE.value.address),
            region.valid.eq(given.valid),
            region.writable.eq(given.writable),
            region.key.eq(given.key),
            region.owner.eq(given.owner),
            invalidate.scope.eq(forget.scope),
            invalidate.region.eq(forget.region),
            invalidate.page.eq(forget.page),
        ]
        self._offer(m, "REGION_SET", self.region, exists)
        known = (forget.scope == Scope.ALL) | (
            (forget.scope < Scope.ALL) & (forget.region < self.config.regions)
        )
        self._offer(m, "INVALIDATE", self.invalidate, known)

    def _network(self, m: Module) -> None:
        config, bank = self.config, self._bank
        node, given = bank.ROUTE_SELECT.value.node, bank.ROUTE_SET.w_data
        word = bank.INJECTION_SELECT.value
        named = Signal(name="injection_named")
        m.d.comb += [
            named.eq(
                Cat(*(word.kind == kind for kind in setup_kinds(config))).any()
                & (word.index < config.destinations)
            ),
            self.route_valid.eq(bank.ROUTE_SET.w_stb & (node < config.destinations)),
            self.route.node.eq(node),
            self.route.route.eq(Cat(bank.ROUTE_LOW.value.route, given.route)),
            self.route.known.eq(given.known),
            self.injection_valid.eq(bank.INJECTION_VALUE.w_stb & named),
            self.injection.kind.eq(word.kind),
            self.injection.index.eq(word.index),
            self.injection.value.eq(bank.INJECTION_VALUE.w_data.value),
        ]
        self._refusals.append(bank.ROUTE_SET.w_stb & (node >= config.destinations))
        self._refusals.append(bank.INJECTION_VALUE.w_stb & ~named)
        if not self._tables:
            return
        entry, commit, table = bank.VL_TABLE_ENTRY, bank.VL_TABLE_COMMIT, self.table
        exists = (entry.w_data.entry < config.vl_table_entries) & (entry.w_data.vl < config.link.vls)
        m.d.comb += [
            table.write.eq(entry.w_stb & exists),
            table.high.eq(entry.w_data.high),
            table.entry.eq(entry.w_data.entry),
            table.vl.eq(entry.w_data.vl),
            table.weight.eq(entry.w_data.weight),
            table.commit.eq(commit.w_stb),
            table.limit.eq(commit.w_data.limit),
        ]
        self._waits.append(self._writes(m, *_TABLES) & ~table.ready)
        self._refusals.append(entry.w_stb & ~exists)


def _posted_log2(config: HcaConfig) -> int:
    """The logarithm of the elements that the adapter keeps for a queue pair; 0 if it fetches them."""
    return config.posted_entries.bit_length() - 1 if config.wqe == "posted" else 0
