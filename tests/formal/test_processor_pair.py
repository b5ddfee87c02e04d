"""Proofs of the parts that two processors of a card share: turns at the registers, and locks. Then one on the parts
that VLs have whole."""

import pytest
from amaranth import Array, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.nic.link_port.vl_count import VlCount
from lanikai.hdl.nic.processor.pair import BankJoin, PairedLocks
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof


def mutants(*found):
    """Parameters of mutants, of which `make test` has only the first."""
    return [pytest.param(*one, marks=[pytest.mark.full] if i else []) for i, one in enumerate(found)]


def join_spec(component):
    """Two processors that hold an access until it is taken, and the bank that they reach."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component()
    ports = [dut.port_0, dut.port_1]
    for name in ("read_data", "read_mapped", "write_mapped"):
        spec.inputs(dut, f"bank.{name}")
    wants = [Signal(name=f"wants_{i}") for i in range(2)]
    for i, port in enumerate(ports):
        for name in ("read", "write", "read_offset", "write_offset", "write_data"):
            spec.inputs(dut, f"port_{i}.{name}")
        taken, other = dut.ready[i], dut.ready[1 - i]
        m.d.comb += [Assume(~(port.read & port.write)), wants[i].eq(port.read | port.write)]
        # Held until taken; and passed over by one access of the other at most.
        waited, passed = Signal(name=f"waited_{i}"), Signal(name=f"passed_{i}")
        m.d.sync += [waited.eq(wants[i] & ~taken), passed.eq(wants[i] & ~taken & other)]
        m.d.comb += [
            Assume(~waited | wants[i]),
            Assert(~taken | wants[i]),
            Assert(~passed | taken),
            Assert(~wants[i] | taken | other),
            # The bank does what the one whose turn it is asked for, and the data are for all.
            Assert(~taken | (dut.who == i)),
            *(
                Assert(~taken | (getattr(dut.bank, name) == getattr(port, name)))
                for name in ("read", "write", "read_offset", "write_offset", "write_data")
            ),
            Assert(port.read_data == dut.bank.read_data),
            Assert(port.read_mapped == dut.bank.read_mapped),
        ]
    m.d.comb += [
        Assert(~dut.ready.all()),
        # Nothing reaches the bank that was not taken.
        Assert(~(dut.bank.read | dut.bank.write) | dut.ready.any()),
        Cover(dut.ready[1] & wants[0] & (dut.port_1.write_data == 5)),
    ]
    return spec


@proof(block="BankJoin", states="no access is lost, and neither processor starves")
def test_turns_lose_no_access_and_starve_nobody(tmp_path):
    prove(join_spec(BankJoin), tmp_path, depth=3)
    prove(join_spec(BankJoin), tmp_path / "cover", mode="cover", depth=4)


@mutants_of(test_turns_lose_no_access_and_starve_nobody)
@pytest.mark.parametrize(
    ("old", "new"),
    mutants(
        # Fixed priority either way; both at once; the other's word.
        ("wants[1] & (~wants[0] | ~last)", "wants[1] & ~wants[0]"),
        ("wants[1] & (~wants[0] | ~last)", "wants[1]"),
        ("Cat(wants[0] & ~self.who, self.who)", "Cat(wants[0], self.who)"),
        ("Mux(self.who, getattr(ports[1], name), getattr(ports[0], name))", "getattr(ports[0], name)"),
    ),
)
def test_proof_of_turns_catches_mutant(old, new, tmp_path):
    prove(join_spec(mutate(BankJoin, old, new)), tmp_path, mode="bmc", depth=5, expect="fail")


def locks_spec(component):
    """Any writes of both; the lock and the word that each should have."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component()
    spec.inputs(dut, "who", "write", "take", "free", "tell", "word")
    lock = spec.constant(3, "lock")
    holds = [Signal(name=f"holds_{i}") for i in range(2)]
    words = [Signal(32, name=f"word_{i}") for i in range(2)]
    takes, frees = dut.take.bit_select(lock, 1), dut.free.bit_select(lock, 1)
    for i in range(2):
        mine = dut.who == i
        with m.If(dut.write & mine):
            m.d.sync += holds[i].eq(Mux(takes, ~holds[1 - i], holds[i] & ~frees))
        with m.If(dut.tell & mine):
            m.d.sync += words[i].eq(dut.word)
        m.d.comb += [
            Assert(~mine | (dut.mine.bit_select(lock, 1) == holds[i])),
            Assert(~mine | (dut.others.bit_select(lock, 1) == holds[1 - i])),
            Assert(~mine | (dut.told == words[1 - i])),
            Assert(dut.signal[i] == (dut.tell & ~mine)),
        ]
    m.d.comb += [Assert(~(holds[0] & holds[1])), Cover(holds[1] & dut.write & ~dut.who & takes)]
    return spec


@proof(block="PairedLocks", states="a lock is one processor's at a time")
def test_a_lock_is_one_processors_at_a_time(tmp_path):
    prove(locks_spec(PairedLocks), tmp_path, mode="bmc", depth=8)
    prove(locks_spec(PairedLocks), tmp_path / "cover", mode="cover", depth=6)


@mutants_of(test_a_lock_is_one_processors_at_a_time)
@pytest.mark.parametrize(
    ("old", "new"),
    mutants(
        ("(self.take & ~self.others)", "self.take"),
        ("(self.mine & ~self.free)", "self.mine"),
        ("self.told.eq(words[~self.who])", "self.told.eq(words[self.who])"),
        ("Mux(self.who, 0b01, 0b10)", "0b11"),
    ),
)
def test_proof_of_locks_catches_mutant(old, new, tmp_path):
    prove(locks_spec(mutate(PairedLocks, old, new)), tmp_path, mode="bmc", depth=8, expect="fail")


MOST = 3


def count_spec(component):
    """Plain counters beside the pointers, for two VLs that keep to the bounds."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(vls=2, most=MOST)
    spec.inputs(dut, "add", "add_vl", "take", "take_vl")
    counts = Array(Signal(range(MOST + 1), name=f"count_{vl}") for vl in range(2))
    m.d.comb += [
        Assume(~dut.add | (counts[dut.add_vl] < MOST)),
        Assume(~dut.take | (counts[dut.take_vl] > 0)),
        Cover((counts[1] == MOST) & (counts[0] == 0)),
    ]
    for vl in range(2):
        count = counts[vl]
        m.d.sync += count.eq(count + (dut.add & (dut.add_vl == vl)) - (dut.take & (dut.take_vl == vl)))
        m.d.comb += Assert(dut.any[vl] == (count != 0))
    return spec


@proof(block="VlCount", states="VLs that hold a whole packet are known")
def test_vls_with_whole_packets_are_known(tmp_path):
    prove(count_spec(VlCount), tmp_path, mode="bmc", depth=12)
    prove(count_spec(VlCount), tmp_path / "cover", mode="cover", depth=8)


@mutants_of(test_vls_with_whole_packets_are_known)
@pytest.mark.parametrize(
    ("old", "new"),
    mutants(
        ("(self.any & ~none) | more", "(self.any | more) & ~none"),
        ("taken.following == added.read[0]", "taken.here == added.read[0]"),
        ("added.read_vl[0].eq(self.take_vl)", "added.read_vl[0].eq(self.add_vl)"),
    ),
)
def test_proof_of_count_catches_mutant(old, new, tmp_path):
    prove(count_spec(mutate(VlCount, old, new)), tmp_path, mode="bmc", depth=12, expect="fail")
