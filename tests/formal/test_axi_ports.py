"""Proofs of the AXI rules (ARM IHI 0022) on both bus ports, against any other side that keeps its own rules.

The rules are those of the monitors. Beside them stand what these ports do within the rules, and what becomes of bytes.
"""

from operator import add

import pytest
from amaranth import Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.monitors import Axi4LiteMonitor, Axi4Monitor
from lanikai.hdl.nic.dma.host_dma import HostDma
from lanikai.hdl.nic.host_port import HostPort
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

BEATS = 2
PLAIN = preset(NicConfig, "tiny", burst_beats=BEATS)
CONFIGS = {
    "plain": PLAIN,
    "follows": PLAIN.replace(host_dma_queue_entries=1, host_dma_bursts=3),
    "bytes": PLAIN.replace(dma_alignment_bytes=1),
    "pipelined": PLAIN.replace(pipelined=True),
    "pipelined bytes, follows": PLAIN.replace(
        pipelined=True, dma_alignment_bytes=1, host_dma_queue_entries=1, host_dma_bursts=3
    ),
}
MOST_BYTES = 20


def counter(m, event, name, bits=4):
    count = Signal(bits, name=name)
    m.d.sync += count.eq(count + event)
    return count


def master_spec(component, config, *, to_host):
    """The host DMA engine in one direction, with transfers of a few bytes at a page's end and elsewhere.

    Answers come at any time after the request that they answer, and are good.
    """
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(config)
    axi, command = dut.axi, dut.start.payload
    names = (
        "start.valid",
        "start.payload",
        "axi.awready",
        "axi.wready",
        "axi.arready",
        "axi.bvalid",
        "axi.rvalid",
    )
    spec.inputs(dut, *names, "axi.rdata", "axi.rlast", "sram.ready", "sram.rdata")
    m.d.comb += [
        Assume(command.to_host == to_host),
        Assume(command.bytes <= MOST_BYTES),
        # Around the end of the first page, and where addresses are small.
        Assume(
            (command.host_address < 16) | ((command.host_address >= 4084) & (command.host_address < 4104))
        ),
    ]
    bus_bytes = config.bus_bits // 8
    most = config.host_dma_bursts
    monitor = Axi4Monitor(axi.signature, outstanding=most)
    spec.keeps("monitor", monitor, axi, "sender")
    for channel in ("aw", "ar"):
        valid, address, beats, size, burst = (
            getattr(axi, f"{channel}{name}") for name in ("valid", "addr", "len", "size", "burst")
        )
        bus_size = bus_bytes.bit_length() - 1
        whole = (burst == 1) & (size == bus_size) & (beats < BEATS) & (address[:bus_size] == 0)
        m.d.comb += Assert(~valid | whole)
    addresses = counter(m, axi.awvalid & axi.awready, "addresses")
    taken = axi.wvalid & axi.wready
    data_bursts = counter(m, taken & axi.wlast, "data_bursts")
    answers = counter(m, axi.bvalid & axi.bready, "answers")
    asked = counter(m, axi.arvalid & axi.arready, "asked")
    read_bursts = counter(m, axi.rvalid & axi.rready & axi.rlast, "read_bursts")
    # No data for which there is not even an address on the bus.
    m.d.comb += Assert(~axi.wvalid | (data_bursts < addresses + axi.awvalid))

    # Exactly the bytes asked for are strobed, in one run of a beat's bytes.
    bits = [axi.wstrb[i] for i in range(bus_bytes)]
    strobed = sum(bits[1:], start=add(bits[0], 0))
    wanted, written = Signal(8), Signal(8)
    begun = dut.start.valid & dut.start.ready
    m.d.sync += [
        wanted.eq(wanted + Mux(begun & command.to_host, command.bytes, 0)),
        written.eq(written + Mux(taken, strobed, 0)),
    ]
    idle = ~dut.busy
    m.d.comb += [
        Assert(~axi.wvalid | (axi.wstrb != 0)),
        Assert(written <= wanted),
        Assert(~idle | (wanted == written)),
        Assert(~idle | (~axi.awvalid & ~axi.wvalid & ~axi.arvalid)),
        Assert(~idle | ((addresses == answers) & (asked == read_bursts) & (data_bursts == addresses))),
    ]
    ended = counter(m, dut.done, "ended")
    m.d.comb += Cover((ended == 1) & ((addresses == 2) | (asked == 2)))
    return spec


DEPTH = 10


@proof(block="HostDma", states="the rules of AXI4 are kept, and exactly the bytes asked for are written")
@pytest.mark.parametrize("to_host", [0, 1], ids=["reads", "writes"])
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == "follows" else pytest.mark.full) for name in CONFIGS],
)
def test_the_master_port_keeps_the_rules(name, to_host, tmp_path):
    spec = master_spec(HostDma, CONFIGS[name], to_host=to_host)
    prove(spec, tmp_path / "bmc", mode="bmc", depth=DEPTH)
    if name == "follows":
        spec = master_spec(HostDma, CONFIGS[name], to_host=to_host)
        prove(spec, tmp_path / "cover", mode="cover", depth=16)


@mutants_of(test_the_master_port_keeps_the_rules)
@pytest.mark.parametrize(
    ("to_host", "old", "new"),
    [
        (0, "Mux(in_page[low:].all(), in_page[:low], 0)", "C(0)"),
        pytest.param(0, "bus_length.eq(beats - 1)", "bus_length.eq(beats)", marks=pytest.mark.full),
        pytest.param(0, "& (~address_valid | address_ready)", "", marks=pytest.mark.full),
        pytest.param(0, "& (all_bursts != most)", "", marks=pytest.mark.full),
        (1, "axi.wlast.eq(data_one)", "axi.wlast.eq(data_left == 2)"),
        (
            1,
            "put.eq(to_bus.out_valid & ~data_none & (~axi.wvalid | axi.wready))",
            "put.eq(to_bus.out_valid)",
        ),
        pytest.param(1, "axi.wstrb.eq(to_bus.out_mask)", "axi.wstrb.eq(-1)", marks=pytest.mark.full),
    ],
)
def test_proof_of_the_master_port_catches_mutant(to_host, old, new, tmp_path):
    spec = master_spec(mutate(HostDma, old, new), CONFIGS["plain"], to_host=to_host)
    prove(spec, tmp_path, mode="bmc", depth=DEPTH, expect="fail")


@mutants_of(test_the_master_port_keeps_the_rules)
@pytest.mark.full
@pytest.mark.parametrize(
    ("to_host", "old", "new"),
    [
        # What a pipelined engine keeps beside its numbers: no beat is left to plan; no data is left.
        (0, "all_planned.eq(command.bytes == 0)", "all_planned.eq(0)"),
        (1, "axi.wlast.eq(data_one)", "axi.wlast.eq(data_left == 2)"),
    ],
)
def test_proof_of_a_pipelined_master_port_catches_mutant(to_host, old, new, tmp_path):
    spec = master_spec(mutate(HostDma, old, new), CONFIGS["pipelined"], to_host=to_host)
    prove(spec, tmp_path, mode="bmc", depth=DEPTH + 2, expect="fail")


SUBORDINATE_DEPTH = 12


def subordinate_spec(component):
    """The host's port before an SRAM, registers and doorbells that answer whenever they like, or at once."""
    spec = Spec()
    m = spec.m
    config = preset(NicConfig, "tiny")
    m.submodules.dut = dut = component(config)
    host = dut.host
    spec.inputs(
        dut, *(f"host.{name}" for name in ("awaddr", "awvalid", "wdata", "wstrb", "wvalid", "bready")),
        "host.araddr", "host.arvalid", "host.rready", "sram.ready", "sram.rdata", "ring.ready", "refused",
        "registers.read_data", "registers.read_mapped", "registers.write_mapped",
    )  # fmt: skip
    # The host may ask for as much as it likes.
    spec.keeps("monitor", Axi4LiteMonitor(host.signature, outstanding=SUBORDINATE_DEPTH), host, "receiver")
    addresses = counter(m, host.awvalid & host.awready, "addresses")
    words = counter(m, host.wvalid & host.wready, "words")
    answers = counter(m, host.bvalid & host.bready, "answers")
    asked = counter(m, host.arvalid & host.arready, "asked")
    told = counter(m, host.rvalid & host.rready, "told")
    # A write acts once: by the SRAM, by a register or by a doorbell, with both of its halves there.
    acts = (
        (dut.sram.valid & dut.sram.write & dut.sram.ready)
        | dut.registers.write
        | (dut.ring.valid & dut.ring.ready)
    )
    done = counter(m, acts, "done")
    complete = Mux(addresses < words, addresses, words)
    m.d.comb += [
        # Good, or an error of the subordinate.
        Assert((host.bresp == 0) | (host.bresp == 2)),
        Assert((host.rresp == 0) | (host.rresp == 2)),
        # No more is under way than this, however the host asks.
        Assert(asked - told <= 1),
        Assert(addresses - answers <= 2),
        Assert(words - answers <= 2),
        Assert(~acts | (done < complete)),
        Cover((answers == 2) & (told == 2)),
    ]
    # Where nothing makes it wait, it answers. A write is answered 2 cycles after its later half or the answer before,
    # a read 3 after its address, and one later if a write has the SRAM.
    eager = spec.constant(1, "eager")
    ready = host.bready & host.rready & dut.sram.ready & dut.ring.ready
    m.d.comb += Assume(~eager | ready)
    for name, waits, answered, limit in (
        ("write", answers != complete, host.bvalid & host.bready, 2),
        ("read", told != asked, host.rvalid & host.rready, 4),
    ):
        waited = Signal(4, name=f"{name}_waited")
        m.d.sync += waited.eq(Mux(waits & ~answered, waited + 1, 0))
        m.d.comb += Assert(~eager | (waited <= limit))
    return spec


@proof(block="HostPort", states="the rules of AXI4-Lite are kept, and every write acts once")
def test_the_subordinate_port_keeps_the_rules(tmp_path):
    prove(subordinate_spec(HostPort), tmp_path / "bmc", mode="bmc", depth=SUBORDINATE_DEPTH)
    prove(subordinate_spec(HostPort), tmp_path / "cover", mode="cover", depth=14)


@mutants_of(test_the_subordinate_port_keeps_the_rules)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("with m.If(host.bready):", "with m.If(1):"),
        ("have_address & have_data & ~host.bvalid", "have_address & ~host.bvalid"),
        pytest.param(
            "have_address & have_data & ~host.bvalid", "have_address & have_data", marks=pytest.mark.full
        ),
        pytest.param("host.arready.eq(~host.rvalid)", "host.arready.eq(1)", marks=pytest.mark.full),
        pytest.param("host.wready.eq(~have_data)", "host.wready.eq(1)", marks=pytest.mark.full),
        pytest.param(
            "with m.If(host.rvalid & host.rready):", "with m.If(host.rvalid):", marks=pytest.mark.full
        ),
    ],
)
def test_proof_of_the_subordinate_port_catches_mutant(old, new, tmp_path):
    prove(
        subordinate_spec(mutate(HostPort, old, new)),
        tmp_path,
        mode="bmc",
        depth=SUBORDINATE_DEPTH,
        expect="fail",
    )
