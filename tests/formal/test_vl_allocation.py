"""Proofs of an output VL's ownership: from head to tail it has one packet, whose release and the next grant never meet
badly.

Beside the stage stands each input VL's state: no packet, one that waits for its output VL, one that has it. Packets
come and end in any cycle, also in the one in which others are given theirs.
"""

import pytest
from amaranth import Cat, Const, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.arbiter.lane_round_robin import LaneRoundRobin
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.router import vl_allocation
from lanikai.hdl.router.scheduler import looks_ahead
from lanikai.hdl.router.vl_allocation import VlAllocationStage
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

PORTS, VLS = 3, 2
CONFIG = RouterConfig(link=LinkConfig(vls=VLS, hop_bits=2), ports=PORTS)
AHEAD = CONFIG.replace(header_lookahead=True)


def ownership(component, *, waits=False, config=CONFIG):
    """The ownership of an output VL.

    `waits`: also that a packet waits for at most one packet of each other input (from reset; not by induction). With
    look-ahead a packet may come while the one before it has its output VL. It is given its own in the cycle in which a
    tail leaves.
    """
    spec = Spec()
    m, ports = spec.m, range(PORTS)
    m.submodules.dut = dut = component(config)
    waiting, owning = ([Signal(VLS, name=f"{name}_{i}") for i in ports] for name in ("waiting", "owning"))
    ahead = Const(looks_ahead(config))
    owned = [[Signal(range(PORTS), name=f"owned_{i}_{v}") for v in range(VLS)] for i in ports]
    outputs = [[Signal(range(PORTS), name=f"output_{i}_{v}") for v in range(VLS)] for i in ports]
    for i in ports:
        comes, ends = spec.free(VLS, f"comes_{i}"), spec.free(VLS, f"ends_{i}")
        goal = [spec.free(range(PORTS), f"goal_{i}_{v}") for v in range(VLS)]
        m.d.comb += [
            # A packet comes where none waits, and ends where it has its output VL.
            Assume((comes & (waiting[i] | Mux(ahead, 0, owning[i]))) == 0),
            Assume((ends & ~owning[i]) == 0),
            dut.done[i].eq(ends),
            Assert((dut.taken[i] & owning[i] & ~ends) == 0),
            Assert(ahead | ((waiting[i] & owning[i]) == 0)),
            Assert((dut.taken[i] & ~waiting[i]) == 0),
            Assert(dut.held[i] == owning[i]),
        ]
        m.d.sync += [
            waiting[i].eq((waiting[i] | comes) & ~dut.taken[i]),
            owning[i].eq((owning[i] & ~ends) | dut.taken[i]),
        ]
        for v in range(VLS):
            m.d.comb += [Assume(goal[v] < PORTS), Assert(outputs[i][v] < PORTS)]
            with m.If(comes[v]):
                m.d.sync += outputs[i][v].eq(goal[v])
            with m.If(dut.taken[i][v]):
                m.d.sync += owned[i][v].eq(outputs[i][v])
        for p in ports:
            m.d.comb += [
                dut.want[i][p].eq(waiting[i] & Cat(output == p for output in outputs[i])),
                Assert(dut.holds[i][p] == (owning[i] & Cat(output == p for output in owned[i]))),
            ]
    who, lane, place = (
        spec.constant(range(PORTS), "who"),
        spec.constant(range(VLS), "lane"),
        Signal(range(PORTS)),
    )
    passed = Signal(range(PORTS + 1))
    waits_now, served_now, given_now = Signal(), Signal(), Signal()
    m.d.comb += Assume(who < PORTS)
    for i in ports:
        for v in range(VLS):
            with m.If((who == i) & (lane == v)):
                m.d.comb += [
                    place.eq(outputs[i][v]),
                    waits_now.eq(waiting[i][v]),
                    served_now.eq(dut.taken[i][v]),
                ]
    for p in ports:
        for v in range(VLS):
            owners = Cat(dut.holds[i][p][v] for i in ports)
            # Who has another output VL waits until that packet has gone.
            wanted = Cat(dut.want[i][p][v] & (~owning[i][v] | dut.holds[i][p][v]) for i in ports)
            ended = (owners & Cat(dut.done[i][v] for i in ports)).any()
            given = Cat(dut.want[i][p][v] & dut.taken[i][v] for i in ports)
            m.d.comb += [
                Assert((owners & (owners - 1)) == 0),
                Assert((given & (given - 1)) == 0),
                # A free output VL, with look-ahead one that is set free now, is given in the cycle in which it is
                # asked for.
                Assert((owners.any() & ~(ended & ahead)) | (given.any() == wanted.any())),
                Cover(ended & wanted.any()),
            ]
            with m.If((place == p) & (lane == v)):
                m.d.comb += given_now.eq(given.any())
    if waits:
        m.d.sync += passed.eq(Mux(waits_now & ~served_now, passed + given_now, 0))
        m.d.comb += Assert(passed < PORTS)
    return spec


@proof(block="VlAllocationStage", states="an output VL has one owner from head to tail")
@pytest.mark.parametrize("config", [CONFIG, AHEAD], ids=["plain", "look-ahead"])
def test_an_output_vl_has_one_owner_from_head_to_tail(config, tmp_path):
    prove(ownership(VlAllocationStage, config=config), tmp_path / "ever", depth=2)
    prove(ownership(VlAllocationStage, config=config), tmp_path / "cover", mode="cover", depth=6)


@proof(block="VlAllocationStage", states="a packet waits for at most one of each other input")
def test_a_packet_waits_for_one_of_each_other_input(tmp_path):
    prove(ownership(VlAllocationStage, waits=True), tmp_path, mode="bmc", depth=11)


@mutants_of(test_an_output_vl_has_one_owner_from_head_to_tail)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Given twice; a release that is lost, or that takes a grant with it.
        ("self.want[i][p] & ~busy", "self.want[i][p]"),
        ("(self.holds[i][p] & ~self.done[i]) | turns.grant[i]", "self.holds[i][p] | turns.grant[i]"),
        (
            "& ~self.done[i]) | turns.grant[i]",
            "& ~self.done[i]) | Mux(self.done[i].any(), 0, turns.grant[i])",
        ),
    ],
)
def test_proof_of_ownership_catches_mutant(old, new, tmp_path):
    component = mutate(VlAllocationStage, old, new)
    component.elaborate.__globals__["Mux"] = Mux  # the third mutant has one
    prove(ownership(component), tmp_path, mode="bmc", depth=8, expect="fail")


@mutants_of(test_an_output_vl_has_one_owner_from_head_to_tail)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Two output VLs at a time; one that is given while its owner goes on.
        ("self.want[i][p] & (~self.held[i] | self.holds[i][p])", "self.want[i][p]"),
        ("self.holds[i][p] & self.done[i] for i in ports", "self.holds[i][p] for i in ports"),
    ],
)
def test_proof_of_look_ahead_catches_mutant(old, new, tmp_path):
    component = mutate(VlAllocationStage, old, new)
    prove(ownership(component, config=AHEAD), tmp_path, mode="bmc", depth=8, expect="fail")


@mutants_of(test_a_packet_waits_for_one_of_each_other_input)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        # No turns: the first input always wins; two for a lane.
        ("(above[i] & ~served) | taken", "above[i]"),
        ("(above[i] | ~early) & ~taken", "(above[i] | ~early)"),
    ],
)
def test_proof_of_turns_catches_mutant(old, new, tmp_path, monkeypatch):
    monkeypatch.setattr(vl_allocation, "LaneRoundRobin", mutate(LaneRoundRobin, old, new))
    prove(ownership(VlAllocationStage, waits=True), tmp_path, mode="bmc", depth=12, expect="fail")
