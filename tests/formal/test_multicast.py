"""Proofs of output VLs with multicast: one owner from head to tail, passes that hold up nobody, and a bound on waits.

Beside the stage stands what stage 2 keeps: for each input VL the ports that its packet is still to go to. Packets to
any ports come in any cycle in which their VL has none. Passes end in any cycle, and buffers hold what they like.
"""

from functools import reduce
from operator import or_

import pytest
from amaranth import Cat, Const, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.monitors import LinkMonitor
from lanikai.hdl.packet import HEADER_LAYOUT
from lanikai.hdl.router import crossbar, receive, router
from lanikai.hdl.router.multicast import crossing
from lanikai.hdl.router.multicast.sets import set_mark
from lanikai.hdl.router.multicast.vl_allocation import MulticastAllocationStage
from lanikai.hdl.router.router import Router
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

PORTS, VLS = 3, 2
CONFIG = RouterConfig(link=LinkConfig(vls=VLS), ports=PORTS, routing="table", multicast_nodes=PORTS)


def passes(component, *, waits=False):
    """Owners and passes. `waits`: also that a packet waits for at most one of each other input between two passes (from
    reset; not by induction)."""
    spec = Spec()
    m, ports = spec.m, range(PORTS)
    m.submodules.dut = dut = component(CONFIG)
    left = [[Signal(VLS, name=f"left_{i}_{p}") for p in ports] for i in ports]
    owning = [[Signal(VLS, name=f"owning_{i}_{p}") for p in ports] for i in ports]
    for p in ports:
        m.d.comb += dut.occupied[p].eq(spec.free(VLS, f"occupied_{p}"))
    for i in ports:
        comes = [spec.free(VLS, f"comes_{i}_{p}") for p in ports]
        ends, held, some_left = (
            spec.free(VLS, f"ends_{i}"),
            reduce(or_, owning[i]),
            reduce(or_, left[i]),
        )
        m.d.comb += [
            Assume((reduce(or_, comes) & (held | some_left)) == 0),
            Assume((ends & ~held) == 0),
            dut.done[i].eq(ends),
            Assert(dut.held[i] == held),
            Assert(dut.again[i] == (held & some_left)),
        ]
        given = reduce(or_, list(dut.taken[i]))
        m.d.comb += Assert((given & held) == 0)
        for p in ports:
            taken = dut.taken[i][p]
            others = reduce(or_, [dut.taken[i][q] for q in ports if q != p])
            m.d.comb += [
                dut.want[i][p].eq(left[i][p]),
                Assert(dut.holds[i][p] == owning[i][p]),
                Assert((taken & ~left[i][p]) == 0),
                # A pass of more than one port has room at each of them.
                Assert((taken & others & dut.occupied[p]) == 0),
                Cover(taken[0] & others[0]),
                Cover(taken[0] & dut.occupied[p][0]),
            ]
            m.d.sync += [
                left[i][p].eq((left[i][p] & ~taken) | comes[p]),
                owning[i][p].eq((owning[i][p] & ~ends) | taken),
            ]
    waiting: list[list[list]] = []
    for i in ports:
        waiting.append([])
        for v in range(VLS):
            wants = Cat(left[i][p][v] & ~reduce(or_, owning[i])[v] for p in ports)
            lead = Signal(PORTS, name=f"lead_{i}_{v}")
            m.d.comb += lead.eq(wants & (~wants + 1))
            waiting[i].append(lead)
    for p in ports:
        for v in range(VLS):
            owners = Cat(owning[i][p][v] for i in ports)
            given = Cat(dut.taken[i][p][v] for i in ports)
            leads = Cat(waiting[i][v][p] for i in ports)
            m.d.comb += [
                Assert((owners & (owners - 1)) == 0),
                Assert((given & (given - 1)) == 0),
                Assert(~owners.any() | ~given.any()),
                # A free output VL that is somebody's lead is given to one of those who ask.
                Assert(owners.any() | ~leads.any() | given.any()),
            ]
    if waits:
        who, lane = spec.constant(range(PORTS), "who"), spec.constant(range(VLS), "lane")
        passed = Signal(range(PORTS + 1))
        goes_on, another = Signal(), Signal()
        m.d.comb += Assume(who < PORTS)
        for i in ports:
            for v in range(VLS):
                lead = waiting[i][v]
                mine = Cat(dut.taken[i][p][v] for p in ports).any()
                lead_given = Cat(
                    lead[p] & Cat(dut.taken[j][p][v] for j in ports if j != i).any() for p in ports
                )
                with m.If((who == i) & (lane == v)):
                    m.d.comb += [goes_on.eq(lead.any() & ~mine), another.eq(lead_given.any())]
        m.d.sync += passed.eq(Mux(goes_on, passed + another, 0))
        m.d.comb += Assert(passed < PORTS)
    return spec


@proof(
    block="MulticastAllocationStage",
    states="an output VL has one owner; a pass of more than one port has room at each for the whole packet",
)
def test_passes_hold_up_nobody(tmp_path):
    prove(passes(MulticastAllocationStage), tmp_path / "ever", depth=2)
    prove(passes(MulticastAllocationStage), tmp_path / "cover", mode="cover", depth=6)


@proof(
    block="MulticastAllocationStage",
    states="between two passes a packet waits for at most one packet of each other input",
)
def test_a_packet_waits_for_one_of_each_other_input(tmp_path):
    prove(passes(MulticastAllocationStage, waits=True), tmp_path, mode="bmc", depth=9)


@mutants_of(test_passes_hold_up_nobody)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Without the room; beside a lead that has none; a second pass within a pass; a taken output VL.
        (" & ~self.occupied[p] & ~alone", " & ~alone"),
        (" & ~alone)", ")"),
        ("self.want[i][p] & ~self.held[i]", "self.want[i][p]"),
        ("(wants[p] & ~busy[p] & ~self.occupied[p]", "(wants[p] & ~self.occupied[p]"),
    ],
)
def test_proof_of_passes_catches_mutant(old, new, tmp_path):
    component = mutate(MulticastAllocationStage, old, new)
    prove(passes(component), tmp_path, mode="bmc", depth=6, expect="fail")


@mutants_of(test_a_packet_waits_for_one_of_each_other_input)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        # It asks for its lead only where that has room; never for its lead alone.
        ("return [leads[p] | (", "return [leads[p] & ~self.occupied[p] | ("),
        (
            "leads.append(wants[p] & ~before & ~busy[p])",
            "leads.append(wants[p] & ~busy[p] & ~self.occupied[p])",
        ),
    ],
)
def test_proof_of_waits_catches_mutant(old, new, tmp_path):
    component = mutate(MulticastAllocationStage, old, new)
    prove(passes(component, waits=True), tmp_path, mode="bmc", depth=9, expect="fail")


DEPTH = 2
ROUTER = CONFIG.replace(link=LinkConfig(flit_bits=32), input_buffer_flits=DEPTH, output_buffer_flits=DEPTH)
ROUTE = HEADER_LAYOUT["route"].offset
BUSY, BOUND, TOO_SHORT = 2, 26, 12
"""Cycles in which packets begin, and in which all are out after that.

They are 5 of the pipeline, three packets of 2 flits to three outputs one after the other, and the way of the last
credits. `TOO_SHORT` is none: the 6 flits of an output alone take longer from the first cycle on.
"""


def drains(component, *, bound):
    """A router of 3 ports and 1 VL. Each input brings a packet at most, of one or two flits, to any set.

    It begins in the first `BUSY` cycles. Receivers keep what they like until then, and take after that. After `bound`
    cycles more each output has given each flit of the packets to it once, and all credits are home.
    """
    spec, ports = Spec(), range(PORTS)
    m = spec.m
    m.submodules.dut = dut = component(ROUTER)
    last = BUSY + bound
    cycles = Signal(range(last + 1))
    m.d.sync += cycles.eq(Mux(cycles == last, cycles, cycles + 1))
    drain, over = cycles >= BUSY, cycles == last
    goals, comes = [Signal(PORTS, name=f"goal_{i}") for i in ports], []
    for i in ports:
        rx, tx = dut.rx[i], dut.tx[i]
        spec.inputs(
            dut, f"rx.{i}.valid", f"rx.{i}.payload.head", f"rx.{i}.payload.tail", f"tx.{i}.credit_valid"
        )
        chosen, kept = spec.free(PORTS, f"chosen_{i}"), Signal(PORTS, name=f"kept_{i}")
        begun, had = Signal(name=f"begun_{i}"), Signal(name=f"had_{i}")
        home, owed = Signal(2, init=DEPTH, name=f"home_{i}"), Signal(2, name=f"owed_{i}")
        for name, link, depth, senders, receivers in (
            (f"into_{i}", rx, DEPTH, Assume, Assert),
            (f"from_{i}", tx, dut.credit_flits[i], Assert, Assume),
        ):
            m.submodules[name] = monitor = LinkMonitor(ROUTER.link, depth=depth)
            monitor.watch(m, link)
            for check, side in ((senders, "sender"), (receivers, "receiver")):
                m.d.comb += [check(~flag) for flag in monitor.broken(side)]
        m.d.comb += [
            dut.reach[i].eq(1 << i),
            rx.payload.data[ROUTE : ROUTE + PORTS].eq(chosen),
            rx.payload.data[ROUTE + set_mark(ROUTER)].eq(rx.payload.head),
            goals[i].eq(Mux(rx.payload.head, chosen, kept)),
            Assume(~rx.valid | ~rx.payload.head | (~had & chosen.any())),
            Assume(~rx.valid | rx.payload.head | rx.payload.tail),
            Assume(~drain | ~rx.valid | (~rx.payload.head & rx.payload.tail)),
            Assume(~drain | (rx.valid == (begun & (home != 0)))),
            Assume(~drain | (tx.credit_valid == (owed != 0))),
            Assert(~over | (home == DEPTH)),
            # The copy names this node alone.
            Assert(~(tx.valid & tx.payload.head) | (tx.payload.data[ROUTE : ROUTE + PORTS] == 1 << i)),
        ]
        with m.If(rx.valid):
            m.d.sync += [had.eq(1), begun.eq(~rx.payload.tail), kept.eq(goals[i])]
        m.d.sync += [
            home.eq(home + rx.credit_valid - rx.valid),
            owed.eq(owed + tx.valid - tx.credit_valid),
        ]
        comes.append(rx.valid)
    for p in ports:
        inside = Signal(4, name=f"inside_{p}")
        arrived = sum((comes[i] & goals[i][p] for i in ports), Const(0))
        m.d.sync += inside.eq(inside + arrived - dut.tx[p].valid)
        m.d.comb += [Assert(~dut.tx[p].valid | (inside != 0)), Assert(~over | (inside == 0))]
    return spec


@proof(
    block="Router",
    states="with multicast each output gives each flit for it once; all get out, and credits come home",
)
def test_every_copy_gets_out_and_credits_come_home(tmp_path):
    prove(drains(Router, bound=BOUND), tmp_path, mode="bmc", depth=BUSY + BOUND + 2, timeout_s=900)


@mutants_of(test_every_copy_gets_out_and_credits_come_home)
def test_a_bound_that_is_too_short_is_found(tmp_path):
    spec = drains(Router, bound=TOO_SHORT)
    prove(spec, tmp_path, mode="bmc", depth=BUSY + TOO_SHORT + 2, expect="fail", timeout_s=900)


@mutants_of(test_every_copy_gets_out_and_credits_come_home)
@pytest.mark.parametrize(
    ("module", "name", "old", "new"),
    [
        # A credit for each reading of a flit; a set left as it was.
        (receive, "ReceiveStage", "frees = self.pop & ~again", "frees = self.pop"),
        (crossing, "keep_reached", "start + nodes] & reach)", "start + nodes])"),
    ],
)
def test_proof_of_copies_catches_mutant(module, name, old, new, tmp_path, monkeypatch):
    mutant = mutate(getattr(module, name), old, new)
    for user in (router, crossbar):
        if hasattr(user, name):
            monkeypatch.setattr(user, name, mutant)
    prove(
        drains(Router, bound=BOUND),
        tmp_path,
        mode="bmc",
        depth=BUSY + BOUND + 2,
        expect="fail",
        timeout_s=900,
    )
