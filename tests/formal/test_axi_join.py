"""Proof of the join of several managers: the bus's rules hold behind it, and data and answers go where they belong."""

import pytest
from amaranth import Signal, Value
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.monitors.monitor import held
from lanikai.hdl.nic.dma.axi_join import AxiJoin
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

MANAGERS = 2
PAYLOADS = {
    "aw": ("awaddr", "awlen", "awsize", "awburst"),
    "ar": ("araddr", "arlen", "arsize", "arburst"),
    "w": ("wdata", "wstrb", "wlast"),
}


def kept(m, bus, channel, name):
    """Whether a valid is kept up, with its payload, until it is taken: a bit that must always be up, or is assumed to
    be."""
    payload = (Value.cast(getattr(bus, field)) for field in PAYLOADS[channel])
    dropped, changed = held(
        m, name, getattr(bus, f"{channel}valid"), getattr(bus, f"{channel}ready"), *payload
    )
    return ~(dropped | changed)


def join_spec(component):
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(managers=MANAGERS, data_bits=32, id_bits=0)
    axi, ports = dut.axi, [getattr(dut, f"port_{i}") for i in range(MANAGERS)]
    spec.inputs(
        dut, *(f"axi.{name}" for name in ("awready", "wready", "arready", "bvalid", "bid", "rvalid", "rid"))
    )
    spec.inputs(dut, "axi.rdata", "axi.rlast")
    for i, port in enumerate(ports):
        for channel, fields in PAYLOADS.items():
            # As few bits as tell one from the other.
            spec.inputs(dut, f"port_{i}.{channel}valid")
            m.d.comb += getattr(port, fields[0]).eq(spec.free(3, f"{channel}_{i}"))
            m.d.comb += Assume(kept(m, port, channel, f"{channel}_port_{i}"))
        spec.inputs(dut, f"port_{i}.wlast", f"port_{i}.bready", f"port_{i}.rready")
    for channel in PAYLOADS:
        m.d.comb += Assert(kept(m, axi, channel, f"{channel}_joined"))

    # Addresses: each that was taken comes out next, with its manager's number; data in the same order.
    for channel in ("aw", "ar"):
        taken, manager, address = Signal(), Signal(), Signal(32)
        for i, port in enumerate(ports):
            with m.If(getattr(port, f"{channel}valid") & getattr(port, f"{channel}ready")):
                m.d.comb += taken.eq(1)
                m.d.sync += [manager.eq(i), address.eq(getattr(port, f"{channel}addr"))]
        out, ready = getattr(axi, f"{channel}valid"), getattr(axi, f"{channel}ready")
        under_way = Signal(name=f"{channel}_under_way")
        m.d.sync += under_way.eq(taken | (under_way & ~ready))
        m.d.comb += [
            Assert(out == under_way),
            Assert(~out | (getattr(axi, f"{channel}addr") == address)),
            Assert(~out | (getattr(axi, f"{channel}id") == manager)),
            Assert(~(getattr(ports[0], f"{channel}ready") & getattr(ports[1], f"{channel}ready"))),
        ]
    # The nth write burst, in the order of addresses, is whose address was the nth.
    nth = spec.constant(3, "nth")
    addresses, bursts, whose = Signal(4), Signal(4), Signal()
    for i, port in enumerate(ports):
        with m.If(port.awvalid & port.awready):
            m.d.sync += addresses.eq(addresses + 1)
            with m.If(addresses == nth):
                m.d.sync += whose.eq(i)
    passes = axi.wvalid & axi.wready
    with m.If(passes & axi.wlast):
        m.d.sync += bursts.eq(bursts + 1)
    with m.If(axi.wvalid):
        m.d.comb += Assert(bursts < addresses)
        for i, port in enumerate(ports):
            with m.If((bursts == nth) & (whose == i)):
                m.d.comb += Assert(port.wvalid & (port.wdata == axi.wdata) & (port.wlast == axi.wlast))
    for i, port in enumerate(ports):
        m.d.comb += [
            # Answers go to the manager that they name, and are taken when it takes them.
            Assert(port.bvalid == (axi.bvalid & (axi.bid == i))),
            Assert(port.rvalid == (axi.rvalid & (axi.rid == i))),
            Assert(~(axi.bvalid & (axi.bid == i)) | (axi.bready == port.bready)),
            Assert(~(axi.rvalid & (axi.rid == i)) | (axi.rready == port.rready)),
            Assert(port.rdata == axi.rdata),
        ]
    # Data never waits for its address to be taken, nor one manager for the other's answers.
    m.d.comb += [
        Cover(passes & axi.awvalid & ~axi.awready),
        Cover((bursts == 2) & (whose == 1) & (nth == 1)),
    ]
    return spec


@proof(block="AxiJoin", states="the rules of AXI are kept, and no manager gets another's answers")
def test_the_join_keeps_the_rules_and_mixes_nothing_up(tmp_path):
    prove(join_spec(AxiJoin), tmp_path / "bmc", mode="bmc", depth=8, timeout_s=300)


@proof(
    block="AxiJoin", states="the same in more cycles", like=test_the_join_keeps_the_rules_and_mixes_nothing_up
)
@pytest.mark.full
def test_the_join_in_more_cycles(tmp_path):
    prove(join_spec(AxiJoin), tmp_path / "bmc", mode="bmc", depth=16, timeout_s=1800)
    prove(join_spec(AxiJoin), tmp_path / "cover", mode="cover", depth=12, timeout_s=300)


MUTANTS = [
    ("order.r_en.eq(axi.wvalid & axi.wready & axi.wlast)", "order.r_en.eq(axi.wvalid & axi.wready)"),
    ("taken.eq(~valid & room & arbiter.requests.any())", "taken.eq(room & arbiter.requests.any())"),
    ("order.r_rdy & (order.r_data == i)", "order.r_rdy"),
    ('getattr(axi, f"{channel}valid") & mine', 'getattr(axi, f"{channel}valid")'),
    ("m.d.comb += chosen.eq(i)", "m.d.comb += chosen.eq(0)"),
]


@mutants_of(test_the_join_keeps_the_rules_and_mixes_nothing_up)
@pytest.mark.parametrize(
    ("old", "new"),
    [pytest.param(*mutant, marks=[pytest.mark.full] if i > 0 else []) for i, mutant in enumerate(MUTANTS)],
)
def test_proof_of_join_catches_mutant(old, new, tmp_path):
    prove(join_spec(mutate(AxiJoin, old, new)), tmp_path, mode="bmc", depth=9, expect="fail", timeout_s=600)
