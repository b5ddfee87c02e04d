"""Proofs of a whole router, 3 ports and 2 VLs, by its links alone: flits, order, credits, and that packets get out.

A router without pauses has a state for each history. So induction would need an account of everything inside, which
differs from form to form of the router. The proofs are for all histories of so many cycles instead.
"""

import pytest
from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from lanikai.hdl.router import router, transmit
from lanikai.hdl.router.credits import Credits
from lanikai.hdl.router.route import RouteStage
from lanikai.hdl.router.router import Router
from support.formal.harness import mutate, prove
from support.formal.registry import mutants_of, proof
from support.formal.whole_router import configuration, drains, faithful

QUICK, LONG = 8, 11
"""Cycles from reset on. A header that comes in cycle 0 goes out in cycle 5, what comes behind it one a cycle.

- 8: what came in 3 cycles at 3 inputs is out. In them each ring of 2 flits has gone round.
- 11: what came in 6 cycles is out. In them a VL's second packet, whose header follows 2 cycles later, is out too.
"""
FORMS = {"plain": {}, "pipelined": {"pipelined": True}}
"""Forms of the router, by what differs in their configuration."""
BUSY, BOUND = 3, 14
"""Cycles in which packets begin, and in which all are out after that.

They are 5 of the pipeline, 3 packets of 2 flits for one output VL with a cycle between them, and the way of the last
credits. What a receiver has kept comes beside. A bound of `TOO_SHORT` cycles is none: the 6 flits alone take 11 from
the first cycle on.
"""
TOO_SHORT = 7


@proof(
    block="Router",
    states="no flit is lost, made, doubled, changed, sent astray or out of order; links' rules are kept",
)
@pytest.mark.parametrize(
    ("depth", "form"),
    [
        (QUICK, "plain"),
        pytest.param(LONG, "plain", marks=pytest.mark.full),
        pytest.param(QUICK, "pipelined", marks=pytest.mark.full),
    ],
)
def test_what_comes_in_goes_out_once_unchanged_in_order(depth, form, tmp_path):
    prove(faithful(Router, configuration(**FORMS[form])), tmp_path, mode="bmc", depth=depth, timeout_s=1500)


@proof(
    block="Router",
    states="two flits of a VL get out, by one output and by two",
    like=test_what_comes_in_goes_out_once_unchanged_in_order,
)
def test_what_the_proof_speaks_of_is_reached(tmp_path):
    prove(faithful(Router, configuration()), tmp_path, mode="cover", depth=QUICK + 5, timeout_s=600)


class Tampered(wiring.Component):
    """A router of whose links one signal is wrong in some cases: `fault` says which."""

    def __init__(self, config, fault):
        self._inside, self._fault = Router(config), fault
        super().__init__(self._inside.signature)
        self.credit_flits = self._inside.credit_flits

    def elaborate(self, platform):
        m = Module()
        m.submodules.inside = inside = self._inside
        links = {
            "rx": (self.rx, inside.rx, ("payload", "valid"), ("credit_vl", "credit_valid")),
            "tx": (inside.tx, self.tx, ("payload", "valid"), ("credit_vl", "credit_valid")),
        }
        m.d.comb += inside.connected.eq(self.connected)
        for source, target, forward, back in links.values():
            for one, other in zip(source, target, strict=True):
                m.d.comb += [getattr(other, name).eq(getattr(one, name)) for name in forward]
                m.d.comb += [getattr(one, name).eq(getattr(other, name)) for name in back]
        self._fault(m, self, inside)
        return m


def seen(m, event):
    """Events before this cycle, up to 3."""
    count = Signal(2)
    with m.If(event & ~count.all()):
        m.d.sync += count.eq(count + 1)
    return count


def lost(m, outside, inside):
    """The second flit of output 1 does not go out."""
    count = seen(m, inside.tx[1].valid)
    m.d.comb += outside.tx[1].valid.eq(inside.tx[1].valid & (count != 1))


def doubled(m, outside, inside):
    """The first flit of output 0 goes out again, where there is room."""
    again = Signal()
    kept = Signal.like(inside.tx[0].payload)
    m.d.sync += [
        again.eq(inside.tx[0].valid & (seen(m, inside.tx[0].valid) == 0)),
        kept.eq(inside.tx[0].payload),
    ]
    with m.If(again & ~inside.tx[0].valid):
        m.d.comb += [outside.tx[0].valid.eq(1), outside.tx[0].payload.eq(kept)]


def made(m, outside, inside):
    """A flit comes from nowhere in cycle 4."""
    time = Signal(4)
    m.d.sync += time.eq(Mux(time.all(), time, time + 1))
    with m.If(time == 4):
        m.d.comb += [outside.tx[2].valid.eq(1), outside.tx[2].payload.head.eq(1)]


def changed(m, outside, inside):
    """The last bit of a tail is turned."""
    flit = inside.tx[2].payload
    with m.If(flit.tail & ~flit.head):
        m.d.comb += outside.tx[2].payload.data[31].eq(~flit.data[31])


def astray(m, outside, inside):
    """Outputs 0 and 1 are exchanged once one of each has gone."""
    swaps = (seen(m, inside.tx[0].valid) != 0) & (seen(m, inside.tx[1].valid) != 0)
    with m.If(swaps):
        for a, b in ((0, 1), (1, 0)):
            m.d.comb += [
                outside.tx[a].valid.eq(inside.tx[b].valid),
                outside.tx[a].payload.eq(inside.tx[b].payload),
            ]


def other_lane(m, outside, inside):
    """A packet of one flit goes out on the other VL."""
    flit = inside.tx[0].payload
    with m.If(flit.head & flit.tail):
        m.d.comb += outside.tx[0].payload.vl.eq(~flit.vl)


def late(m, outside, inside):
    """Flits of VL 0 of output 1 are one behind: each waits for the next one, or for 3 cycles."""
    flit, kept, there = inside.tx[1].payload, Signal.like(inside.tx[1].payload), Signal()
    mine = inside.tx[1].valid & (flit.vl == 0) & flit.head & flit.tail
    with m.If(mine & ~there):
        m.d.sync += [kept.eq(flit), there.eq(1)]
        m.d.comb += outside.tx[1].valid.eq(0)
    with m.Elif(there & ~inside.tx[1].valid):
        m.d.sync += there.eq(0)
        m.d.comb += [outside.tx[1].valid.eq(1), outside.tx[1].payload.eq(kept)]


def no_credit(m, outside, inside):
    """The first credit of an input comes twice."""
    again = Signal()
    m.d.sync += again.eq(outside.rx[0].credit_valid & (seen(m, outside.rx[0].credit_valid) == 0))
    with m.If(again):
        m.d.comb += outside.rx[0].credit_valid.eq(1)


FAULTS = [lost, doubled, made, changed, astray, other_lane, late, no_credit]


@mutants_of(test_what_comes_in_goes_out_once_unchanged_in_order)
@pytest.mark.parametrize(
    "fault", [pytest.param(one, marks=() if one is astray else pytest.mark.full) for one in FAULTS]
)
def test_proof_of_a_whole_router_catches_a_fault_of_its_links(fault, tmp_path):
    spec = faithful(lambda config: Tampered(config, fault), configuration())
    prove(spec, tmp_path, mode="bmc", depth=LONG, expect="fail", timeout_s=900)


INSIDE = [
    # The last credit is never spent; a packet goes to the next port.
    (transmit, Credits, "(self.available & ~last) | back", "self.available | back"),
    (
        router,
        RouteStage,
        "decision.d.comb += self.found_port.eq(port)",
        "decision.d.comb += self.found_port.eq(port << 1)",
    ),
]


@mutants_of(test_what_comes_in_goes_out_once_unchanged_in_order)
@pytest.mark.full
@pytest.mark.parametrize(("module", "block", "old", "new"), INSIDE)
def test_proof_of_a_whole_router_catches_mutant(module, block, old, new, tmp_path, monkeypatch):
    monkeypatch.setattr(module, block.__name__, mutate(block, old, new))
    spec = faithful(Router, configuration())
    prove(spec, tmp_path, mode="bmc", depth=LONG + 2, expect="fail", timeout_s=900)


@proof(
    block="Router",
    states="every packet gets out, and all credits are home, in a bounded time while receivers take",
)
@pytest.mark.full
def test_every_packet_gets_out(tmp_path):
    spec = drains(Router, configuration(), busy_cycles=BUSY, bound=BOUND)
    prove(spec, tmp_path, mode="bmc", depth=BUSY + BOUND + 1, timeout_s=1500)


@mutants_of(test_every_packet_gets_out)
@pytest.mark.full
@pytest.mark.parametrize("fault", [lost, made])
def test_proof_that_packets_get_out_catches_a_fault(fault, tmp_path):
    spec = drains(lambda config: Tampered(config, fault), configuration(), busy_cycles=BUSY, bound=BOUND)
    prove(spec, tmp_path, mode="bmc", depth=BUSY + BOUND + 1, expect="fail", timeout_s=900)


@mutants_of(test_every_packet_gets_out)
@pytest.mark.full
def test_packets_do_not_get_out_in_fewer_cycles_than_they_need(tmp_path):
    spec = drains(Router, configuration(), busy_cycles=BUSY, bound=TOO_SHORT)
    prove(spec, tmp_path, mode="bmc", depth=BUSY + TOO_SHORT + 1, expect="fail", timeout_s=900)
