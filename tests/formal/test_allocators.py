"""Proofs of the switch allocators: a matching of the requests, for ever and from any state.

Proved, too, is what each docstring promises beyond: nothing left over, no first choice turned down, a bound on waiting.
There are mutants of each.
"""

import inspect
from functools import reduce
from operator import or_

import pytest
from amaranth import Cat, Const, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.router.allocators import waits as bounds_of_waits
from lanikai.hdl.router.allocators.allocator import Allocator
from lanikai.hdl.router.allocators.islip import IslipAllocator
from lanikai.hdl.router.allocators.separable import SeparableAllocator
from lanikai.hdl.router.allocators.waits import wait_bound
from lanikai.hdl.router.allocators.wavefront import WavefrontAllocator
from lanikai.hdl.vl_arbiter.base import VlArbiter, lowest_bit
from lanikai.hdl.vl_arbiter.fcfs import FcfsVlArbiter
from lanikai.hdl.vl_arbiter.fixed_priority import FixedPriorityVlArbiter
from lanikai.hdl.vl_arbiter.registry import VL_ARBITERS
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

WEIGHED = "fcfs"
"""Any `vl_arbiter` but round robin: outputs then choose by VL."""

COMPONENTS = {"separable": SeparableAllocator, "islip": IslipAllocator, "wavefront": WavefrontAllocator}

# The normal run proves the shared part for one of them.
ALL_IN_FULL = ["separable", *(pytest.param(name, marks=pytest.mark.full) for name in ("islip", "wavefront"))]


def configuration(name, ports=3, vls=2, **changes):
    """A configuration with as many iterations as ports: iSLIP's matching is maximal then."""
    link = LinkConfig(vls=vls, hop_bits=2)
    return RouterConfig(link=link, ports=ports, allocator=name, allocator_iterations=ports, **changes)


class Play:
    """A play: `spec` with an allocator `dut` in it whose VLs want what they like.

    - `wants[i][v]`: an output; the number of ports for a flit to be thrown away; more for nothing.
    - `served[i][v]`: that VL goes in this cycle.
    - `for_ever`: wants never change.
    """

    def __init__(self, component, config, *others, spec=None, for_ever=False):
        self.spec, self.config = spec or Spec(), config
        m, self.ports, vls = self.spec.m, range(config.ports), config.link.vls
        self.duts = [made(config) for made in (component, *others)]
        self.dut = self.duts[0]
        top = config.ports
        want = self.spec.constant if for_ever else self.spec.free
        self.wants = [[want(3, f"want_{i}_{v}") for v in range(vls)] for i in self.ports]
        tails = [self.spec.free(1, f"tail_{i}") for i in self.ports]
        for number, dut in enumerate(self.duts):
            m.submodules[f"dut_{number}"] = dut
            for i in self.ports:
                m.d.comb += [
                    *(dut.request[i][p].eq(Cat(want == p for want in self.wants[i])) for p in self.ports),
                    dut.alone[i].eq(Cat(want == top for want in self.wants[i])),
                    dut.tail[i].eq(tails[i]),
                ]
                if config.vl_arbiter != "round_robin":
                    # Every VL keeps its number, and has one owner at an output.
                    m.d.comb += dut.offer_vl[i].eq(dut.offer[i])
                    if config.vl_selection != "same":
                        m.d.comb += [number.eq(v) for v, number in enumerate(dut.output_vl[i])]
        if config.vl_arbiter != "round_robin":
            for v in range(vls):
                for p in self.ports:
                    owners = Cat(self.wants[i][v] == p for i in self.ports)
                    m.d.comb += Assume((owners & (owners - 1)) == 0)
        accepted, select = self.dut.accepted, self.dut.select
        self.served = [[accepted[i] & select[i][v] for v in range(vls)] for i in self.ports]

    def given(self, i, dut=None):
        """The outputs that input i is given."""
        return Cat((dut or self.dut).grant[p][i] for p in self.ports)


def matching(component, config):
    """At most one input goes to an output, and one output and one VL belong to an input. Only requests are granted. The
    allocator is never idle."""
    play = Play(component, config)
    m, dut = play.spec.m, play.dut
    for p in play.ports:
        m.d.comb += Assert((dut.grant[p] & (dut.grant[p] - 1)) == 0)
    for i in play.ports:
        given, select = play.given(i), dut.select[i]
        asked = [(dut.request[i][p] & select).any() for p in play.ports]
        m.d.comb += [
            Assert((given & (given - 1)) == 0),
            Assert((select & (select - 1)) == 0),
            *(Assert(~given[p] | asked[p]) for p in play.ports),
            Assert(dut.accepted[i] == (given.any() | (dut.accepted[i] & (select & dut.alone[i]).any()))),
            Assert(~given.any() | dut.accepted[i]),
        ]
    asks = Cat(reduce(or_, dut.request[i]).any() | dut.alone[i].any() for i in play.ports)
    m.d.comb += Assert(Cat(dut.accepted).any() == asks.any())
    return play.spec


class AnyArbiter(VlArbiter):
    """An arbiter that picks whom it likes among those who ask, in every cycle, as all VL arbiters do.

    `test_arbiters` and `test_two_level` prove that of each. So a proof with it holds of each, and of any to come.
    """

    def __init__(self, favours):
        super().__init__(vls=len(favours), control_vl=-1)
        self._favours = favours

    def pick(self, m, requests, tails, grant, advance):
        favoured = requests & self._favours
        m.d.comb += grant.eq(lowest_bit(Mux(favoured.any(), favoured, requests)))


def change_global(monkeypatch, component, name, value):
    """Change `name` of the module that all allocators stand on, as `component` (or a mutant) sees it."""
    module = next(
        vars(base)["_weighed"].__globals__ for base in component.__mro__ if "_weighed" in vars(base)
    )
    monkeypatch.setitem(module, name, value)


def with_any_arbiter(monkeypatch, component, config):
    """A spec for an allocator whose VL arbiters, of each input and output, are `AnyArbiter`s."""
    spec = Spec()
    favours = [spec.free(config.link.vls, f"favours_{number}") for number in range(2 * config.ports)]
    change_global(monkeypatch, component, "vl_scheduler", lambda _, left=favours: AnyArbiter(left.pop()))
    return spec


def maximal(component, config, spec=None):
    """No input that goes nowhere asks for an output that is given to nobody."""
    play = Play(component, config, spec=spec)
    m, dut = play.spec.m, play.dut
    for i in play.ports:
        for p in play.ports:
            left = ~dut.accepted[i] & ~dut.grant[p].any() & dut.request[i][p].any()
            m.d.comb += Assert(~left)
    return play.spec


def keeps_first_choices(component, config):
    """A request that the separable allocator grants is granted too, with the same VL."""
    play = Play(component, config, SeparableAllocator)
    dut, separable = play.duts
    for i in play.ports:
        same = (play.given(i, dut) == play.given(i, separable)) & (dut.select[i] == separable.select[i])
        play.spec.m.d.comb += Assert(~separable.accepted[i] | (dut.accepted[i] & same))
    return play.spec


def patient(component, config, *, cycles, passes=None):
    """Requests that stay until they are served.

    For any input, VL and output, `cycles` has the most cycles, the last one included, that a request may last. "input":
    the input asks. "pair": it asks that output. "vl": that VL asks. `passes`: how often at most the input sends another
    VL to the output that the VL asks for.
    """
    play = Play(component, config)
    m, dut, none, vls = play.spec.m, play.dut, config.ports, config.link.vls
    constants = {"input": range(none), "vl": range(vls), "output": range(none)}
    late_i, late_v, late_p = (play.spec.constant(size, f"late_{name}") for name, size in constants.items())
    m.d.comb += Assume((late_i < none) & (late_v < vls) & (late_p < none))
    waits = {name: Signal(name=f"{name}_waits") for name in ("input", "pair", "vl")}
    passed_by = Signal()
    for i in play.ports:
        here = late_i == i
        asks = [want <= none for want in play.wants[i]]
        stays = [ask & ~served for ask, served in zip(asks, play.served[i], strict=True)]
        for v, want in enumerate(play.wants[i]):
            before, waited = Signal.like(want, name=f"before_{i}_{v}"), Signal(name=f"waited_{i}_{v}")
            m.d.sync += [before.eq(want), waited.eq(stays[v])]
            m.d.comb += Assume(~waited | (want == before))
            with m.If(here & (late_v == v)):
                m.d.comb += [
                    waits["vl"].eq(stays[v]),
                    passed_by.eq(stays[v] & Cat(dut.grant[p][i] & (want == p) for p in play.ports).any()),
                ]
        with m.If(here):
            m.d.comb += waits["input"].eq(Cat(asks).any() & ~dut.accepted[i])
            for p in play.ports:
                with m.If(late_p == p):
                    m.d.comb += waits["pair"].eq(dut.request[i][p].any() & ~dut.grant[p][i])
    for name, most in cycles.items():
        count = Signal(range(most + 2), name=f"{name}_cycles")
        m.d.sync += count.eq(Mux(waits[name], count + 1, 0))
        m.d.comb += [Assert(~waits[name] | (count < most - 1)), Cover(waits[name] & (count == most - 2))]
    if passes is not None:
        count = Signal(range(passes + 2))
        m.d.sync += count.eq(Mux(waits["vl"], count + passed_by, 0))
        m.d.comb += Assert(~passed_by | (count < passes))
    return play.spec


@proof(block="Allocator", states="grants are a matching of requests, and none is idle while anybody asks")
@pytest.mark.parametrize("arbiter", ["fixed_priority", pytest.param("round_robin", marks=pytest.mark.full)])
@pytest.mark.parametrize("name", COMPONENTS)
def test_answers_are_a_matching(name, arbiter, tmp_path):
    prove(matching(COMPONENTS[name], configuration(name, vl_arbiter=arbiter)), tmp_path, depth=2)


@proof(block="Allocator", states="the same with VLs that are parked")
@pytest.mark.parametrize("name", ALL_IN_FULL)
def test_answers_are_a_matching_with_parked_vls(name, tmp_path):
    config = configuration(name, vl_arbiter=WEIGHED, vl_selection="service_level")
    prove(matching(COMPONENTS[name], config), tmp_path, depth=2)


@mutants_of(test_answers_are_a_matching_with_parked_vls)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Two parked VLs for one output; an offer beside a parked VL.
        ("mine[v] & picked.bit_select(self.output_vl[i][v], 1)", "mine[v]"),
        ("won.eq(~turn.any() & (", "won.eq(("),
    ],
)
def test_proof_of_matching_with_parked_vls_catches_mutant(old, new, tmp_path):
    config = configuration("separable", vl_arbiter=WEIGHED, vl_selection="service_level")
    component = on_mutant(SeparableAllocator, old, new)
    prove(matching(component, config), tmp_path, mode="bmc", depth=2, anything="dut_0", expect="fail")


@proof(block="Allocator", states="no output that a free input asks for is idle, whatever the VL arbiters do")
@pytest.mark.parametrize("selection", ["same", "service_level"])
@pytest.mark.parametrize("name", COMPONENTS)
def test_no_output_that_a_free_input_asks_for_is_idle(name, selection, tmp_path, monkeypatch):
    """The proof is for ever, with any VL arbiter: outputs first, and inputs first. iSLIP has one iteration.

    The ports' VL arbiters begin at any state and may do what they like, so one step is enough.
    """
    config = configuration(name, vls=3, vl_arbiter=WEIGHED, vl_selection=selection).replace(
        allocator_iterations=1
    )
    spec = with_any_arbiter(monkeypatch, COMPONENTS[name], config)
    prove(maximal(COMPONENTS[name], config, spec), tmp_path, depth=2)


@proof(
    block="Allocator",
    states="the same with round robin, inputs first",
    like=test_no_output_that_a_free_input_asks_for_is_idle,
)
@pytest.mark.parametrize("iterations", [1, 3])
@pytest.mark.parametrize("name", COMPONENTS)
def test_no_output_that_a_free_input_asks_for_is_idle_in_round_robin(name, iterations, tmp_path):
    config = configuration(name).replace(allocator_iterations=iterations)
    prove(maximal(COMPONENTS[name], config), tmp_path, depth=2)


@proof(
    block="Allocator",
    states="the same with each VL arbiter inside",
    like=test_no_output_that_a_free_input_asks_for_is_idle,
)
@pytest.mark.full
@pytest.mark.parametrize("vl_arbiter", sorted(VL_ARBITERS))
def test_no_output_that_a_free_input_asks_for_is_idle_whatever_the_arbiter(vl_arbiter, tmp_path):
    """The VL arbiters themselves are in it, for 4 cycles from reset on."""
    config = configuration("separable", vl_arbiter=vl_arbiter, vl_table_entries=1)
    prove(maximal(SeparableAllocator, config), tmp_path, mode="bmc", depth=4)


@proof(block="WavefrontAllocator", states="a first choice of the separable allocator is granted too")
def test_wavefront_keeps_first_choices(tmp_path):
    spec = keeps_first_choices(WavefrontAllocator, configuration("wavefront"))
    prove(spec, tmp_path, mode="bmc", depth=6)


def waiting(component, name, ports, vls):
    """The bounds of `name` as its docstring has them, and a depth to look for a wait that exceeds them."""
    config = configuration(name, ports, vls)
    if name == "islip":
        return patient(
            component, config, cycles={"pair": 2 * ports * ports}, passes=vls - 1
        ), 2 * ports**2 + 5
    own, lane = vls * (ports - 1) + 1, vls * (2 * ports - 1) - ports + 1
    return patient(component, config, cycles={"input": own, "vl": lane}), lane + 4


def served_in_time(component, config, bound, spec=None, judged=lambda play, i, v: Const(1)):
    """Saturation: every VL that asks goes on asking for its output. None of those that are `judged` waits longer than
    `bound` cycles."""
    play = Play(component, config, spec=spec, for_ever=True)
    m, most = play.spec.m, config.ports
    for i in play.ports:
        for v, want in enumerate(play.wants[i]):
            waited = Signal(range(bound + 2), name=f"waited_{i}_{v}")
            waits = (want <= most) & ~play.served[i][v] & judged(play, i, v)
            m.d.sync += waited.eq(Mux(waits, waited + 1, 0))
            m.d.comb += Assert(~waits | (waited < bound - 1))
    return play.spec


def never_still(component, config, cycles):
    """Fixed priority under saturation: an output that the first VL of some input asks for is idle for at most `cycles`
    in a row."""
    play = Play(component, config, for_ever=True)
    m, none = play.spec.m, config.ports
    for p in play.ports:
        first = []
        for wants in play.wants:
            before = [reduce(or_, (want <= none for want in wants[:v]), Const(0)) for v in range(len(wants))]
            first += [(want == p) & ~earlier for want, earlier in zip(wants, before, strict=True)]
        idle = Signal(range(cycles + 2), name=f"idle_{p}")
        stands = Cat(*first).any() & ~play.dut.grant[p].any()
        m.d.sync += idle.eq(Mux(stands, idle + 1, 0))
        m.d.comb += Assert(~stands | (idle < cycles))
    return play.spec


@proof(block="Allocator", states="under saturation no VL waits longer than `wait_bound`, outputs first")
@pytest.mark.parametrize("name", ALL_IN_FULL)
def test_under_saturation_nobody_waits_longer_than_the_bound(name, tmp_path):
    """Outputs first, by FCFS. Two VLs ask for an output and an input has two, so the bound is 4 cycles; of 12 from
    reset on."""
    config = configuration(name, vl_arbiter=WEIGHED)
    others = FcfsVlArbiter.wait_bound(2)
    bound = wait_bound(config, at_input=others, at_output=others, slowest=others)
    assert bound == 4
    prove(served_in_time(COMPONENTS[name], config, bound), tmp_path, mode="bmc", depth=12)


@mutants_of(test_under_saturation_nobody_waits_longer_than_the_bound)
def test_proof_of_waits_under_saturation_catches_mutant(tmp_path):
    # Inputs that never count a turn.
    component = on_mutant(SeparableAllocator, "scheduler.advance.eq(follows)", "scheduler.advance.eq(0)")
    spec = served_in_time(component, configuration("separable", vl_arbiter=WEIGHED), 4)
    prove(spec, tmp_path, mode="bmc", depth=12, expect="fail")


PATIENCE = 2
OVERDUE = "Mux(overdue, ready, chosen)"


@proof(block="Allocator", states="no output stands still behind a VL that never goes")
@pytest.mark.parametrize("name", ALL_IN_FULL)
def test_no_output_stands_still_behind_a_vl_that_never_goes(name, tmp_path, monkeypatch):
    """The case has a patience of 2 cycles and 4 VLs, for 9 cycles from reset on."""
    change_global(monkeypatch, COMPONENTS[name], "patience_cycles", lambda ports: PATIENCE)
    config = configuration(name, vls=4, vl_arbiter="fixed_priority")
    prove(never_still(COMPONENTS[name], config, PATIENCE), tmp_path, mode="bmc", depth=9)


@mutants_of(test_no_output_stands_still_behind_a_vl_that_never_goes)
def test_proof_of_progress_catches_mutant(tmp_path, monkeypatch):
    component = on_mutant(SeparableAllocator, OVERDUE, "Mux(0, ready, chosen)")
    change_global(monkeypatch, component, "patience_cycles", lambda ports: PATIENCE)
    config = configuration("separable", vls=4, vl_arbiter="fixed_priority")
    prove(never_still(component, config, PATIENCE), tmp_path, mode="bmc", depth=9, expect="fail")


def behind_offers(component, name, monkeypatch):
    """Inputs first, with a patience of 2 cycles.

    Inputs choose by FCFS, outputs by fixed priority. So a VL has a bound if no lower one asks for its output. It may
    stand behind a VL of its input that never goes.
    """
    config = configuration(name, vl_arbiter=WEIGHED, vl_selection="service_level")
    ports, vls = config.ports, config.link.vls
    arbiters = [kind(vls=vls) for kind in (FcfsVlArbiter, FixedPriorityVlArbiter) for _ in range(ports)]
    change_global(monkeypatch, component, "vl_scheduler", lambda _: arbiters.pop(0))
    change_global(monkeypatch, component, "patience_cycles", lambda ports: PATIENCE)
    monkeypatch.setattr(bounds_of_waits, "patience_cycles", lambda ports: PATIENCE)
    bound = wait_bound(config, at_input=FcfsVlArbiter.wait_bound(vls), at_output=0, slowest=None)
    assert bound == 2 * (PATIENCE + 1) + 2 * (3 + 1 + 2)

    def first_of_its_output(play, i, v):
        others = [play.wants[j][u] == play.wants[i][v] for j in play.ports for u in range(v)]
        return ~Cat(*others, Const(0)).any()

    return served_in_time(component, config, bound, judged=first_of_its_output), bound + 2


@proof(block="Allocator", states="nobody waits behind an offer that never goes, longer than `wait_bound`")
@pytest.mark.full
@pytest.mark.parametrize("name", COMPONENTS)
def test_nobody_waits_behind_an_offer_that_never_goes(name, tmp_path, monkeypatch):
    """The proof covers all that can happen in 2 cycles more than the bound."""
    spec, depth = behind_offers(COMPONENTS[name], name, monkeypatch)
    prove(spec, tmp_path, mode="bmc", depth=depth, timeout_s=600)


@mutants_of(test_nobody_waits_behind_an_offer_that_never_goes)
def test_proof_of_parking_catches_mutant(tmp_path, monkeypatch):
    # An offer is never parked.
    component = on_mutant(SeparableAllocator, "~won & (overdue | offered.any())", "~won & 0")
    spec, depth = behind_offers(component, "separable", monkeypatch)
    prove(spec, tmp_path, mode="bmc", depth=depth, expect="fail")


@proof(
    block="Allocator",
    states="inputs, pairs and VLs wait no longer than each allocator's bound, with round robin",
)
@pytest.mark.parametrize(
    ("name", "ports", "vls"), [("separable", 3, 2), ("wavefront", 3, 2), ("islip", 2, 3)]
)
def test_nobody_waits_longer_than_the_bound(name, ports, vls, tmp_path):
    """The search starts from every state that a few cycles lead to."""
    spec, depth = waiting(COMPONENTS[name], name, ports, vls)
    prove(spec, tmp_path, mode="bmc", depth=depth)


@proof(
    block="SeparableAllocator",
    states="a wait as long as the bound happens",
    like=test_nobody_waits_longer_than_the_bound,
)
def test_waits_as_long_as_the_bound_happen(tmp_path):
    spec = patient(SeparableAllocator, configuration("separable"), cycles={"input": 5})
    prove(spec, tmp_path, mode="cover", depth=12)


def on_mutant(component, old, new):
    """`component` on a mutant of the class that all allocators stand on."""
    own = {name: value for name, value in vars(component).items() if inspect.isfunction(value)}
    return type(component.__name__, (mutate(Allocator, old, new),), own)


MATCHING = [
    # An output for an input that came for another one; two outputs for an input; an output for two inputs.
    (on_mutant, "separable", "arbiter.requests.eq(first)", "arbiter.requests.eq(-1)"),
    (mutate, "islip", "~Cat(*(matched[i][turn].any() for i in ports))", "~Value.cast(0)"),
    (on_mutant, "wavefront", "cells[d] & inputs", "cells[d]"),
    (on_mutant, "separable", "~Cat(*(grant.any() for grant in grants))", "-1"),
]


@mutants_of(test_answers_are_a_matching)
@pytest.mark.parametrize(("change", "name", "old", "new"), MATCHING)
def test_proof_of_matching_catches_mutant(change, name, old, new, tmp_path):
    spec = matching(change(COMPONENTS[name], old, new), configuration(name))
    prove(spec, tmp_path, mode="bmc", depth=4, expect="fail")


@mutants_of(test_no_output_that_a_free_input_asks_for_is_idle)
@pytest.mark.parametrize("name", ALL_IN_FULL)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        # No second choice at all; diagonals are left out that come before the first one, or after it.
        ("cells[d] & inputs", "cells[d] & 0 & inputs"),
        ("if step < size else ~late[d]", "if step < size else late[d]"),
        ("late[d] if step < size", "Const(0) if step < size"),
    ],
)
def test_proof_of_what_is_left_catches_mutant(name, old, new, tmp_path, monkeypatch):
    component = on_mutant(COMPONENTS[name], old, new)
    # With three VLs first choices and an iteration of iSLIP leave something, with two they do not.
    config = configuration(name, vls=3, vl_arbiter=WEIGHED).replace(allocator_iterations=1)
    spec = with_any_arbiter(monkeypatch, component, config)
    prove(maximal(component, config, spec), tmp_path, mode="bmc", depth=4, expect="fail")


@mutants_of(test_wavefront_keeps_first_choices)
def test_proof_of_first_choices_catches_mutant(tmp_path):
    # A grant beyond the first choices takes a turn.
    turns = on_mutant(
        WavefrontAllocator, "scheduler.advance.eq(won)", "scheduler.advance.eq(self.accepted[i])"
    )
    spec = keeps_first_choices(turns, configuration("wavefront"))
    prove(spec, tmp_path, mode="bmc", depth=6, expect="fail")


WAITING = [
    # Outputs always prefer the first input; inputs give up a VL that has lost. Turns of VLs are moved by those for
    # another output; turns are taken without a match.
    (on_mutant, "separable", 3, 2, "arbiter.advance.eq(1)", "arbiter.advance.eq(0)"),
    (on_mutant, "separable", 3, 2, "scheduler.advance.eq(won)", "scheduler.advance.eq(1)"),
    (mutate, "islip", 2, 3, "with m.If(match[p]):", "if True:"),
    (mutate, "islip", 2, 3, "after_input[i].eq(~(accepted << 1) + 1)", "after_input[i].eq(0)"),
]


@mutants_of(test_nobody_waits_longer_than_the_bound)
@pytest.mark.parametrize(("change", "name", "ports", "vls", "old", "new"), WAITING)
def test_proof_of_waits_catches_mutant(change, name, ports, vls, old, new, tmp_path):
    spec, depth = waiting(change(COMPONENTS[name], old, new), name, ports, vls)
    prove(spec, tmp_path, mode="bmc", depth=depth + 8, expect="fail")
