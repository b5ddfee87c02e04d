"""Routing functions, alone and in a router."""

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig
from lanikai.hdl.router.router import Router
from lanikai.hdl.router.routing import ROUTING, routing_class

LINK = LinkConfig(flit_bits=32, vls=2, hop_bits=3)
BASE = RouterConfig(link=LINK, ports=5, input_buffer_flits=6, output_buffer_flits=2)
TABLE = BASE.replace(routing="table", forwarding_entries=6)
MESH = BASE.replace(routing="dimension_order")


def ends_of(router):
    return list(zip(router.rx, router.tx, strict=True))


def simulate(dut, bench):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6, if_exists=True)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("management", [False, True])
def test_dimension_order_goes_x_then_y(management):
    """Every destination, from every place of a 3 x 4 mesh and beyond its edges."""
    link = LINK.replace(vls=16) if management else LINK
    dut = routing_class(MESH)(MESH.replace(link=link, ports=6, management=management), in_port=0)

    async def bench(ctx):
        for here_x, here_y in [(0, 0), (1, 2), (2, 3), (2, 0)]:
            ctx.set(dut.position, {"x": here_x, "y": here_y, "last_x": 2, "last_y": 3})
            for x in range(5):
                for y in range(6):
                    ctx.set(dut.route, x | y << 5)
                    if x > 2 or y > 3:
                        want = 0
                    elif x != here_x:
                        want = 2 if x > here_x else 4
                    elif y != here_y:
                        want = 8 if y > here_y else 16
                    else:
                        want = 1
                    await ctx.delay(1e-9)
                    assert ctx.get(dut.port) == want << management

    simulate(dut, bench)


def test_table_rows_are_written_and_unknown_ones_lead_nowhere():
    dut = routing_class(TABLE)(TABLE, in_port=0)

    async def bench(ctx):
        rows = {}
        for node, port, known in [
            (0, 3, 1),
            (5, 4, 1),
            (1, 2, 0),
            (0, 1, 1),
            (6, 2, 1),
            (1023, 2, 1),
            (5, 4, 0),
        ]:
            for name, value in {"write": 1, "node": node, "port": port, "known": known}.items():
                ctx.set(getattr(dut.table, name), value)
            await ctx.tick()
            ctx.set(dut.table.write, 0)
            rows[node] = 1 << port if known and node < 6 else 0
            for other in (0, 1, 2, 5, 6, 7, 1023):
                ctx.set(dut.route, other)
                await ctx.delay(1e-9)
                assert ctx.get(dut.port) == rows.get(other, 0), other

    simulate(dut, bench)


def test_router_goes_by_its_table_which_changes_under_way(traffic):
    """Packets to node 4 leave by port 3, later ones by port 1; those to a node without a row are dropped and
    stop nobody; the route field crosses unchanged."""
    router = Router(TABLE)
    common = {"hops": [], "source": 0, "flits": 5}
    early = [
        traffic.Packet(number=0, target=4, end=3, **common),
        traffic.Packet(number=1, target=2, end=None, **common),
        traffic.Packet(number=2, target=4, end=3, **common),
    ]

    async def route(ctx, port):
        await traffic.register(ctx, router, "ROUTE_SELECT", node=4)
        await traffic.register(ctx, router, "ROUTE_PORT", port=port, known=1)

    async def check(ctx):
        assert ctx.get(router.dropped) == 1
        assert (await traffic.register(ctx, router, "DROPPED"))["packets"] == 1

    ends = ends_of(router)
    traffic.run_packets(
        router,
        ends,
        LINK,
        early,
        buffer_flits=6,
        target_bits=10,
        before=lambda ctx: route(ctx, 3),
        after=check,
    )
    router = Router(TABLE)
    late = [traffic.Packet(number=3, target=4, end=1, **common)]

    async def twice(ctx):
        await route(ctx, 3)
        await route(ctx, 1)
        # No such port: no route, and not some other port.
        await traffic.register(ctx, router, "ROUTE_SELECT", node=3)
        await traffic.register(ctx, router, "ROUTE_PORT", port=9, known=1)

    late.append(traffic.Packet(number=4, target=3, end=None, **common))
    traffic.run_packets(
        router, ends_of(router), LINK, late, buffer_flits=6, target_bits=10, before=twice, after=check
    )


def test_zero_load_latency_of_destination_routing_is_the_formula(traffic):
    router = Router(MESH)
    packet = traffic.Packet(number=0, source=0, hops=[], target=2 | 1 << 5, end=3, flits=10, start=4)

    async def place(ctx):
        ctx.set(router.position, {"x": 2, "y": 0, "last_x": 2, "last_y": 3})

    result = traffic.run_packets(
        router, ends_of(router), LINK, [packet], buffer_flits=6, target_bits=10, before=place
    )
    head, tail = result.seen[0]
    assert (head - result.sent[0][0], tail - head) == (5, 9)


def test_bad_choices_are_refused_by_name():
    with pytest.raises(ConfigError) as error:
        Router(BASE.replace(routing="north_last"))
    assert (
        str(error.value) == f"RouterConfig.routing = 'north_last': one of auto, {', '.join(sorted(ROUTING))}"
    )
    with pytest.raises(ConfigError) as error:
        Router(MESH.replace(ports=4))
    assert str(error.value) == "RouterConfig.ports = 4: dimension_order routing needs 5"
    with pytest.raises(ConfigError) as error:
        Router(MESH.replace(link=LINK.replace(vls=16), management=True))
    assert str(error.value) == (
        "RouterConfig.ports = 5: dimension_order routing needs 6, port 0 being for management"
    )
