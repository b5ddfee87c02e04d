"""Proofs of the adapter's scheduler: what begins may begin, what may not ends as it should, and class 0 goes first.

Exhaustive for so many cycles after power-on, of two classes, two queue pairs, two VLs and two nodes.
"""

import pytest
from amaranth import Array, Cat, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.layout import CqeStatus, Opcode
from lanikai.hdl.hca.scheduler import Scheduler
from lanikai.hdl.hca.work_fetch import WORK_LAYOUT
from lanikai.hdl.packet import Kind
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

CONFIG = preset(HcaConfig, "tiny").replace(queue_pairs=2)
CLASSES = CONFIG.classes
DEPTH, BOUND_DEPTH = 16, 20
"""Cycles of most proofs, and those in which the longest wait of a class ends."""
LOOK_CYCLES = 4
"""Cycles of a look at a class."""
ELEMENT = {
    "opcode": 2,
    "kind": 3,
    "vl": 2,
    "tag": 2,
    "destination": 1,
    "destination_qp": 1,
    "bytes": 8,
    "region": 1,
}
"""Fields of an element that are free, and how many low bits of each."""
SETUP = {
    "open": 1,
    "connected": 1,
    "destination": 1,
    "destination_qp": 1,
    "vls": 2,
    "send_queue": 1,
    "life": 1,
}
"""Fields of a queue pair's set-up that are free, and how many low bits of each."""


def mutants(*found):
    """Parameters of mutants, of which `make test` has only the first."""
    return [pytest.param(*one, marks=[] if i == 0 else [pytest.mark.full]) for i, one in enumerate(found)]


def scheduler_spec(component):
    """Any elements, set-ups, routes and answers of injection control; none of them changes under a message."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(CONFIG)
    spec.inputs(dut, "setup_valid", "route_valid", "room", "control.allow", "control.never", "message.ready")
    spec.inputs(dut, "held", "suspended", "resumable", "resume_ready", "end.ready")
    m.d.comb += [
        dut.setup.qp.eq(spec.free(1, "setup_qp")),
        *(dut.setup[name].eq(spec.free(bits, f"setup_{name}")) for name, bits in SETUP.items()),
        dut.route.node.eq(spec.free(1, "route_node")),
        dut.route.known.eq(spec.free(1, "route_known")),
        dut.route.route.eq(spec.free(2, "route_route")),
        dut.drop_classes.eq(spec.constant(CLASSES, "drop_classes")),
        Assume(~(dut.control.allow & dut.control.never)),
    ]

    # The oldest element of each class stands until it is taken, and a message is suspended until it goes on.
    works = Array(Signal(WORK_LAYOUT, name=f"work_{i}") for i in range(CLASSES))
    for i, work in enumerate(works):
        stands, before = Signal(name=f"stands_{i}"), Signal(WORK_LAYOUT, name=f"before_{i}")
        rests = Signal(name=f"rests_{i}")
        m.d.comb += [
            work.qp.eq(spec.free(1, f"qp_{i}")),
            work.failed.eq(spec.free(1, f"failed_{i}")),
            *(work.element[name].eq(spec.free(bits, f"{name}_{i}")) for name, bits in ELEMENT.items()),
            Assume(~stands | (dut.held[i] & (work == before))),
            Assume(~rests | dut.suspended[i]),
        ]
        m.d.sync += [
            stands.eq(dut.held[i] & ~(dut.done & (dut.look == i))),
            rests.eq(dut.suspended[i] & ~(dut.resume & (dut.resume_class == i))),
            before.eq(work),
        ]
    m.d.comb += dut.work.eq(works[dut.look])

    # Queue pairs and routes. A queue pair is opened while none of its messages is held. Any may be closed.
    pairs = Array(Signal.like(dut.setup, name=f"pair_{i}") for i in range(2))
    routes = Array(Signal.like(dut.route, name=f"known_{i}") for i in range(2))
    named = Cat(dut.held[i] & (work.qp == dut.setup.qp) for i, work in enumerate(works)).any()
    with m.If(dut.setup_valid):
        m.d.comb += Assume(~dut.setup.open | ~(named | pairs[dut.setup.qp].open))
        m.d.sync += pairs[dut.setup.qp].open.eq(dut.setup.open)
        with m.If(dut.setup.open):
            m.d.sync += pairs[dut.setup.qp].eq(dut.setup)
    with m.If(dut.route_valid):
        m.d.comb += Assume(~dut.held.any())
        m.d.sync += routes[dut.route.node].eq(dut.route)

    # The message of the class that is chosen, as its element and its queue pair say.
    held, work, pair = Signal(), Signal(WORK_LAYOUT), Signal.like(dut.setup)
    element, node, route = work.element, Signal(), Signal.like(dut.route)
    m.d.comb += [
        held.eq(dut.held.bit_select(dut.look, 1)),
        work.eq(works[dut.look]),
        pair.eq(pairs[work.qp]),
        node.eq(Mux(pair.connected, pair.destination, element.destination)),
        route.eq(routes[node]),
    ]
    status = Signal(CqeStatus)
    good_kind = (element.kind == Kind.DATA) | ((element.kind == Kind.RELEASE) & pair.connected)
    with m.If(work.failed):
        m.d.comb += status.eq(CqeStatus.BUS_ERROR)
    with m.Elif(
        ((element.opcode != Opcode.SEND) & (element.opcode != Opcode.SEND_IMMEDIATE))
        | ~pair.vls.bit_select(element.vl, 1)
        | (element.vl >= CONFIG.link.vls)
        | ~route.known
        | ~good_kind
    ):
        m.d.comb += status.eq(CqeStatus.FORMAT)
    with m.Elif(~pair.connected & (element.bytes > CONFIG.payload_bytes)):
        m.d.comb += status.eq(CqeStatus.TOO_LONG)

    message, end = dut.message.payload, dut.end.payload
    begins, suspended = dut.message.valid, dut.suspended.bit_select(dut.look, 1)
    refused = Signal()  # the message that ends was refused by injection control
    with m.If(dut.done):
        m.d.sync += refused.eq(0)
    with m.Elif(dut.control.refuse):
        m.d.sync += refused.eq(1)
    drops = dut.drop_classes.bit_select(dut.look, 1) | dut.control.never
    m.d.comb += [
        # One begins that may, completed from its queue pair and the routes.
        Assert(dut.control.start == begins),
        Assert(
            ~begins
            | (
                held
                & pair.open
                & (status == CqeStatus.OK)
                & dut.control.allow
                & dut.message.ready
                & dut.room.bit_select(element.vl, 1)
                & ~suspended
            )
        ),
        Assert(
            ~begins
            | (
                (message.qp == work.qp)
                & (message.traffic_class == dut.look)
                & (message.vl == element.vl)
                & (message.kind == element.kind)
                & (message.tag == element.tag)
                & (message.bytes == element.bytes)
                & (message.region == element.region)
                & (message.queue == pair.send_queue)
                & (message.life == pair.life)
                & (message.destination == node)
                & (message.destination_qp == Mux(pair.connected, pair.destination_qp, element.destination_qp))
                & (message.route == route.route)
            )
        ),
        # Another one ends, with the first check that fails, or as it was refused. It is taken once either way.
        Assert(dut.done == (begins | (dut.end.valid & dut.end.ready))),
        Assert(~dut.done | held),
        Assert(~dut.end.valid | ~begins),
        Assert(~dut.control.refuse | (dut.control.ask_valid & ~dut.control.allow & drops)),
        Assert(~(dut.control.ask_valid & ~dut.control.allow & drops) | dut.control.refuse),
        Assert(
            ~dut.end.valid
            | ((end.qp == work.qp) & (end.tag == element.tag) & (end.queue == pair.send_queue) & end.signaled)
        ),
        Assert(
            ~(dut.end.valid & pair.open)
            | (end.status == Mux(refused, CqeStatus.THROTTLED, status)) & (end.status != CqeStatus.OK)
        ),
        # A message goes on that is suspended, and can.
        Assert(
            ~dut.resume
            | (
                dut.resume_ready
                & dut.suspended.bit_select(dut.resume_class, 1)
                & dut.resumable.bit_select(dut.resume_class, 1)
            )
        ),
        Assert(~dut.quiet | ~(dut.held | dut.suspended).any()),
    ]

    # Cycles in which class i could begin, if it were looked at, and in which nobody else goes.
    for i in range(CLASSES):
        could, waits, alone = (
            Signal(name=f"could_{i}"),
            Signal(5, name=f"waits_{i}"),
            Signal(5, name=f"alone_{i}"),
        )
        m.d.comb += could.eq(
            dut.held[i]
            & ~dut.suspended[i]
            & dut.message.ready
            & dut.control.allow
            & dut.room.bit_select(works[i].element.vl, 1)
            & (works[i].element.vl < CONFIG.link.vls)
        )
        with m.If(~could | (dut.done & (dut.look == i))):
            m.d.sync += waits.eq(0)
        with m.Else():
            m.d.sync += waits.eq(waits + 1)
        with m.If(~could | dut.done | dut.resume | dut.end.valid):
            m.d.sync += alone.eq(0)
        with m.Else():
            m.d.sync += alone.eq(alone + 1)
        # One that ends instead is told a cycle after it would have begun.
        m.d.comb += Assert((alone <= LOOK_CYCLES * (CLASSES + i)) | dut.end.valid)
        if i == 0:
            # Class 1 begins before it only if it was being looked at.
            m.d.comb += Assert(~(begins & (dut.look == 1)) | (waits <= LOOK_CYCLES))
    m.d.comb += [
        Cover(
            begins & (dut.look == 1) & dut.held[0] & pair.connected & (message.bytes > CONFIG.payload_bytes)
        ),
        Cover(dut.end.valid & refused & (dut.look == 1)),
        Cover(dut.end.valid & pair.open & (end.status == CqeStatus.TOO_LONG)),
        Cover(dut.resume & (dut.resume_class == 1) & dut.held[0]),
    ]
    return spec


@proof(
    block="Scheduler",
    states="a message begins if it may and as its queue pair says, else ends with the first check; class 0 goes first",
)
def test_messages_begin_in_their_turn(tmp_path):
    prove(scheduler_spec(Scheduler), tmp_path / "bmc", mode="bmc", depth=BOUND_DEPTH)
    prove(scheduler_spec(Scheduler), tmp_path / "cover", mode="cover", depth=DEPTH)


@mutants_of(test_messages_begin_in_their_turn)
@pytest.mark.parametrize(
    ("old", "new"),
    mutants(
        ("reversed(range(classes))", "range(classes)"),
        ("(self.held | self.suspended) & ~looked", "self.held | self.suspended"),
        ("with m.If(~table.open | (status != CqeStatus.OK))", "with m.If(status != CqeStatus.OK)"),
        ("self.room.bit_select(vl, 1) & ~", "~"),
        (" & ~self.suspended.bit_select(chosen, 1)", ""),
        ("with m.Elif(control.never | drops):", "with m.Elif(control.never):"),
        (
            "Mux(table.row.connected, table.row.destination, work.element.destination)",
            "work.element.destination",
        ),
        ("self.resume_ready & self.resumable.bit_select(chosen, 1)", "self.resume_ready"),
        ("~table.row.connected & (element.bytes", "(element.bytes"),
        ("& table.row.vls.bit_select(element.vl, 1)", ""),
        ("((element.kind == Kind.RELEASE) & ~trusted)", "0"),
    ),
)
def test_proof_of_scheduler_catches_mutant(old, new, tmp_path):
    prove(scheduler_spec(mutate(Scheduler, old, new)), tmp_path, mode="bmc", depth=DEPTH, expect="fail")
