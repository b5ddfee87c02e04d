"""Clusters composed of nodes and routers that are compiled once each: the same results, whatever rests meanwhile."""

from dataclasses import replace
from random import Random
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

import pytest
from lanikai.hdl.config import ConfigError, RouterConfig, preset
from lanikai.hdl.network import Network, chain, mesh, single_router, torus, tree
from lanikai.hdl.network_named import network_named
from lanikai.sim.build.cache import Cache
from lanikai.sim.build.model import build
from lanikai.sim.errors import SimulationError
from lanikai.sim.machine import ONE_THREAD, Threads
from lanikai.sim.run import run
from lanikai.sim.systems.cluster import ClusterConfig, cluster_preset

SPEC = {"messages": 4, "bytes": 6000, "silence_cycles": 40_000, "idt_ticks": 9_000}
LANAI4 = cluster_preset("lanai4", nodes=4, memory_bytes=1 << 20)


def play(tmp_path, config, spec, *, seed=7, model=None, entry="workload", threads=ONE_THREAD):
    """The value of one run of an entry of `support.sim`, of its `skip_points` if only a name is given."""
    folder = tmp_path / f"{config.composed}-{len(list(tmp_path.iterdir()))}"
    entry, job = config.job(f"support.sim.{entry if ':' in entry else f'skip_points:{entry}'}", spec)
    return run(model or config.build(), entry, job, out_dir=folder, seed=seed, threads=threads).value


def on_mesh(name, **changes):
    config = cluster_preset(name, memory_bytes=1 << 20, **changes)
    return config.on(mesh(2, 2, router=config.router.replace(ports=5)))


CASES = {
    "lanai4": LANAI4,
    "lanai7": cluster_preset("lanai7", nodes=3, memory_bytes=1 << 20),
    "iba": cluster_preset("iba", nodes=3, memory_bytes=1 << 20),
    "mesh": on_mesh("lanai4"),
    "tree of flows": LANAI4.replace(nic=LANAI4.nic.replace(rate_structure="tree")),
}


@pytest.mark.full
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_to_the_cycle(tmp_path, case, seed):
    """Every time stamp and register is that of the cluster as one model. Meanwhile no resting node does anything but
    count."""
    config = CASES[case]
    composed = play(tmp_path, config, SPEC | {"check": True}, seed=seed)
    plain = play(tmp_path, config.replace(composed=False), SPEC, seed=seed)
    evaluated, total = composed.pop("evaluated")
    assert plain.pop("evaluated") == [0, 0]
    composed.pop("skipped"), plain.pop("skipped")
    assert composed == plain
    assert len(plain["stamps"]) == 2 * config.nodes * SPEC["messages"]
    assert config.nic.vl_packets or evaluated < 0.5 * total


@pytest.mark.full
@pytest.mark.parametrize(("entry", "steps"), [("mpi", 6), ("managers", 3)])
@pytest.mark.parametrize("seed", [1, 2])
def test_mpi_and_managers_are_the_same_to_the_cycle(tmp_path, entry, steps, seed):
    """Random collective calls, and flows that ask for bandwidth and give it back: as in one model, access by access."""
    values = []
    for composed in (True, False):
        config = LANAI4.replace(composed=composed, access_lists=composed)
        spec = {"steps": steps, "silence_cycles": 20_000, "check": composed}
        values.append(play(tmp_path, config, spec, seed=seed, entry=f"library_points:{entry}"))
    for value in values:
        value.pop("evaluated"), value.pop("skipped")
    assert values[0] == values[1]
    assert len(values[0]["stamps"]) >= config.nodes * steps


@pytest.mark.xdist_group("gm-cluster")
def test_nodes_that_rest_change_nothing(tmp_path):
    """A random workload runs with resting nodes and without: the same time stamps and registers. Each node that has
    rested is byte for byte where evaluating every cycle brought it."""
    config = LANAI4
    resting = play(tmp_path, config, SPEC | {"check": True})
    awake = play(tmp_path, config.replace(skip_quiet=False), SPEC)
    (few, total), (all_nodes, _) = resting.pop("evaluated"), awake.pop("evaluated")
    assert resting.pop("skipped") > 0.3 * resting["end"] and awake.pop("skipped") == 0
    assert resting == awake
    assert few < 0.2 * total and all_nodes > 0.75 * total


def mutant(config, **changes):
    """The model of a cluster whose node block has `changes`."""
    design = config.design()
    composition = design.composition
    blocks = tuple(
        replace(block, **changes) if block.name == "cluster_node" else block for block in composition.blocks
    )
    return build(replace(design, composition=replace(composition, blocks=blocks)))


@pytest.mark.xdist_group("gm-cluster")
def test_the_same_on_threads(tmp_path):
    """Time stamps, registers and evaluations of a random workload are those of one thread, on 2 and 3."""
    seed = Random(11).randrange(1 << 31)
    print("seed", seed)
    first = play(tmp_path, LANAI4, SPEC, seed=seed)
    for threads in (2, 3):
        assert play(tmp_path, LANAI4, SPEC, seed=seed, threads=Threads(threads, asked=True)) == first


@pytest.mark.full
@pytest.mark.xdist_group("gm-cluster")
def test_a_node_that_rests_too_early_is_found(tmp_path):
    """Without settling cycles nodes rest in the pauses of their links and buses."""
    with pytest.raises(SimulationError, match="status 3") as caught:
        play(tmp_path, LANAI4, SPEC | {"check": True}, model=mutant(LANAI4, settle_cycles=0))
    assert "status 3" in str(caught.value)
    log = next(tmp_path.rglob("simulation.log")).read_text()
    assert "though it was quiet" in log and "cluster.node" in log


@pytest.mark.full
@pytest.mark.xdist_group("gm-cluster")
def test_a_clock_that_rests_wrongly_is_found(tmp_path):
    """A node whose clock is set to a wrong time after a rest is told from one that was evaluated."""
    block = next(block for block in LANAI4.design().composition.blocks if block.clock)
    clock = replace(block.clock, den=block.clock.den + 1)
    with pytest.raises(SimulationError, match="status 3"):
        play(tmp_path, LANAI4, SPEC | {"check": True}, model=mutant(LANAI4, clock=clock))
    assert "changed at byte" in next(tmp_path.rglob("simulation.log")).read_text()


@pytest.mark.full
def test_a_hang_is_found_and_described_alike(tmp_path):
    """The watchdog fires in the same cycle as in the cluster as one model, and shows the same state of every node,
    clocks of resting nodes included."""
    config = LANAI4.replace(watchdog_cycles=50_000)
    told = []
    for one in (config, config.replace(composed=False)):
        folder = tmp_path / str(one.composed)
        folder.mkdir()
        with pytest.raises(SimulationError) as caught:
            play(folder, one, {}, entry="nothing")
        log = next(folder.rglob("simulation.log")).read_text()
        state = log.partition("watchdog: state in cycle")[2].splitlines()
        told.append(
            (str(caught.value).partition(" (log")[0], state[: 1 + sum(": " in line for line in state)])
        )
    assert told[0] == told[1] and "nothing has moved for 50000 cycles" in told[0][0]
    assert any("watch_rtc" in line for line in told[0][1])


@pytest.mark.full
def test_128_cards_cost_what_their_busy_ones_do(tmp_path):
    """From an empty cache a cluster of 128 cards on 40 switches is built in at most twice the processor time of one of
    4 on one such switch. Of its cards 4 are busy: it runs in 8 GB, and an idle card takes less than half a megabyte."""
    router = preset(RouterConfig, "lanai4").replace(ports=8)
    small = cluster_preset("lanai4").on(single_router(4, router=router))
    large = cluster_preset("lanai4").on(switches_of_128())
    seconds, memory = [], []
    for config in (small, large):
        before = processor_seconds()
        model = build(config.design(), cache=Cache(tmp_path / f"cache{config.nodes}"))
        seconds.append(processor_seconds() - before)
        value = play(
            tmp_path, config, {"pairs": 2, "messages": 8, "bytes": 4000}, model=model, entry="few_of_many"
        )
        assert value["received"] == 16
        memory.append(value["memory_bytes"])
    assert seconds[1] < 2 * seconds[0], seconds
    assert memory[1] < 8 << 30 and memory[1] - memory[0] < 124 << 19, memory
    evaluated, total = value["evaluated"]
    assert evaluated < 0.1 * total


@pytest.mark.full
def test_128_cards_with_every_signal_are_built_like_4(tmp_path):
    """From empty caches, in at most twice the processor time of a cluster of 4 on one switch."""
    router = preset(RouterConfig, "lanai4").replace(ports=8)
    seconds = []
    for network in (single_router(4, router=router), switches_of_128()):
        config = cluster_preset("lanai4").on(network)
        before = processor_seconds()
        build(config.design("debug"), "debug", cache=Cache(tmp_path / f"cache{config.nodes}"))
        seconds.append(processor_seconds() - before)
    print("processor seconds", seconds)
    assert seconds[1] < 2 * seconds[0], seconds


def processor_seconds():
    """Processor time of this process and of those that it has waited for."""
    return sum(sum(getrusage(who)[:2]) for who in (RUSAGE_SELF, RUSAGE_CHILDREN))


def switches_of_128():
    """128 nodes on 32 switches of eight ports, four at each, seven switches above those, and one above all: 40."""
    router = preset(RouterConfig, "lanai4").replace(ports=8)
    nodes = tuple((leaf, port) for leaf in range(32) for port in range(4))
    links = [((leaf, 4), (32 + leaf % 7, leaf // 7)) for leaf in range(32)]
    links += [((32 + i, 7), (39, i)) for i in range(7)]
    return Network(router=router, routers=40, nodes=nodes, links=tuple(links))


def test_any_network():
    """A cluster takes the places and routers of a network, and the buffers of its cards."""
    base = cluster_preset("lanai4")
    router = base.router.replace(ports=6)
    for network in (
        mesh(3, 2, router=router),
        torus(3, 3, router=router),
        tree(2, 2, router=router),
        chain(2, router=router, node_buffer_flits=3, nodes=[1, 2]),
        switches_of_128(),
        *(
            network_named(name, base.router)
            for name in (
                "ring(4)",
                "hypercube(2)",
                "flattened_butterfly(3x2)",
                "kary_tree(2,2)",
                "dragonfly(2,1,1)",
            )
        ),
    ):
        config = base.on(network)
        assert config.nodes == len(network.nodes) and config.network.nodes == network.nodes
        assert config.network.links == network.links
        assert config.network.node_buffer_flits == base.nic.input_buffer_flits
        assert config.network.router.link.restart is True
        assert ClusterConfig(**config.model_dump(mode="json")).key() == config.key()


def test_a_wrong_network_is_one_line():
    base = cluster_preset("lanai4")
    network = mesh(2, 2, router=base.router.replace(ports=5))
    with pytest.raises(ConfigError, match=r"^ClusterConfig: topology: places for 4 nodes, but nodes = 3$"):
        base.replace(topology=network)
    with pytest.raises(
        ConfigError, match=r"^ClusterConfig: topology.router and router differ: ClusterConfig.on takes"
    ):
        base.replace(topology=network, nodes=4)
    with pytest.raises(ConfigError, match=r"^ClusterConfig: chain and topology: at most one of them$"):
        base.on(network).replace(chain=(2, 2))
    with pytest.raises(ConfigError, match=r"^ClusterConfig: router.link and nic.link differ"):
        base.on(mesh(2, 2, router=preset(RouterConfig, "tiny").replace(ports=5)))
