"""The adapter's scheduler: the message that begins next."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config.hca import HcaConfig
from ..packet import Kind
from .injection.base import InjectionSignature
from .layout import CONTROL_VL, LIFE_BITS, CqeStatus, Opcode
from .queue_pair_table import QueuePairTable
from .send_layout import END_LAYOUT, MESSAGE_LAYOUT, QUEUE_PAIR_LAYOUT, ROUTE_LAYOUT
from .work_fetch import WORK_LAYOUT

__all__ = ["Scheduler", "quotient_factor"]

MOST_DATA_FLITS = 4096
"""Flits of a message of 65535 bytes."""


def quotient_factor(divisor: int) -> tuple[int, int]:
    """(factor, shift): for 0 <= n <= `MOST_DATA_FLITS` n // divisor is n * factor >> shift.

    factor = ceil(2^shift / divisor) is too large by e < 1. The quotient is right as long as n * e is below
    2^shift / divisor. So shift is the width of n and of the divisor together.
    """
    shift = MOST_DATA_FLITS.bit_length() + divisor.bit_length()
    return -(-(1 << shift) // divisor), shift


class Scheduler(wiring.Component):
    """Chooses the class whose oldest message begins, by priority: class 0 goes first (yum-2006 3.2).

    Members:

    - `setup_valid`, `setup` (in, `QUEUE_PAIR_LAYOUT`): a queue pair is opened or closed.
    - `route_valid`, `route` (in, `ROUTE_LAYOUT`): the route to a node is set.
    - `drop_classes` (in, 8): classes whose messages do not wait for injection control.
    - `held` (in), `look` (out), `work` (in, `WORK_LAYOUT`), `done` (out): as in `WorkFetch`.
    - `room` (in, a bit a VL): VLs with a free packet buffer.
    - `control` (out, `InjectionSignature`): injection control, but for `entered` and `vl_busy`, which are not driven.
    - `message` (out, stream of `MESSAGE_LAYOUT`): a message begins. It waits for `ready` before it is valid.
    - `suspended`, `resumable` (in, a bit a class), `resume`, `resume_class` (out): as in `MessageReader`.
      `resume_ready` (in): a message can go on.
    - `end` (out, stream of `END_LAYOUT`): a message that does not begin.
    - `quiet` (out): no class has an element, and no register changes but by an input.

    The oldest messages of the classes are looked at in turn, from class 0 up. The oldest is that which is suspended, if
    there is one: it goes on if it can. One that may not begin holds up its own class only. It begins if these hold:

    - the send engine is ready, and the message's VL has a free packet buffer;
    - injection control allows it.

    One of a class in `drop_classes` that injection control does not allow ends with THROTTLED, as does one that may
    never begin. Others wait, as long as injection control and the VL have them wait: without bound if the network
    stands.

    A message ends at once if one of these checks fails, in this order:

    1. Its queue pair is open; else it is dropped.
    2. BUS_ERROR: the bus could read its work queue element.
    3. FORMAT: the opcode is known, the VL allowed, the destination's route known, and the kind DATA. RELEASE is for a
       queue pair that is connected or may use VL 15, other kinds are for VL 15 alone.
    4. TOO_LONG: the queue pair is connected, or the message fits a packet.

    Latency: from `held` to `message` 4 cycles. A look at another class takes 4 cycles. A message of class c that comes
    to be allowed begins at most 4 x (`classes` + c) cycles later, if no other one begins, goes on or ends. Classes
    before it may be looked at twice. Throughput: a message every 4 cycles. Reset: routes stay as they are; after
    power-up none is known.
    """

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        super().__init__(
            {
                "setup_valid": In(1),
                "setup": In(QUEUE_PAIR_LAYOUT),
                "route_valid": In(1),
                "route": In(ROUTE_LAYOUT),
                "drop_classes": In(8),
                "held": In(config.classes),
                "look": Out(range(max(2, config.classes))),
                "work": In(WORK_LAYOUT),
                "done": Out(1),
                "room": In(config.link.vls),
                "control": Out(InjectionSignature(vls=config.link.vls)),
                "message": Out(stream.Signature(MESSAGE_LAYOUT)),
                "suspended": In(config.classes),
                "resumable": In(config.classes),
                "resume_ready": In(1),
                "resume": Out(1),
                "resume_class": Out(range(max(2, config.classes))),
                "end": Out(stream.Signature(END_LAYOUT)),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, classes = self.config, self.config.classes
        m.submodules.table = table = QueuePairTable(
            config.queue_pairs,
            fields=(
                "send_queue",
                "destination",
                "destination_qp",
                "connected",
                "vls",
                "life",
                "destination_life",
            ),
        )
        work, element = Signal(WORK_LAYOUT), self.message.payload
        chosen, looked = Signal(self.look.shape()), Signal(classes)
        pick, fresh = Signal(self.look.shape()), Signal(classes)
        m.d.comb += [
            table.setup_valid.eq(self.setup_valid),
            table.setup.eq(self.setup),
            table.qp.eq(work.qp),
            fresh.eq((self.held | self.suspended) & ~looked),
            self.resume_class.eq(chosen),
            self.look.eq(chosen),
        ]
        for i in reversed(range(classes)):
            with m.If(fresh[i]):
                m.d.comb += pick.eq(i)
        # Only the queue pair's part is registered: the rest is the element's.
        destination, destination_qp, destination_life = Signal(10), Signal(8), Signal(LIFE_BITS)
        status, packets, flits = Signal(CqeStatus), Signal(13), Signal(13)
        route, known = self._routes(m, destination)
        self._sizes(m, work.element.bytes, packets, flits)
        status_found = self._status(m, work, table, known)
        asks, throttled, drops, others = Signal(), Signal(), Signal(), Signal()
        # Another class, or a message of the chosen one that goes before: a look at them is due.
        m.d.comb += others.eq(((self.held & ~(1 << chosen)[:classes]) | self.suspended).any())
        end, control = self.end.payload, self.control
        vl = work.element.vl
        m.d.comb += [
            control.ask.traffic_class.eq(chosen),
            control.ask.destination.eq(destination),
            control.ask.vl.eq(vl),
            control.ask.flits.eq(flits),
            control.ask.packets.eq(packets),
            control.ask_valid.eq(asks),
            control.start.eq(asks & control.allow),
            control.refuse.eq(throttled),
            control.vl_full.eq(~self.room),
            self.message.valid.eq(control.start),
            drops.eq(self.drop_classes.bit_select(chosen, 1)),
            end.qp.eq(work.qp),
            end.queue.eq(table.row.send_queue),
            end.tag.eq(work.element.tag),
            end.signaled.eq(1),
            end.status.eq(status),
        ]
        for name in ("signaled", "kind", "vl", "service_level", "tag", "generation", "bandwidth"):
            m.d.comb += element[name].eq(work.element[name])
        for name in ("immediate", "address", "bytes", "region", "key"):
            m.d.comb += element[name].eq(work.element[name])
        m.d.comb += [
            element.qp.eq(work.qp),
            element.queue.eq(table.row.send_queue),
            element.traffic_class.eq(chosen),
            element.with_immediate.eq(work.element.opcode == Opcode.SEND_IMMEDIATE),
            element.destination.eq(destination),
            element.destination_qp.eq(destination_qp),
            element.life.eq(table.row.life),
            element.destination_life.eq(destination_life),
            element.route.eq(route),
        ]
        with m.FSM() as fsm:
            with m.State("pick"):
                m.d.comb += self.look.eq(pick)
                with m.If(fresh.any()):
                    m.d.sync += [chosen.eq(pick), work.eq(self.work)]
                    m.next = "queue pair"
                    with m.If(self.suspended.bit_select(pick, 1)):
                        m.next = "resume"
                with m.Else():
                    m.d.sync += looked.eq(0)
            with m.State("resume"):
                m.next = "pick"
                m.d.sync += looked.eq(looked | (1 << chosen))
                with m.If(self.resume_ready & self.resumable.bit_select(chosen, 1)):
                    m.d.comb += self.resume.eq(1)
                    m.d.sync += looked.eq(0)
            with m.State("queue pair"):
                m.d.sync += [
                    destination.eq(Mux(table.row.connected, table.row.destination, work.element.destination)),
                    destination_qp.eq(
                        Mux(table.row.connected, table.row.destination_qp, work.element.destination_qp)
                    ),
                    destination_life.eq(
                        Mux(table.row.connected, table.row.destination_life, work.element.destination_life)
                    ),
                ]
                m.next = "check"
            with m.State("check"):
                m.d.sync += status.eq(status_found)
                m.next = "ask"
            with m.State("ask"):
                with m.If(~table.open | (status != CqeStatus.OK)):
                    m.next = "end"
                with m.Elif(
                    self.message.ready & self.room.bit_select(vl, 1) & ~self.suspended.bit_select(chosen, 1)
                ):
                    m.d.comb += asks.eq(1)
                    with m.If(control.allow):
                        m.d.comb += self.done.eq(1)
                        m.d.sync += looked.eq(0)
                        m.next = "pick"
                    with m.Elif(control.never | drops):
                        m.d.comb += throttled.eq(1)
                        m.d.sync += status.eq(CqeStatus.THROTTLED)
                        m.next = "end"
                    with m.Elif(others):
                        m.d.sync += looked.eq(looked | (1 << chosen))
                        m.next = "pick"
                with m.Elif(others):
                    m.d.sync += looked.eq(looked | (1 << chosen))
                    m.next = "pick"
            with m.State("end"):
                m.d.comb += self.end.valid.eq(1)
                with m.If(self.end.ready):
                    m.d.comb += self.done.eq(1)
                    m.d.sync += looked.eq(0)
                    m.next = "pick"
        m.d.comb += self.quiet.eq(fsm.ongoing("pick") & ~(self.held | self.suspended).any())
        return m

    def _routes(self, m: Module, destination: Signal) -> tuple[Signal, Signal]:
        """The route to `destination`, and whether it is known, registers of the cycle before."""
        nodes = self.config.destinations
        shape = unsigned(ROUTE_LAYOUT["route"].width + 1)
        m.submodules.routes = routes = memory.Memory(shape=shape, depth=nodes, init=[])
        write, read = routes.write_port(), routes.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(self.route.node),
            write.data.eq(Cat(self.route.known, self.route.route)),
            write.en.eq(self.route_valid & (self.route.node < nodes)),
            read.addr.eq(destination),
        ]
        route, known = Signal(ROUTE_LAYOUT["route"].width), Signal()
        m.d.comb += known.eq(read.data[0] & (destination < nodes))
        m.d.sync += route.eq(read.data[1:])
        return route, known

    def _sizes(self, m: Module, message_bytes: Signal, packets: Signal, flits: Signal) -> None:
        """Packets and flits of a message, registers that follow a cycle after its length."""
        payload = self.config.payload_flits
        factor, shift = quotient_factor(payload)
        data_flits, count = Signal(13), Signal(13)
        m.d.comb += [
            data_flits.eq((message_bytes + 15) >> 4),
            count.eq(Mux(data_flits == 0, 1, ((data_flits + payload - 1) * factor) >> shift)),
        ]
        m.d.sync += [packets.eq(count), flits.eq(data_flits + 2 * count)]

    def _status(self, m: Module, work: Signal, table: QueuePairTable, known: Signal) -> Signal:
        """The status of the first check that fails."""
        element, vls = work.element, self.config.link.vls
        allowed, trusted, control = Signal(), Signal(), Signal()
        m.d.comb += [
            allowed.eq((element.vl < vls) & table.row.vls.bit_select(element.vl, 1)),
            # Routers and their agents act on other kinds: they are for whom the driver has given the means to.
            trusted.eq(table.row.connected | (table.row.vls[15] if vls == 16 else 0)),
            control.eq(element.vl == CONTROL_VL if vls == 16 else 0),
        ]
        status = Signal(CqeStatus)
        with m.If(work.failed):
            m.d.comb += status.eq(CqeStatus.BUS_ERROR)
        with m.Elif(
            ((element.opcode != Opcode.SEND) & (element.opcode != Opcode.SEND_IMMEDIATE))
            | ~allowed
            | ~known
            | ((element.kind == Kind.RELEASE) & ~trusted)
            | ((element.kind != Kind.RELEASE) & (element.kind != Kind.DATA) & ~control)
            | (element.kind > max(Kind))
        ):
            m.d.comb += status.eq(CqeStatus.FORMAT)
        with m.Elif(~table.row.connected & (element.bytes > self.config.payload_bytes)):
            m.d.comb += status.eq(CqeStatus.TOO_LONG)
        return status
