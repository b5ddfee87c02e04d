"""PowerHerd: a router's energy credits, alone, shared with a neighbour, and inside a router."""

import random

import pytest
from amaranth import Module
from amaranth.sim import Simulator
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.router.power_herd import PowerHerd
from lanikai.hdl.router.router import Router
from support.formal.harness import mutate
from support.hdl.counting import Nearly

SEED = 1
WINDOW, SHARE = 30, 6
WEIGHTS = (1, 7, 5)
CONFIG = RouterConfig(
    link=LinkConfig(flit_bits=32, vls=2, hop_bits=2),
    ports=3,
    input_buffer_flits=4,
    output_buffer_flits=4,
    power_budget=60,
    power_weights=WEIGHTS,
    power_window_cycles=WINDOW,
    power_share=SHARE,
)
WORST = sum(WEIGHTS)


class PlainHerd:
    """The credits of a router in lists: what has crossed, and when what is lent and borrowed ends."""

    def __init__(self):
        self.energy = []
        self.lent, self.borrowed = [0] * 3, [0] * 3  # first cycle without
        self.needs, self.given = False, 0

    def used(self):
        return sum(self.energy[-WINDOW:])

    def needed(self):
        return self.used() + WORST + SHARE * sum(end > len(self.energy) for end in self.lent)

    def limit(self):
        return CONFIG.power_budget + SHARE * sum(end > len(self.energy) for end in self.borrowed)

    def open(self):
        return self.needed() <= self.limit()

    def lends(self, asking):
        if self.needed() + SHARE + WORST > self.limit():
            return 0
        ports = [p for p in range(3) if asking >> p & 1 and self.lent[p] <= len(self.energy)]
        return 1 << ports[0] if ports else 0

    def cycle(self, crossed, waits, lends, given):
        now = len(self.energy)
        self.needs = bool(waits and not self.open())
        self.given = lends
        for p in range(3):
            if lends >> p & 1:
                self.lent[p] = now + 1 + 2 * WINDOW
            if given >> p & 1:
                self.borrowed[p] = now + 1 + WINDOW
        self.energy.append(sum(w for p, w in enumerate(WEIGHTS) if crossed >> p & 1))


def pair(component=PowerHerd, seed=SEED, cycles=4000):
    """Two routers, joined at the port 1 of each. Their loads come and go."""
    chance = random.Random(seed)
    top = Module()
    herds = [component(CONFIG), component(CONFIG)]
    top.submodules.a, top.submodules.b = herds
    for here, there in (herds, herds[::-1]):
        top.d.comb += [
            here.neighbour_needs[1].eq(there.needs),
            here.neighbour_gives[1].eq(there.gives[1]),
        ]
    models = [PlainHerd(), PlainHerd()]
    counts = dict.fromkeys(("lends", "over", "closed", "idle"), 0)

    async def bench(ctx):
        load, left = [0.0, 0.0], 0
        stalls = [Nearly(ctx, herd.stalls) for herd in herds]
        stalled = [0, 0]
        for cycle in range(cycles):
            if not left:
                left = chance.randrange(20, 200)
                load = [chance.choice([0, 0.1, 0.9]) for _ in herds]
            left -= 1
            lends = [models[i].lends(models[1 - i].needs << 1) for i in range(2)]
            steps = []
            for i, (herd, model) in enumerate(zip(herds, models, strict=True)):
                assert bool(ctx.get(herd.open)) == model.open(), f"seed {seed}, cycle {cycle}"
                assert ctx.get(herd.used) == model.used(), f"seed {seed}, cycle {cycle}"
                assert ctx.get(herd.gives) == model.given, f"seed {seed}, cycle {cycle}"
                assert ctx.get(herd.stalls) == stalls[i](stalled[i])
                live = any(end > cycle for end in (*model.lent, *model.borrowed))
                assert bool(ctx.get(herd.quiet)) == (not model.used() and not live)
                asks = [chance.random() < load[i] for _ in range(3)]
                crossed = sum(bool(one) << p for p, one in enumerate(asks)) if model.open() else 0
                ctx.set(herd.waits, any(asks))
                ctx.set(herd.crossed, crossed)
                stalled[i] += any(asks) and not model.open()
                steps.append((crossed, any(asks), lends[i], models[1 - i].given))
                counts["closed"] += not model.open()
                counts["over"] += model.used() > CONFIG.power_budget
                counts["idle"] += bool(ctx.get(herd.quiet))
            counts["lends"] += any(lends)
            await ctx.tick()
            for model, step in zip(models, steps, strict=True):
                model.cycle(*step)
            assert sum(model.used() for model in models) <= 2 * CONFIG.power_budget

    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert min(counts.values()) > 0, f"seed {seed}: {counts}"


def test_credits_are_kept_and_shared():
    """Both routers together are never above both budgets in `WINDOW` cycles, though one alone is above its own."""
    pair()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("needed <= limit", "self.used <= limit"),
        ("energy - gone", "energy"),
        ("self.neighbour_needs & Cat(*(count == 0 for count in lent))", "self.neighbour_needs"),
        ("(lent[p], lends[p], 2 * window)", "(lent[p], lends[p], window)"),
        ("+ share * sum(count != 0 for count in borrowed)", ""),
        ("needed + share + worst <= limit", "needed + worst <= limit"),
        ("Mux(round_once, read.data, 0)", "Mux(round_once, 0, read.data)"),
        ("m.If((self.used != 0) | (energy != 0))", "m.If(energy != 0)"),
    ],
)
def test_a_mutant_of_the_credits_is_caught(old, new):
    with pytest.raises(AssertionError):
        pair(mutate(PowerHerd, old, new))


@pytest.mark.parametrize("weighed", [False, True], ids=["round_robin", "deficit"])
def test_a_router_keeps_its_budget_in_every_window(weighed):
    """Flits that leave inputs are counted by the credits that come back: a router at full load, three outputs."""
    config = CONFIG.replace(power_share=0)
    if weighed:
        config = config.replace(vl_arbiter="deficit")
    router = Router(config, skippable=True)
    energy, sent = [], [0]

    async def bench(ctx):
        credits = {(p, v): 4 for p in range(3) for v in range(2)}
        position = dict.fromkeys(credits, 0)
        owed = {p: [] for p in range(3)}
        used = []
        for cycle in range(900):
            now = 0
            for p in range(3):
                rx, tx = router.rx[p], router.tx[p]
                if ctx.get(rx.credit_valid):
                    # Input p sends to the next port alone.
                    now += WEIGHTS[(p + 1) % 3]
                    credits[p, ctx.get(rx.credit_vl)] += 1
                if ctx.get(tx.valid):
                    sent[0] += 1
                    owed[p].append(ctx.get(tx.payload.vl))
                ctx.set(tx.credit_valid, bool(owed[p]))
                if owed[p]:
                    ctx.set(tx.credit_vl, owed[p].pop())
                vl = cycle & 1
                goes = credits[p, vl] > 0 and (cycle < 700 or position[p, vl] > 0)
                ctx.set(rx.valid, goes)
                if goes:
                    credits[p, vl] -= 1
                    flit = {"data": (p + 1) % 3 << 8, "vl": vl, "head": position[p, vl] == 0}
                    ctx.set(rx.payload, flit | {"tail": position[p, vl] == 5})
                    position[p, vl] = (position[p, vl] + 1) % 6
            energy.append(now)
            used.append(ctx.get(router.power_used))
            assert used[-1] == sum(energy[-WINDOW:]) <= config.power_budget
            await ctx.tick()
        assert ctx.get(router.power_stalls) > 300
        assert ctx.get(router.quiet)
        assert set(credits.values()) == {4}

    simulator = Simulator(router)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    # It comes near the budget, so that the bound is put to the test, and nothing is left.
    assert max(sum(energy[i : i + WINDOW]) for i in range(700)) > config.power_budget - WORST
    assert sum(energy) == sent[0] * sum(WEIGHTS) // 3


def test_nothing_of_it_is_in_a_router_without():
    without = to_verilog(
        Router(CONFIG.replace(power_budget=0, power_share=0, power_weights=())), name="router"
    )
    assert "power" not in without
    assert "power_herd" in to_verilog(Router(CONFIG), name="router")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"power_weights": (1, 2)}, "power_weights has 2 entries: one for each of 3 ports"),
        ({"power_weights": (1, 0, 1)}, "power_weights[1] = 0: 1 to 65535"),
        (
            {"power_budget": 30},
            "power_budget = 30: at least 31, a flit to each output and a share lent to each neighbour",
        ),
        ({"power_budget": 0}, "power_share and power_weights: need a power_budget, whose credits they are"),
    ],
)
def test_credits_that_let_nothing_cross_are_refused(changes, message):
    with pytest.raises(ConfigError) as error:
        CONFIG.replace(**changes)
    assert str(error.value) == f"RouterConfig: {message}"
