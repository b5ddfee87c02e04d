"""The hardware of a routing function held against its twin, for random headers and for every way of a network."""

import random

from amaranth.sim import Simulator
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig
from lanikai.hdl.network import chain, mesh, single_router, torus, tree
from lanikai.hdl.network_named import network_named
from lanikai.hdl.router.routing import RANDOM_BITS, Arrival

VLS = 4
PORTS = 6
ENTRIES = 12
"""Rows of a forwarding table: as many as the largest network below has nodes, and no power of two."""
NAMED = (
    "ring(5)",
    "ring(8)",
    "hypercube(3)",
    "hypercube(4)",
    "flattened_butterfly(3x3)",
    "flattened_butterfly(2x3,nodes=2)",
    "flattened_butterfly(2x2x2)",
    "kary_tree(2,3)",
    "kary_tree(3,2)",
    "dragonfly(2,2,1)",
    "dragonfly(3,1,2)",
)
"""Topologies with a name, which may have a function of their own."""


def router_for(function, name, management=False):
    return RouterConfig(
        link=LinkConfig(flit_bits=64, vls=16 if management else VLS, hop_bits=3),
        ports=PORTS,
        management=management,
        routing=name,
        forwarding_entries=ENTRIES,
        vl_selection="routing" if function.changes_vl else "same",
    )


def networks_for(function, name, management=False):
    """Those of some usual networks that the function can route."""
    router = router_for(function, name, management)
    found = []
    for make in (
        lambda: single_router(5, router=router),
        lambda: chain(4, router=router),
        lambda: tree(2, 3, router=router),
        lambda: mesh(4, 3, router=router),
        lambda: torus(4, 3, router=router),
        lambda: torus(5, 2, router=router),
        *(lambda text=text: network_named(text, router).replace(router=router) for text in NAMED),
    ):
        try:
            found.append(make())
        except ConfigError:
            continue
    # A name may stand for another function in other topologies.
    return [network for network in found if network.router.routing == name]


def hold(function, name, *, seed, headers=300, management=False):
    """Raise AssertionError where hardware and twin differ. Returns how many were compared.

    The twin is that of the registered class, the hardware that of `function`. Compared are every (router, input port,
    VL, destination), and `headers` random routes besides, at every input port.
    """
    networks = networks_for(function, name, management)
    assert networks, f"no network for {name}: add one to networks_for"
    chance = random.Random(seed)
    compared = 0
    # Networks differ in `node_ports` alone.
    configs = dict.fromkeys(network.router for network in networks)
    for config in configs:
        mine = [network for network in networks if network.router == config]
        compared += _hold(function, config, mine, chance, headers, routers=6 // len(configs))
    return compared


def _hold(function, config, networks, chance, headers, routers):
    vls = config.link.vls
    places = [(network, router) for network in networks for router in range(network.routers)]
    compared = 0
    for in_port in range(PORTS):
        cases = []
        for network, router in chance.sample(places, min(len(places), routers)):
            rows = network.forwarding_table(router) if function.uses_table else []
            position = dict(function.position_of(network, router))
            if function.uses_table:
                rows = [-1 if chance.random() < 0.2 else row for row in rows]
            common = {"position": position, "rows": rows}
            bits = function.route_bits(config)
            batch = [
                Arrival(in_port, chance.randrange(vls), chance.getrandbits(bits), **common)
                for _ in range(headers // 2)
            ]
            # Small fields, so that many of them name something that is there.
            batch += [
                Arrival(
                    in_port,
                    chance.randrange(vls),
                    (chance.randrange(8) | chance.randrange(8) << 5) % (1 << bits),
                    **common,
                )
                for _ in range(headers // 2)
            ]
            # Routes that are right but for a bit.
            batch += [
                Arrival(
                    in_port,
                    chance.randrange(vls),
                    function.route_field(network, router, in_port, chance.randrange(len(network.nodes)))
                    % (1 << bits)
                    ^ 1 << chance.randrange(bits),
                    **common,
                )
                for _ in range(headers // 2)
            ]
            # Loads that are close together, so that few links more or less decide.
            batch = [
                arrival._replace(
                    random=chance.getrandbits(RANDOM_BITS), loads=[chance.randrange(12) for _ in range(PORTS)]
                )
                for arrival in batch
            ]
            cases.append((batch, [function.decide(config, arrival) for arrival in batch]))
            whole = {"position": position, "rows": network.forwarding_table(router)}
            batch, wanted = [], []
            for destination in range(len(network.nodes)):
                for vl in range(vls):
                    route = function.route_field(network, router, in_port, destination) % (1 << bits)
                    batch.append(Arrival(in_port, vl, route, loads=[0] * PORTS, **whole))
                    if function.rewrites_at(config):
                        # `next_port` is that of the direct way.
                        wanted.append(function.decide(config, batch[-1]))
                    else:
                        wanted.append(function.next_port(network, router, in_port, vl, destination))
            cases.append((batch, wanted))
        compared += _compare(function, config, in_port, cases)
    return compared


def _compare(function, config, in_port, cases):
    dut = function(config, in_port=in_port)
    compared = 0

    async def bench(ctx):
        nonlocal compared
        for batch, wanted in cases:
            if function.uses_table:
                await _write_rows(ctx, dut.table, batch[0].rows, config)
            if function.position_layout is not None:
                ctx.set(dut.position, dict(batch[0].position))
            for arrival, (port, vl) in zip(batch, wanted, strict=True):
                ctx.set(dut.route, arrival.route)
                if in_port in function.rewrites_at(config):
                    ctx.set(dut.random, arrival.random)
                    for load, value in (
                        zip(dut.loads, arrival.loads, strict=True) if function.uses_loads else ()
                    ):
                        ctx.set(load, value)
                if function.depends_on_vl():
                    ctx.set(dut.vl, arrival.vl)
                await ctx.delay(1e-9)
                got = ctx.get(dut.port)
                assert got == (0 if port is None else 1 << port), f"{arrival}: ports {got:#b}, twin {port}"
                if port is not None:
                    got = ctx.get(dut.out_vl) if function.changes_vl else arrival.vl
                    assert got == vl, f"{arrival}: VL {got}, twin {vl}"
                if function.adaptive:
                    options, vl = function.decide_options(config, arrival)
                    got = ctx.get(dut.options)
                    assert got == sum(1 << one for one in options), (
                        f"{arrival}: options {got:#b}, twin {options}"
                    )
                    got = ctx.get(dut.option_vl)
                    assert got == vl or not options, f"{arrival}: option VL {got}, twin {vl}"
                if in_port in function.rewrites_at(config):
                    got, wanted_route = ctx.get(dut.new_route), function.decide_route(config, arrival)
                    assert got == wanted_route, f"{arrival}: route {got:#x}, twin {wanted_route:#x}"
                compared += 1

    simulator = Simulator(dut)
    simulator.add_clock(1e-6, if_exists=True)
    simulator.add_testbench(bench)
    simulator.run()
    return compared


async def _write_rows(ctx, table, rows, config):
    for node in range(config.forwarding_entries):
        port = rows[node] if node < len(rows) else -1
        for name, value in {"write": 1, "node": node, "port": max(port, 0), "known": port >= 0}.items():
            ctx.set(getattr(table, name), value)
        await ctx.tick()
    ctx.set(table.write, 0)
