"""The energy budget of an adapter against a plain model, and the control that has it in series with a policy."""

import random

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.config import ConfigError, LinkConfig
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.injection.control import InjectionControl
from lanikai.hdl.hca.injection.policy import SetupKind
from lanikai.hdl.hca.injection.power import POWER_SLOTS, PowerBudget
from support.formal.harness import mutate
from support.hdl.counting import Nearly

SEED = 1
CONFIG = HcaConfig(link=LinkConfig(flit_bits=128, vls=4, hop_bits=2), destinations=4, power_control=True)
CLASSES = 0b101
"""Classes 0 and 2 are held to the budget, class 1 is not."""
FLIT_ENERGY = (100, 230, 7, 60000)
PATH_CYCLES = (5, 9, 0, 30)
BUDGET = 20000


def run(dut, bench):
    async def whole(ctx):
        await bench(ctx, dut)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(whole)
    simulator.run()


async def set_up(ctx, dut, kind, index, value):
    ctx.set(dut.setup, {"kind": kind, "index": index, "value": value})
    ctx.set(dut.setup_valid, 1)
    await ctx.tick()
    ctx.set(dut.setup_valid, 0)


async def set_up_all(ctx, dut, *, budget=BUDGET, classes=CLASSES):
    for node, (energy, cycles) in enumerate(zip(FLIT_ENERGY, PATH_CYCLES, strict=True)):
        await set_up(ctx, dut, SetupKind.FLIT_ENERGY, node, energy)
        await set_up(ctx, dut, SetupKind.PATH_CYCLES, node, cycles)
    await set_up(ctx, dut, SetupKind.POWER_BUDGET, 0, budget)
    await set_up(ctx, dut, SetupKind.POWER_CLASSES, 0, classes)


def ask(ctx, control, traffic_class, node, flits):
    message = {"traffic_class": traffic_class, "destination": node, "flits": flits, "packets": 1, "vl": 0}
    ctx.set(control.ask, message)
    ctx.set(control.ask_valid, 1)


def budget(component=PowerBudget, seed=SEED, cycles=3000):
    """Random messages that begin when they may; energy is added up from the list of those under way."""
    chance = random.Random(seed)
    counts = dict.fromkeys(("begun", "held", "full", "never", "free"), 0)

    async def bench(ctx, dut):
        await set_up_all(ctx, dut)
        # A node without a row.
        await set_up(ctx, dut, SetupKind.FLIT_ENERGY, CONFIG.destinations, 1)
        await set_up(ctx, dut, SetupKind.PATH_CYCLES, CONFIG.destinations, 1)
        under_way = []  # (first cycle without it, energy)
        message, goes = None, False
        for cycle in range(cycles):
            if message is None or goes:
                small = chance.random() < 0.5
                message = (
                    chance.randrange(3),
                    chance.choice((0, 1, 2, 3, 4)),
                    chance.randrange(1, 4) if small else chance.randrange(2, 60),
                )
            traffic_class, node, flits = message
            ask(ctx, dut.control, *message)
            await ctx.delay(1e-9)
            under_way = [one for one in under_way if one[0] > cycle]
            used = sum(energy for _, energy in under_way)
            assert ctx.get(dut.used) == used <= BUDGET, f"seed {seed}, cycle {cycle}"
            assert bool(ctx.get(dut.quiet)) == (not under_way)
            held = CLASSES >> traffic_class & 1
            energy = FLIT_ENERGY[node] * flits if node < 4 else BUDGET + 1
            never = bool(held and energy > BUDGET)
            slots = len(under_way) < POWER_SLOTS
            allow = not held or (not never and used + energy <= BUDGET and slots)
            assert bool(ctx.get(dut.control.never)) == never, f"seed {seed}, cycle {cycle}: {message}"
            assert bool(ctx.get(dut.control.allow)) == allow, f"seed {seed}, cycle {cycle}: {message}"
            counts["free"] += not held
            counts["never"] += never
            counts["full"] += bool(held and not slots)
            counts["held"] += bool(held and not never and not allow)
            goes = never or (allow and chance.random() < 0.8)
            starts = goes and not never
            ctx.set(dut.control.start, starts)
            if starts and held:
                counts["begun"] += 1
                under_way.append((cycle + PATH_CYCLES[node] + flits + 1, energy))
            await ctx.tick()
            ctx.set(dut.control.start, 0)

    run(component(CONFIG), bench)
    assert min(counts.values()) > 0, f"seed {seed}: {counts}"


def test_the_budget_follows_its_rule():
    budget()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.used + energy <= budget", "self.used <= budget"),
        (" & free.any()", ""),
        ("path + control.ask.flits", "control.ask.flits"),
        ("control.ask.flits * flit_energy", "flit_energy"),
        ("(energy > budget) | ", ""),
        ("| (control.ask.destination >= rows)", ""),
        ("begins.eq(control.start & held)", "begins.eq(control.start)"),
        ("- sum(given_back)", "- given_back[0]"),
        ("with m.If(left[i] == 1)", "with m.If(left[i] == 2)"),
        ("~held | (fits", "(fits"),
        ("self.quiet.eq(free.all())", "self.quiet.eq(free.any())"),
    ],
)
def test_a_mutant_of_the_budget_is_caught(old, new):
    with pytest.raises(AssertionError):
        budget(mutate(PowerBudget, old, new))


def test_a_message_that_fits_the_empty_budget_begins_within_the_stated_wait():
    """The budget is taken by the longest message; another one of the same kind waits for it alone."""
    node, flits = 1, 80
    longest = PATH_CYCLES[node] + flits

    async def bench(ctx, dut):
        await set_up_all(ctx, dut)
        ask(ctx, dut.control, 0, node, flits)
        ctx.set(dut.control.start, 1)
        await ctx.tick()
        ctx.set(dut.control.start, 0)
        waited = 0
        while not ctx.get(dut.control.allow):
            await ctx.tick()
            waited += 1
        assert waited == longest

    run(PowerBudget(CONFIG), bench)


def test_a_budget_that_is_set_lower_lets_nothing_in_until_it_holds_again():
    async def bench(ctx, dut):
        await set_up_all(ctx, dut)
        ask(ctx, dut.control, 0, 0, 100)
        ctx.set(dut.control.start, 1)
        await ctx.tick()
        ctx.set(dut.control.start, 0)
        await set_up(ctx, dut, SetupKind.POWER_BUDGET, 0, 400)
        ask(ctx, dut.control, 0, 0, 4)
        for _ in range(100 + PATH_CYCLES[0] - 1):
            assert not ctx.get(dut.control.allow)
            assert not ctx.get(dut.control.never)
            await ctx.tick()
        assert ctx.get(dut.control.allow)
        assert ctx.get(dut.quiet)

    run(PowerBudget(CONFIG), bench)


def test_control_has_policy_and_budget_in_series():
    config = CONFIG.replace(injection="self_tuned")

    async def bench(ctx, dut):
        held, never = Nearly(ctx, dut.held_cycles), Nearly(ctx, dut.never_fits)
        await set_up_all(ctx, dut)
        control = dut.control
        held_cycles = 0
        for throttle in (0, 1):
            ctx.set(dut.side, throttle)
            for traffic_class, flits, fits in ((0, 10, 1), (0, 201, 0), (1, 201, 1)):
                ask(ctx, control, traffic_class, 0, flits)
                await ctx.delay(1e-9)
                assert bool(ctx.get(control.never)) == (not fits)
                assert bool(ctx.get(control.allow)) == bool(fits and not throttle)
                assert ctx.get(dut.held_cycles) == held(held_cycles)
                held_cycles += not ctx.get(control.allow)
                await ctx.tick()
        assert held_cycles == 4
        ctx.set(dut.side, 0)
        # A message that never fits is refused; one whose class does not wait is none of those.
        ask(ctx, control, 0, 0, 201)
        ctx.set(control.refuse, 1)
        await ctx.tick()
        assert ctx.get(dut.never_fits) == never(1)
        ask(ctx, control, 0, 0, 10)
        await ctx.tick()
        assert ctx.get(dut.never_fits) == never(1)
        ctx.set(control.refuse, 0)
        assert ctx.get(dut.quiet)
        ctx.set(control.start, 1)
        await ctx.tick()
        ctx.set(control.start, 0)
        ctx.set(control.ask_valid, 0)
        assert ctx.get(dut.energy_used) == 1000
        assert not ctx.get(dut.quiet)
        before = ctx.get(dut.held_cycles)
        await ctx.tick().repeat(10 + PATH_CYCLES[0])
        assert ctx.get(dut.quiet)
        assert ctx.get(dut.energy_used) == 0
        # Nobody asks: nobody is held.
        assert ctx.get(dut.held_cycles) == before

    run(InjectionControl(config), bench)


def test_what_is_off_has_no_members():
    control = InjectionControl(CONFIG.replace(power_control=False))
    control._MustUse__silence = True
    assert not hasattr(control, "side")
    assert not hasattr(control, "energy_used")
    assert control.side_bits == 0


def test_a_policy_that_is_not_there_is_refused():
    message = r"^HcaConfig\.injection = 'mine': one of alo, none, self_tuned$"
    with pytest.raises(ConfigError, match=message):
        InjectionControl(CONFIG.replace(injection="mine"))
