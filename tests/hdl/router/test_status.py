"""Status outputs of a router: free VLs of its outputs, full input buffers."""

import random

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.router.router import Router

LINK = LinkConfig(flit_bits=32, vls=2, hop_bits=2)
CONFIG = RouterConfig(link=LINK, ports=3, input_buffer_flits=4, output_buffer_flits=2, status_outputs=True)
GRANT_CYCLES = 4
"""From the header on the input link to the register of its output VL's owner (`Router`)."""


def run(config, body):
    router = Router(config, skippable=True)

    async def bench(ctx):
        await body(ctx, router)

    simulator = Simulator(router)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def status(ctx, router):
    ports = range(router.config.ports)
    return (
        [ctx.get(router.none_free[p]) for p in ports],
        [ctx.get(router.some_taken[p]) for p in ports],
        ctx.get(router.full_buffers),
    )


async def send(ctx, router, port, to, *, vl=0, head=1, tail=1):
    """A flit on an input link, in one cycle."""
    ctx.set(router.rx[port].valid, 1)
    ctx.set(router.rx[port].payload, {"data": to << 8, "vl": vl, "head": head, "tail": tail})
    await ctx.tick()
    ctx.set(router.rx[port].valid, 0)


IDLE = ([0, 0, 0], [0, 0, 0], 0)


@pytest.mark.parametrize("changes", [{}, {"vl_selection": "any"}])
def test_a_vl_is_taken_from_its_grant_until_its_tail_is_on_the_link(changes):
    async def body(ctx, router):
        assert status(ctx, router) == IDLE
        await send(ctx, router, 0, 1, tail=0)
        seen = [status(ctx, router)[1]]
        while len(seen) < 20:
            await ctx.tick()
            seen.append(status(ctx, router)[1])
            # The header has gone; the packet's VL is taken, and the router is not quiet.
            assert len(seen) < GRANT_CYCLES or not ctx.get(router.quiet)
        assert seen.index([0, 1, 0]) == GRANT_CYCLES - 1
        assert all(one == [0, 1, 0] for one in seen[GRANT_CYCLES - 1 :])
        await send(ctx, router, 0, 1, head=0)
        while not ctx.get(router.tx[1].valid):
            assert status(ctx, router)[1] == [0, 1, 0]
            await ctx.tick()
        assert status(ctx, router)[1] == [0, 1, 0]
        await ctx.tick()
        assert status(ctx, router) == IDLE
        assert ctx.get(router.quiet)

    run(CONFIG.replace(**changes), body)


@pytest.mark.parametrize("changes", [{}, {"vl_selection": "any"}])
def test_no_vl_is_free_where_packets_own_them_all(changes):
    async def body(ctx, router):
        await send(ctx, router, 0, 2, vl=0, tail=0)
        await send(ctx, router, 1, 2, vl=1, tail=0)
        await ctx.tick().repeat(10)
        assert status(ctx, router) == ([0, 0, 1], [0, 0, 1], 0)
        await send(ctx, router, 1, 2, vl=1, head=0)
        await ctx.tick().repeat(10)
        assert status(ctx, router) == ([0, 0, 0], [0, 0, 1], 0)

    run(CONFIG.replace(**changes), body)


def test_a_vl_without_a_credit_is_taken_though_nobody_owns_it():
    async def body(ctx, router):
        for flit in range(CONFIG.input_buffer_flits):
            await send(ctx, router, 0, 1, head=flit == 0, tail=flit == CONFIG.input_buffer_flits - 1)
        await ctx.tick().repeat(20)
        assert status(ctx, router) == ([0, 0, 0], [0, 1, 0], 0)
        assert not ctx.get(router.quiet)
        ctx.set(router.tx[1].credit_valid, 1)
        await ctx.tick()
        ctx.set(router.tx[1].credit_valid, 0)
        await ctx.tick()
        assert status(ctx, router) == IDLE

    run(CONFIG, body)


@pytest.mark.parametrize("seed", [1])
def test_full_input_buffers_are_counted(seed):
    """Against flits in and credits out: a flit is in its buffer from two cycles after the link on."""
    chance = random.Random(seed)
    depth, most = CONFIG.input_buffer_flits, []

    async def body(ctx, router):
        lanes = [(p, v) for p in range(3) for v in range(2)]
        written, credits, position = (dict.fromkeys(lanes, 0) for _ in range(3))
        arriving = [[], []]
        owed = {p: [] for p in range(3)}
        left = dict.fromkeys(lanes, 0)
        for _ in range(600):
            for p in range(3):
                rx, tx = router.rx[p], router.tx[p]
                if ctx.get(rx.credit_valid):
                    left[p, ctx.get(rx.credit_vl)] += 1
                if ctx.get(tx.valid):
                    owed[p].append(ctx.get(tx.payload.vl))
                back = bool(owed[p]) and chance.random() < 0.25
                ctx.set(tx.credit_valid, back)
                if back:
                    ctx.set(tx.credit_vl, owed[p].pop(chance.randrange(len(owed[p]))))
            for lane in arriving.pop(0):
                written[lane] += 1
            full = sum(written[lane] - left[lane] == depth for lane in lanes)
            assert status(ctx, router)[2] == full
            most.append(full)
            now = []
            for p in range(3):
                vl = chance.randrange(2)
                goes = chance.random() < 0.8 and credits[p, vl] - left[p, vl] < depth
                ctx.set(router.rx[p].valid, goes)
                if goes:
                    credits[p, vl] += 1
                    ends = position[p, vl] == 5
                    flit = {"data": (p + 1) % 3 << 8, "vl": vl, "head": position[p, vl] == 0, "tail": ends}
                    ctx.set(router.rx[p].payload, flit)
                    position[p, vl] = 0 if ends else position[p, vl] + 1
                    now.append((p, vl))
            arriving.append(now)
            await ctx.tick()

    run(CONFIG, body)
    assert {0, 1, 2, 3} <= set(most), f"seed {seed}: too few buffers were full: {set(most)}"


def test_the_control_vl_is_not_counted():
    config = CONFIG.replace(link=LINK.replace(vls=16))

    async def body(ctx, router):
        await send(ctx, router, 0, 1, vl=15, tail=0)
        await ctx.tick().repeat(10)
        assert status(ctx, router) == IDLE

    run(config, body)


def test_nothing_of_it_is_in_a_router_without():
    text = to_verilog(Router(CONFIG.replace(status_outputs=False)), name="router")
    assert not [word for word in ("none_free", "some_taken", "full_buffers") if word in text]
    assert "full_buffers" in to_verilog(Router(CONFIG), name="router")
