"""Proofs of equal turns at the switch allocators: inputs that alone compete for an output go in turns."""

import pytest
from amaranth import Cat, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.router.allocators.allocator import Allocator
from lanikai.hdl.router.allocators.islip import IslipAllocator
from lanikai.hdl.router.allocators.separable import SeparableAllocator
from lanikai.hdl.router.allocators.wavefront import WavefrontAllocator
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

COMPONENTS = {"separable": SeparableAllocator, "islip": IslipAllocator, "wavefront": WavefrontAllocator}
DEPTH = 9
"""Cycles: each of two inputs goes four times, after whatever the third one did."""


def equal_turns(component, name, *, ports=3, vls=2):
    """Two inputs ask for one output, with any of their VLs and without a break, and for no other. The others ask for
    what they like but that output. So the output goes to the two in turns: never twice to one before the other."""
    spec = Spec()
    m = spec.m
    config = RouterConfig(link=LinkConfig(vls=vls, hop_bits=2), ports=ports, allocator=name)
    m.submodules.dut = dut = component(config)
    pair, output = spec.constant(ports, "pair"), spec.constant(ports, "output")
    m.d.comb += [
        Assume(Cat(pair == (1 << a | 1 << b) for a in range(ports) for b in range(a)).any()),
        Assume(Cat(output == 1 << p for p in range(ports)).any()),
    ]
    goes = []
    for i in range(ports):
        asks = [spec.free(vls, f"asks_{i}_{p}") for p in range(ports)]
        m.d.comb += dut.tail[i].eq(spec.free(1, f"tail_{i}"))
        for p in range(ports):
            m.d.comb += [
                dut.request[i][p].eq(asks[p]),
                # A VL asks for one output.
                *(Assume((asks[p] & asks[q]) == 0) for q in range(p)),
                Assume(~pair[i] | (asks[p].any() == output[p])),
                Assume(pair[i] | ~output[p] | ~asks[p].any()),
            ]
        goes.append(Cat(dut.grant[p][i] & output[p] for p in range(ports)).any())
    mine = Cat(goes) & pair
    last = Signal(ports)
    with m.If(mine.any()):
        m.d.sync += last.eq(mine)
    m.d.comb += [
        Assert(mine.any()),
        Assert((mine & (mine - 1)) == 0),
        Assert((mine & last) == 0),
        Cover(last.any() & (mine != last)),
    ]
    return spec


@proof(
    block="Allocator",
    states="two inputs that alone compete for an output have equal turns, with each allocator",
)
@pytest.mark.parametrize("name", COMPONENTS)
def test_turns_at_an_output_are_equal(name, tmp_path):
    prove(equal_turns(COMPONENTS[name], name), tmp_path, mode="bmc", depth=DEPTH)


def on_base(component, old, new):
    """`component` on a mutant of the class that all allocators stand on."""
    own = {
        key: value
        for key, value in vars(component).items()
        if callable(value) or isinstance(value, staticmethod)
    }
    return type(component.__name__, (mutate(Allocator, old, new),), own)


MUTANTS = [
    # An output always prefers the first input; an output's turn does not move, or moves to where it was.
    (on_base, "separable", "arbiter.advance.eq(1)", "arbiter.advance.eq(0)"),
    (on_base, "wavefront", "arbiter.advance.eq(1)", "arbiter.advance.eq(0)"),
    (mutate, "islip", "after_output[p].eq(~(outputs[p] << 1) + 1)", "after_output[p].eq(0)"),
    (mutate, "islip", "after_output[p].eq(~(outputs[p] << 1) + 1)", "after_output[p].eq(~outputs[p] + 1)"),
]


@mutants_of(test_turns_at_an_output_are_equal)
@pytest.mark.parametrize(("change", "name", "old", "new"), MUTANTS)
def test_proof_of_equal_turns_catches_mutant(change, name, old, new, tmp_path):
    spec = equal_turns(change(COMPONENTS[name], old, new), name)
    prove(spec, tmp_path, mode="bmc", depth=DEPTH, expect="fail")
