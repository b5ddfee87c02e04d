"""Proofs of stage 3 where packets change their VL, by service level or within their class.

Beside the stage stands each input VL's state: no packet, one that waits for an output VL of its group, one that has it.
"""

from functools import reduce
from operator import or_

import pytest
from amaranth import Array, Cat, Const, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.router.vl_selection import VlSelectionStage, group_bits
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

PORTS, VLS = 2, 3
LEVELS = RouterConfig(
    link=LinkConfig(vls=VLS, hop_bits=2), ports=PORTS, vl_selection="service_level", vl_arbiter="fcfs"
)
CLASSES = LEVELS.replace(vl_selection="any", vl_classes=(0, 1, 1))
CONFIGS = {"level": LEVELS, "class": CLASSES}


def selection(component, config):
    """Packets come where none is, and end where they own an output VL, in any cycle.

    - A packet owns a VL of its group, at its output, from the cycle after it was taken to its tail.
    - No two packets own one output VL, and none changes it.
    - Somebody is taken whenever a packet waits for a group that has a free VL.
    """
    spec = Spec()
    m, ports, groups = spec.m, range(config.ports), config.vl_groups
    vls = range(config.link.vls)
    m.submodules.dut = dut = component(config)
    members = Array([Const(sum(1 << vl for vl in group), len(vls)) for group in groups])
    owners = []  # (owns, port, output VL) of each input VL
    free_for = []
    for i in ports:
        waiting, owning = Signal(len(vls), name=f"waiting_{i}"), Signal(len(vls), name=f"owning_{i}")
        comes, select = spec.free(len(vls), f"comes_{i}"), spec.free(len(vls), f"select_{i}")
        ends = spec.free(1, f"ends_{i}")
        goal, group = spec.free(1, f"goal_{i}"), spec.free(group_bits(config), f"group_{i}")
        done = Signal(len(vls), name=f"done_{i}")
        m.d.comb += [
            Assume((comes & (comes - 1)) == 0),
            Assume((comes & (waiting | owning)) == 0),
            Assume((select & (select - 1)) == 0),
            Assume((select & ~owning) == 0),
            Assume(group < len(groups)),
            done.eq(select & ends.replicate(len(vls))),
            dut.found[i].eq(comes),
            dut.found_port[i].eq(1 << goal),
            dut.found_group[i].eq(group),
            dut.done[i].eq(done),
            dut.select[i].eq(select),
            Assert((dut.taken[i] & ~waiting) == 0),
            Assert((dut.taken[i] & (dut.taken[i] - 1)) == 0),
            Assert(dut.held[i] == owning),
        ]
        m.d.sync += [
            waiting.eq((waiting & ~dut.taken[i]) | comes),
            owning.eq((owning & ~done) | dut.taken[i]),
        ]
        for v in vls:
            port, mine = Signal(name=f"port_{i}_{v}"), Signal.like(group, name=f"group_{i}_{v}")
            with m.If(comes[v]):
                m.d.sync += [port.eq(goal), mine.eq(group)]
            own, kept = dut.output_vl[i][v], Signal(config.link.vl_bits, name=f"kept_{i}_{v}")
            stays = Signal(name=f"stays_{i}_{v}")
            m.d.sync += [kept.eq(own), stays.eq(owning[v] & ~done[v])]
            m.d.comb += [
                *(dut.want[i][p][v].eq(waiting[v] & (port == p)) for p in ports),
                *(Assert(dut.holds[i][p][v] == (owning[v] & (port == p))) for p in ports),
                Assert(~owning[v] | members[mine].bit_select(own, 1)),
                Assert(~stays | (own == kept)),
                Assert(~select[v] | (dut.out_vl[i] == own)),
            ]
            owners.append((owning[v], port, own))
            free_for.append((waiting[v], port, members[mine]))
    busy = []
    for p in ports:
        at_p = [(owns & (port == p)).replicate(len(vls)) & (Const(1) << vl) for owns, port, vl in owners]
        busy.append(reduce(or_, at_p)[: len(vls)])
    for n, (owns, port, vl) in enumerate(owners):
        for others, other_port, other in owners[:n]:
            m.d.comb += Assert(~(owns & others) | (port != other_port) | (vl != other))
    able = Cat(waits & (group & ~Array(busy)[port]).any() for waits, port, group in free_for)
    m.d.comb += [
        Assert(able.any() == Cat(*dut.taken).any()),
        Cover(Cat(*(owns for owns, _, _ in owners)).all()),
    ]
    return spec


QUICK, DEPTH = 6, 9
"""Cycles from reset on.

- 6: a packet of each input is taken, ends, and another one takes its VL.
- 9: three packets come, one a cycle, at each input. They are taken and end, and one more comes after each.
"""


@proof(
    block="VlSelectionStage",
    states="a packet owns one VL of its level or class from head to tail, and is taken at once",
)
@pytest.mark.parametrize(
    ("name", "depth"),
    [
        ("level", QUICK),
        ("class", QUICK),
        pytest.param("level", DEPTH, marks=pytest.mark.full),
        pytest.param("class", DEPTH, marks=pytest.mark.full),
    ],
)
def test_a_packet_owns_a_vl_of_its_group(name, depth, tmp_path):
    prove(
        selection(VlSelectionStage, CONFIGS[name]), tmp_path / "bmc", mode="bmc", depth=depth, timeout_s=900
    )
    if name == "class" or depth == QUICK:
        return  # six packets, one of each input VL, cannot all own a VL: a class has two
    prove(selection(VlSelectionStage, CONFIGS[name]), tmp_path / "cover", mode="cover", depth=DEPTH)


@mutants_of(test_a_packet_owns_a_vl_of_its_group)
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        # A VL outside of the class; one that is taken; a release that is lost; a number that is lost.
        ("class", "free.eq(~busy & mask)", "free.eq(~busy)"),
        ("class", "free.eq(~busy & mask)", "free.eq(mask)"),
        ("level", "(~busy[p] & mask).any()", "(~busy[p] | mask).any()"),
        ("level", "(busy[p] & ~released) | given", "busy[p] | given"),
        ("level", "m.d.sync += place[v].eq(number)", "m.d.sync += place[v].eq(0)"),
        ("level", "eligible.eq(waiting &", "eligible.eq(waiting & 1 &"),
    ],
)
def test_proof_of_selection_catches_mutant(name, old, new, tmp_path):
    spec = selection(mutate(VlSelectionStage, old, new), CONFIGS[name])
    prove(spec, tmp_path, mode="bmc", depth=DEPTH, expect="fail")
