"""The agent's port of a router: its registers and the memories of its management port."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..config import SERVICE_LEVELS, RouterConfig
from ..register_bank import RegisterBank
from ..register_port import ProcessorSignature
from ..registers import Register, load
from ..vl_arbiter.base import TableSignature
from .drop_report import REPORT
from .release_report import RELEASE
from .routing import TableWriteSignature, routing_class
from .scheduler import has_tables

__all__ = [
    "RECEIVE_BASE",
    "ROUTER_REGISTERS",
    "SEND_BASE",
    "AgentPort",
    "agent_registers",
    "has_agent",
]

ROUTER_REGISTERS = load(Path(__file__).parent / "router.rdl")
"""The registers by name."""
RECEIVE_BASE = 0x10000
"""Address of the received packet, bytes; read only."""
SEND_BASE = 0x20000
"""Address of the packet to be sent, bytes; write only."""
LEVEL_BITS = 4
"""Width of a row of the service level map: a VL or a class."""

_TABLES = ("VL_TABLE_ENTRY", "VL_TABLE_COMMIT")
_LEVELS = ("LEVEL_SELECT", "LEVEL_GROUP")
_ROUTES = ("ROUTE_SELECT", "ROUTE_PORT")
_MANAGEMENT = (
    *("RECEIVE", "SEND", "DROP_REPORT", "REPORTS_LOST", "USED_BANDWIDTH"),
    *("RELEASE_PATH", "RELEASE_REPORT", "RELEASES_LOST", "POWER_BUDGET"),
)
_ACTIVITY = ("BUFFER_WRITES", "BUFFER_READS", "ARBITRATIONS", "CROSSBAR_FLITS", "LINK_FLITS", "PORT_FLITS")


def agent_registers(config: RouterConfig) -> dict[str, Register]:
    """The registers that a router with `config` has; none if nothing in it can be set or read."""
    names: list[str] = []
    for wanted, group in (
        (has_tables(config), _TABLES),
        (config.maps_service_levels, _LEVELS),
        (routing_class(config).uses_table, _ROUTES),
        (config.management, _MANAGEMENT),
        (config.activity_counters, _ACTIVITY),
    ):
        names += group if wanted else ()
    names = ["IDENTITY", "DROPPED", "REFUSED", "SELECT", *names] if names else []
    return {name: ROUTER_REGISTERS[name] for name in names}


def has_agent(config: RouterConfig) -> bool:
    """Whether a router has the agent's port. Raises ConfigError for an unknown arbiter or routing function."""
    return bool(agent_registers(config))


class AgentPort(wiring.Component):
    """Decodes the agent's accesses: registers and, at addresses of their own, a received packet and one to be sent.

    Registers (`router.rdl`) are at 0, the received packet at `RECEIVE_BASE`, the packet to be sent at `SEND_BASE`.

    Members, without those of features that are not configured:

    - `agent` (in, `ProcessorSignature`): a read or write of 32 bits is taken when `ready`; read data comes in the cycle
      after. Only writes of VL tables ever wait, `TableSignature.wait_bound` cycles at most. Its `event` says that a
      packet or a report is there.
    - `dropped` (in, 32): packets that the router dropped.
    - `output_table` (out, P x `TableSignature`): tables of links and their crossbar outputs.
    - `input_table` (out, P x `TableSignature`): tables of crossbar inputs.
    - `levels` (out, 16 x 4 bits): the service level map; a register.
    - `routes` (out, `TableWriteSignature`): writes of the forwarding tables.
    - `word`, `write`, `write_data`, `free`, `start`, `start_flits` (out): as in `ManagementPort`.
    - `read_data`, `received`, `received_flits`, `busy` (in): as in `ManagementPort`.
    - `report_take` (out): as in `DropReports`.
    - `report`, `report_valid`, `reports_lost` (in): as in `DropReports`.
    - `release_take` (out): as in `ReleaseReports`.
    - `release`, `release_valid`, `releases_lost` (in): as in `ReleaseReports`.
    - `select_port`, `select_vl` (out): as in `ActivityCounters`.
    - `buffer_writes`, `buffer_reads`, `arbitrations`, `crossbar_flits`, `link_flits` (in): as in `ActivityCounters`.
    - `port_flits` (in): its `selected_flits`.

    An access does nothing, and is counted in REFUSED, modulo 2^32, if it names something that does not exist: an
    offset, port, node, VL, entry, or word of a memory. A read of such a thing is zero. The start of a control packet
    is refused and counted likewise in these cases:

    - The send memory cannot hold the packet.
    - The packet has no flits.
    - Another one still leaves.

    Latency: 1 cycle to read. Throughput: an access a cycle, but for writes of VL tables. Reset: selections are 0,
    the service level map is `RouterConfig.initial_service_level_map`.
    """

    def __init__(self, config: RouterConfig) -> None:
        self._config = config
        self._registers = agent_registers(config)
        ports = config.ports
        members: dict[str, Any] = {"agent": In(ProcessorSignature()), "dropped": In(32)}
        if has_tables(config):
            table = In(TableSignature(vls=config.link.vls, entries=config.vl_table_entries))
            members |= {"output_table": table.array(ports), "input_table": table.array(ports)}
        if config.maps_service_levels:
            initial = sum(g << LEVEL_BITS * i for i, g in enumerate(config.initial_service_level_map))
            members["levels"] = Out(SERVICE_LEVELS * LEVEL_BITS, init=initial)
        if routing_class(config).uses_table:
            members["routes"] = In(TableWriteSignature(config))
        if config.management:
            words = config.management_flits * config.link.flit_bits // 32
            members |= {
                "word": Out(range(words)),
                "read_data": In(32),
                "write": Out(1),
                "write_data": Out(32),
                "received": In(1),
                "received_flits": In(16),
                "free": Out(1),
                "start": Out(1),
                "start_flits": Out(16),
                "busy": In(1),
                "report": In(REPORT),
                "report_valid": In(1),
                "report_take": Out(1),
                "reports_lost": In(32),
                "release": In(RELEASE),
                "release_valid": In(1),
                "release_take": Out(1),
                "releases_lost": In(32),
            }
        if config.activity_counters:
            members |= {"select_port": Out(6), "select_vl": Out(config.link.vl_bits)}
            members |= {name.lower(): In(32) for name in _ACTIVITY}
        super().__init__(members)
        self._refused = Signal(32, name="refused")

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        m.submodules.bank = bank = RegisterBank(self._registers)
        request, response = self.agent.request, self.agent.response
        area = request.address[16:]
        taken, ready = Signal(), Signal()
        offset = request.address[2:16] << 2
        bus = bank.bus
        m.d.comb += [
            ready.eq(1),
            taken.eq(request.valid & ready),
            response.ready.eq(ready),
            bus.read.eq(taken & ~request.write & (area == 0)),
            bus.write.eq(taken & request.write & (area == 0)),
            bus.read_offset.eq(offset),
            bus.write_offset.eq(offset),
            bus.write_data.eq(request.data),
            bank.IDENTITY.r_data.ports.eq(config.ports),
            bank.IDENTITY.r_data.vls.eq(config.link.vls),
            bank.IDENTITY.r_data.management.eq(config.management),
            bank.DROPPED.r_data.packets.eq(self.dropped),
        ]
        # Each part adds its reasons to refuse the access of this cycle.
        self._refusals: list[Value] = [
            (area == 0) & ~Mux(request.write, bus.write_mapped, bus.read_mapped),
        ]
        from_bank = Signal()
        m.d.sync += from_bank.eq(bus.read & bus.read_mapped)
        data: Value = Mux(from_bank, bus.read_data, 0)
        selected = bank.SELECT.value
        if has_tables(config):
            self._tables(m, bank, ready)
        if config.maps_service_levels:
            level = bank.LEVEL_SELECT.value.service_level
            row = self.levels.word_select(level, LEVEL_BITS)
            m.d.comb += bank.LEVEL_GROUP.r_data.group.eq(row)
            with m.If(bank.LEVEL_GROUP.w_stb):
                m.d.sync += row.eq(bank.LEVEL_GROUP.w_data.group)
        if routing_class(config).uses_table:
            self._refusals.append(
                bank.ROUTE_PORT.w_stb
                & (
                    (bank.ROUTE_SELECT.value.node >= config.forwarding_entries)
                    | (bank.ROUTE_PORT.w_data.known & (bank.ROUTE_PORT.w_data.port >= config.ports))
                )
            )
            m.d.comb += [
                self.routes.write.eq(bank.ROUTE_PORT.w_stb),
                self.routes.node.eq(bank.ROUTE_SELECT.value.node),
                self.routes.port.eq(bank.ROUTE_PORT.w_data.port),
                # A port that does not fit the row would become another one.
                self.routes.known.eq(
                    bank.ROUTE_PORT.w_data.known & (bank.ROUTE_PORT.w_data.port < config.ports)
                ),
            ]
        if config.management:
            data = data | self._management(m, bank, selected.port, request, taken)
        else:
            self._refusals.append(area != 0)
        if config.activity_counters:
            m.d.comb += [self.select_port.eq(selected.port), self.select_vl.eq(selected.vl)]
            for name in _ACTIVITY:
                field = "decisions" if name == "ARBITRATIONS" else "flits"
                m.d.comb += getattr(bank, name).r_data[field].eq(getattr(self, name.lower()))
        m.d.comb += response.data.eq(data)
        m.d.comb += bank.REFUSED.r_data.accesses.eq(self._refused)
        with m.If(taken & Cat(*self._refusals).any()):
            m.d.sync += self._refused.eq(self._refused + 1)
        return m

    def _tables(self, m: Module, bank: RegisterBank, ready: Signal) -> None:
        """Writes of VL tables; they wait until all tables that are selected are ready."""
        entry, commit, selected = bank.VL_TABLE_ENTRY, bank.VL_TABLE_COMMIT, bank.SELECT.value
        request = self.agent.request
        to_tables, waits = Signal(), Signal()
        offsets = [self._registers[name].offset for name in _TABLES]
        m.d.comb += to_tables.eq(
            request.write & Cat(*(request.address[2:] == offset >> 2 for offset in offsets)).any()
        )
        exists = Signal()
        m.d.comb += exists.eq(
            (entry.w_data.entry < self._config.vl_table_entries) & (entry.w_data.vl < self._config.link.vls)
        )
        selects = selected.everywhere | (selected.port < self._config.ports)
        self._refusals += [entry.w_stb & ~(exists & selects), commit.w_stb & ~selects]
        unready = []
        for crossbar, tables in enumerate((self.output_table, self.input_table)):
            for port, table in enumerate(tables):
                mine = Signal(name=f"mine_{crossbar}_{port}")
                m.d.comb += [
                    mine.eq(
                        selected.everywhere | ((selected.port == port) & (selected.crossbar == crossbar))
                    ),
                    table.write.eq(entry.w_stb & exists & mine),
                    table.high.eq(entry.w_data.high),
                    table.entry.eq(entry.w_data.entry),
                    table.vl.eq(entry.w_data.vl),
                    table.weight.eq(entry.w_data.weight),
                    table.commit.eq(commit.w_stb & mine),
                    table.limit.eq(commit.w_data.limit),
                ]
                unready.append(mine & ~table.ready)
        m.d.comb += waits.eq(Cat(*unready).any())
        with m.If(to_tables):
            m.d.comb += ready.eq(~waits)

    def _management(self, m: Module, bank: RegisterBank, port: Value, request: Value, taken: Value) -> Value:
        """The management port; returns the part of the read data that comes from its receive memory."""
        config = self._config
        receive, send, report = bank.RECEIVE, bank.SEND, bank.DROP_REPORT
        m.submodules.used = used = memory.Memory(shape=unsigned(32), depth=config.ports, init=[])
        put, get = used.write_port(), used.read_port(domain="comb")
        # A memory has no reset: `written` says which rows were written.
        written, exists = Signal(config.ports), Signal()
        # The whole address: a word beyond the memory is none, and not another one.
        address = request.address[2:]
        base, words = (
            Mux(request.write, SEND_BASE >> 2, RECEIVE_BASE >> 2),
            config.management_flits * config.link.flit_bits // 32,
        )
        in_memory, fits = Signal(), Signal()
        m.d.comb += [
            in_memory.eq((address >= base) & (address < base + words)),
            fits.eq(send.w_data.flits.any() & (send.w_data.flits <= config.management_flits)),
        ]
        self._refusals += [
            (request.address[16:] != 0) & ~in_memory,
            send.w_stb & (~fits | self.busy),
            bank.USED_BANDWIDTH.w_stb & ~exists,
        ]
        m.d.comb += [
            exists.eq(port < config.ports),
            put.addr.eq(port),
            put.data.eq(bank.USED_BANDWIDTH.w_data.units),
            put.en.eq(bank.USED_BANDWIDTH.w_stb & exists),
            get.addr.eq(port),
            bank.USED_BANDWIDTH.r_data.units.eq(Mux(exists & written.bit_select(port, 1), get.data, 0)),
            self.word.eq(request.address[2:16]),
            self.write.eq(taken & request.write & in_memory),
            self.write_data.eq(request.data),
            receive.r_data.valid.eq(self.received),
            receive.r_data.flits.eq(Mux(self.received, self.received_flits, 0)),
            self.free.eq(receive.w_stb & receive.w_data.free),
            self.start.eq(send.w_stb & fits & ~self.busy),
            self.start_flits.eq(send.w_data.flits),
            send.r_data.busy.eq(self.busy),
            report.r_data.source.eq(self.report.source),
            report.r_data.destination.eq(self.report.destination),
            report.r_data.port.eq(self.report.port),
            report.r_data.valid.eq(self.report_valid),
            self.report_take.eq(report.r_stb & self.report_valid),
            bank.REPORTS_LOST.r_data.packets.eq(self.reports_lost),
            bank.RELEASE_PATH.r_data.in_port.eq(self.release.in_port),
            bank.RELEASE_PATH.r_data.out_port.eq(self.release.out_port),
            bank.RELEASE_PATH.r_data.bandwidth.eq(self.release.bandwidth),
            bank.RELEASE_PATH.r_data.destination.eq(self.release.destination),
            bank.RELEASE_REPORT.r_data.source.eq(self.release.source),
            bank.RELEASE_REPORT.r_data.flow.eq(self.release.flow),
            bank.RELEASE_REPORT.r_data.valid.eq(self.release_valid),
            self.release_take.eq(bank.RELEASE_REPORT.r_stb & self.release_valid),
            bank.RELEASES_LOST.r_data.packets.eq(self.releases_lost),
            self.agent.response.event.eq(self.received | self.report_valid | self.release_valid),
        ]
        with m.If(put.en):
            m.d.sync += written.eq(written | 1 << port)
        word = Signal(32)
        reads = taken & ~request.write & in_memory
        m.d.sync += word.eq(Mux(reads, self.read_data, 0))
        return word
