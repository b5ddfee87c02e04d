"""A design composed of blocks that are compiled once each, and passed over while they rest.

It does what the same design does as one model.
"""

from random import Random

import pytest
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.network import chain, mesh, single_router
from lanikai.hdl.router.router import Router
from lanikai.sim.build.composition import Block
from lanikai.sim.errors import SimulationError, UserError
from lanikai.sim.machine import ONE_THREAD, Threads
from lanikai.sim.run import run
from lanikai.sim.systems.traffic_config import TrafficNetworkConfig

RANDOM = {"load": 0.15, "packet_flits": 9, "vl_count": 2}
ON_OFF = {"mode": "on_off", "load": 0.8, "packet_flits": 6, "vl_first": 1, "on_cycles": 60, "off_cycles": 400}
TRACE = {"mode": "trace", "packet_flits": 8, "interval_cycles": 500, "last_frame": 2, "vl_choice": "in_turn"}
PERIODIC = {
    "mode": "periodic",
    "load": 0.05,
    "packet_flits": 5,
    "pattern": "hot_spot",
    "node": 1,
    "phase_cycles": 77,
}


def link(**fields):
    return LinkConfig(**{"flit_bits": 64, "vls": 2, "rate_num": 1, "rate_den": 1} | fields)


def router(ports, **fields):
    return RouterConfig(
        **{"link": link(), "ports": ports, "input_buffer_flits": 4, "output_buffer_flits": 3} | fields
    )


CASES = {
    "mesh": (mesh(3, 2, router=router(5), node_buffer_flits=6), [RANDOM, PERIODIC]),
    "slow links, long wires": (
        mesh(2, 2, router=router(5, link=link(rate_num=2, rate_den=7, delay_cycles=3, flit_bits=32))),
        [RANDOM | {"load": 0.05}, ON_OFF | {"load": 0.2}],
    ),
    "tables": (
        single_router(
            4,
            router=router(4, vl_arbiter="table_fast", allocator="wavefront"),
        ),
        [ON_OFF, TRACE],
    ),
    "iba": (
        mesh(2, 2, router=router(5, vl_arbiter="table_iba", routing="dimension_order", allocator="islip")),
        [RANDOM, ON_OFF],
    ),
    "first come": (
        mesh(2, 2, router=router(5, vl_arbiter="fcfs", buffer_memory="distributed")),
        [RANDOM, PERIODIC],
    ),
    "deficit": (
        mesh(2, 2, router=router(6, link=link(vls=16, flit_bits=128), vl_arbiter="deficit", management=True)),
        [RANDOM, ON_OFF],
    ),
    "routers of two kinds, the smallest buffers": (
        chain(
            2,
            router=router(
                4,
                link=link(rate_num=3, rate_den=8, delay_cycles=2, flit_bits=32),
                input_buffer_flits=2,
                output_buffer_flits=2,
                vl_selection="service_level",
            ),
            node_buffer_flits=7,
            nodes=[2, 1],
        ),
        [RANDOM | {"load": 0.08, "service_level": 3}, PERIODIC | {"load": 0.02}],
    ),
    "pipelined": (
        mesh(
            2,
            2,
            router=router(5, link=link(rate_num=2, rate_den=3, delay_cycles=1)).replace(pipelined=True),
        ),
        [RANDOM, ON_OFF | {"load": 0.2}],
    ),
    "energy credits": (
        mesh(2, 2, router=router(5, power_budget=40, power_share=5, power_window_cycles=50)),
        [RANDOM | {"load": 0.4}, ON_OFF],
    ),
    "any VL, wide flits": (
        single_router(
            3, router=router(3, link=link(flit_bits=128, vls=4), vl_selection="any", input_buffer_flits=12)
        ),
        [RANDOM | {"vl_count": 4}, TRACE],
    ),
}

QUICK = ("mesh", "tables")
"""Cases of the normal run. The others have routers of other kinds: the same mechanism, 20 s of building each."""


def play(tmp_path, config, name, spec, seed=7, threads=ONE_THREAD):
    entry, job = config.job(f"support.sim.parts_points:{name}", spec)
    out = tmp_path / f"{config.composed} {threads.count}"
    return run(config.build(), entry, job, out_dir=out, seed=seed, threads=threads).value


@pytest.mark.parametrize(
    "case", [one if one in QUICK else pytest.param(one, marks=pytest.mark.full) for one in CASES]
)
def test_the_same_to_the_cycle(tmp_path, case):
    """Every count, latency and histogram is the same, and the cycle of the end. Meanwhile no register changes in a
    resting block."""
    network, classes = CASES[case]
    # With its agents' ports, for the next test to find the models built.
    config = TrafficNetworkConfig(network=network, classes=len(classes), agents=case == "tables")
    spec = {"classes": classes, "trace": [40, 0, 13], "check": True}
    composed = play(tmp_path, config, "measured", spec)
    plain = play(tmp_path, config.replace(composed=False), "measured", spec | {"check": False})
    assert plain.pop("share") is None
    share = composed.pop("share")
    assert composed == plain
    assert sum(one["latency_packets"] for node in plain["measured"][0]["counts"] for one in node) > 50
    assert share < 0.95


AGENTS = {
    "tables": ("tables", {}),
    "control packets": ("deficit", {}),
    "control packets, slow links": (
        "iba",
        {
            "management": True,
            "ports": 6,
            "routing": "source",
            "activity_counters": True,
            "link": link(vls=16, rate_num=2, rate_den=5, delay_cycles=3, flit_bits=32),
        },
    ),
}


@pytest.mark.parametrize(
    "case", [one if one == "tables" else pytest.param(one, marks=pytest.mark.full) for one in AGENTS]
)
def test_agents_of_routers_do_the_same_to_the_cycle(tmp_path, case):
    """Agents write tables and send control packets under load: all that they read, and when, is the same. Meanwhile no
    register changes in a router that rests."""
    kind, changes = AGENTS[case]
    network, classes = CASES[kind]
    if changes:
        network = mesh(2, 2, router=network.router.replace(**changes))
    classes = [one | {"load": 0.1} for one in classes]
    config = TrafficNetworkConfig(network=network, classes=len(classes), agents=True)
    spec = {"classes": classes, "check": True}
    composed = play(tmp_path, config, "agents", spec)
    plain = play(tmp_path, config.replace(composed=False), "agents", spec | {"check": False})
    assert plain.pop("share") is None
    assert composed.pop("share") < 0.95
    assert composed == plain
    read = [one for those in plain["seen"].values() for one in those]
    assert len(read) >= 4 * network.routers
    assert any(len(one) == 2 for one in read) == network.router.management


@pytest.mark.parametrize("threads", [2, 3])
def test_the_same_on_threads(tmp_path, threads):
    """The same measurement as on one thread: every count, latency, histogram and time."""
    network, classes = CASES["mesh"]
    config = TrafficNetworkConfig(network=network, classes=len(classes))
    spec = {"classes": classes, "trace": [40, 0, 13], "check": False}
    seed = Random(threads).randrange(1 << 31)
    print("seed", seed)
    found = play(tmp_path, config, "measured", spec, seed=seed, threads=Threads(threads, asked=True))
    log = next((tmp_path / f"True {threads}").glob("*.log")).read_text()
    assert f"{threads} threads evaluate the instances" in log
    assert found == play(tmp_path, config, "measured", spec, seed=seed)


def test_one_model_has_one_thread(tmp_path):
    """Threads that a build cannot have are refused in a line that says why."""
    network, classes = CASES["tables"]
    config = TrafficNetworkConfig(network=network, classes=len(classes), composed=False)
    with pytest.raises(
        UserError, match=r"^--threads 2: this build of network_bench is one model, which runs on 1 "
    ):
        play(tmp_path, config, "measured", {}, threads=Threads(2, asked=True))


def test_the_watchdog_fires_in_the_same_cycle(tmp_path):
    """A hang is found in the cycle in which it would have been, with the state of every router."""
    config = TrafficNetworkConfig(network=CASES["mesh"][0], classes=2, watchdog_cycles=3000)
    messages = []
    for composed in (True, False):
        with pytest.raises(SimulationError) as caught:
            play(tmp_path, config.replace(composed=composed), "stuck", {"classes": [RANDOM, PERIODIC]})
        messages.append(str(caught.value).partition(" (log")[0])
    assert messages[0] == messages[1]
    assert "nothing has moved for 3000 cycles" in messages[0] and "router" in messages[0]


def test_links_that_can_be_restarted_are_never_restarted_in_a_composition():
    """No instance is reset alone, so the levels of the handshake are no wires between instances."""
    block = Block(
        name="router",
        component=Router(router(2, link=link(restart=True)), skippable=True),
        transmit=("tx__0", "tx__1"),
        receive=("rx__0", "rx__1"),
        settle_cycles=1,
    )
    text = "\n".join(block._wrapper())
    for port in range(2):
        assert f".rx__{port}__restart(1'd0)" in text and f".tx__{port}__credit_restart(1'd0)" in text
        assert f".tx__{port}__restart()" in text and f".rx__{port}__credit_restart()" in text
