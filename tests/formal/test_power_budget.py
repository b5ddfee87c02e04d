"""Proofs of an adapter's energy budget: never above it, all energy is given back, a message that fits begins in time.

They hold for any messages, tables and classes, of small sizes. The budget may be set while nothing is taken; set lower
at any other time it is exceeded until energy comes back, and nothing begins.
"""

import pytest
from amaranth import Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.config import LinkConfig
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.injection.policy import SetupKind
from lanikai.hdl.hca.injection.power import PowerBudget
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

CONFIG = HcaConfig(link=LinkConfig(flit_bits=128, vls=2, hop_bits=1), destinations=2)
MOST_FLITS = 3
SLOTS, CYCLE_BITS, ENERGY_BITS, FLIT_ENERGY_BITS = 2, 3, 5, 2
LONGEST = (1 << CYCLE_BITS - 1) - 1 + MOST_FLITS
"""L of the longest message on the longest way."""


def small(component):
    """The class with few and narrow slots."""
    sizes = {"slots": SLOTS, "cycle_bits": CYCLE_BITS, "energy_bits": ENERGY_BITS}
    return type("Small", (component,), sizes | {"flit_energy_bits": FLIT_ENERGY_BITS})


def budget_spec(component):
    """The block, with a scheduler that starts any message that it allows, at any time."""
    spec = Spec()
    m = spec.m
    dut = small(component)(CONFIG)
    dut._MustUse__silence = True
    m.submodules.dut = dut.elaborate(None)
    control = dut.control
    spec.inputs(dut, "setup_valid", "setup", "control.ask", "control.ask_valid", "control.start")
    begins = control.start
    budget = Signal(ENERGY_BITS)
    new_budget = dut.setup_valid & (dut.setup.kind == SetupKind.POWER_BUDGET)
    with m.If(new_budget):
        m.d.sync += budget.eq(dut.setup.value)
    taken = [Mux(left != 0, energy, 0) for left, energy in zip(dut._left, dut._taken, strict=True)]
    since, before = Signal(range(LONGEST + 1), init=LONGEST), Signal(ENERGY_BITS)
    m.d.sync += [
        since.eq(Mux(begins, 0, Mux(since == LONGEST, LONGEST, since + 1))),
        before.eq(dut.used),
    ]
    waited, asked = Signal(range(LONGEST + 3)), Signal.like(control.ask)
    same = (control.ask == asked) & ~dut.setup_valid
    alone = control.ask_valid & ~control.allow & ~control.never & same
    m.d.sync += [asked.eq(control.ask), waited.eq(Mux(alone, waited + 1, 0))]
    m.d.comb += [
        Assume(control.ask.flits <= MOST_FLITS),
        Assume(~begins | (control.ask_valid & control.allow)),
        Assume(~new_budget | (dut.quiet & ~begins)),
        # The proof's view: what is taken is what the slots have.
        Assert(dut._budget == budget),
        Assert(dut.used == sum(taken)),
        *(Assert((left == 0) | (left <= LONGEST - since)) for left in dut._left),
        Assert(dut.used <= budget),
        # All is given back: nothing has begun for the longest time.
        Assert((since != LONGEST) | (dut.used == 0)),
        Assert(dut.quiet == ~sum(left != 0 for left in dut._left).any()),
        # A message that stays the one that is asked for fits as soon as all is given back.
        Assert(waited <= since + 1),
        Assert(waited <= LONGEST + 1),
        Assert(~control.never | ~control.allow),
        Cover((dut.used == budget) & (budget > 3) & (dut._left[1] == 1)),
        Cover(waited == 4),
    ]
    return spec


@proof(
    block="PowerBudget",
    states="energy taken is never above the budget, and all of it is given back; a message that fits waits for at most "
    "the longest way's cycles while no other begins",
)
def test_the_budget_is_kept(tmp_path):
    prove(budget_spec(PowerBudget), tmp_path, mode="prove", depth=2)


@proof(block="PowerBudget", states="the whole budget is taken; a message waits", like=test_the_budget_is_kept)
def test_the_budget_is_reached(tmp_path):
    prove(budget_spec(PowerBudget), tmp_path, mode="cover", depth=14)


@mutants_of(test_the_budget_is_kept)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.used + energy <= budget", "self.used <= budget"),
        (" & free.any()", ""),
        ("- sum(given_back)", "- given_back[0]"),
        ("with m.If(left[i] == 1)", "with m.If(left[i] == 2)"),
        ("(energy > budget) | ", ""),
    ],
)
def test_a_mutant_of_the_budget_fails(tmp_path, old, new):
    prove(budget_spec(mutate(PowerBudget, old, new)), tmp_path, mode="bmc", depth=14, expect="fail")
