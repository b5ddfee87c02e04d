"""Networks whose every message a Python host posts and another receives.

Nothing is lost, times do not depend on how long Python takes, credits are home at the end, mistakes are told.
"""

from pathlib import Path
from random import Random

import pytest
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.topologies import topology_named
from lanikai.sim.errors import SimulationError
from lanikai.sim.experiments.measure.named_networks import named_network
from lanikai.sim.machine import ONE_THREAD, Threads
from lanikai.sim.run import run
from lanikai.sim.systems.message_config import MessageNetworkConfig

ROUTER = RouterConfig(
    link=LinkConfig(flit_bits=32, vls=2), ports=2, input_buffer_flits=4, output_buffer_flits=4
)
CONFIG = MessageNetworkConfig(network=named_network("router3", ROUTER), ring_slots=4)


@pytest.fixture
def play(tmp_path):
    def played(point, spec=None, *, seed=1, config=CONFIG, threads=ONE_THREAD):
        entry, job = config.job(f"support.sim.hosts_points:{point}", spec or {})
        return run(config.build(), entry, job, out_dir=tmp_path, seed=seed, threads=threads).value

    return played


def test_the_same_however_long_python_takes(play):
    """All messages arrive as they were sent, in the same cycles with hosts that dawdle among coroutines that wake for
    nothing. Another seed gives other cycles. All credits are home at the end (`settle`)."""
    spec = {"messages": 60, "gap_cycles": 25, "disturb": 0}
    first = play("workload", spec)
    assert len(first["found"]) == 180
    assert play("workload", spec | {"disturb": 7})["found"] == first["found"]
    assert play("workload", spec, seed=2)["found"] != first["found"]


def test_nodes_that_rest_change_nothing(play):
    """A node rests until a flit or a command comes, or the time of one that waits. What rests is evaluated all the
    same, and no register changes."""
    spec = {"messages": 30, "gap_cycles": 200, "disturb": 0}
    seed = Random(6).randrange(1 << 31)
    print("seed", seed)
    first = play("workload", spec, seed=seed)
    assert play("workload", spec | {"check": True}, seed=seed) == first
    evaluated, total = first["evaluated"]
    assert evaluated < 0.3 * total


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "nodes"), [("dragonfly(2,1,1)", 6), ("kary_tree(2,2)", 4), ("random_regular(6,3)", 6)]
)
def test_topologies_with_a_name(play, name, nodes):
    """All messages arrive, by the topology's own routing function where it has one."""
    network = named_network(name, ROUTER)
    assert network.router.routing == (topology_named(name).routing or "source")
    config = MessageNetworkConfig(network=network, ring_slots=4)
    spec = {"messages": 40, "gap_cycles": 25, "disturb": 0}
    assert len(play("workload", spec, config=config)["found"]) == nodes * 40


@pytest.mark.full
@pytest.mark.parametrize("gap_cycles", [12, 200])
def test_the_same_as_one_model(play, gap_cycles):
    """Every message arrives in the cycle in which it does in the network as one model."""
    spec = {"messages": 60, "gap_cycles": gap_cycles, "disturb": 0}
    plain = play("workload", spec, config=CONFIG.replace(composed=False))
    assert play("workload", spec)["found"] == plain["found"]


def test_the_same_on_threads(play):
    """Events of all nodes come in one order, with router and nodes on 1, 2 and 3 threads."""
    spec = {"messages": 40, "gap_cycles": 12, "disturb": 0}
    seed = Random(5).randrange(1 << 31)
    print("seed", seed)
    first = play("workload", spec, seed=seed)
    for threads in (2, 3):
        assert play("workload", spec, seed=seed, threads=Threads(threads, asked=True)) == first


def test_wakeups(play):
    """A message wakes its sender once (its gap is over; now and then again, for room in the ring).

    It wakes its receiver once. Events of a cycle are handed out together.
    """
    ran = play("workload", {"messages": 60, "gap_cycles": 60, "disturb": 0})
    messages = len(ran["found"])
    assert 0.9 * messages < ran["wakeups"]["send"] <= 1.2 * messages
    assert 0.9 * messages < ran["wakeups"]["receive"] <= messages
    assert 0.5 * messages < ran["deliveries"] <= messages


def test_a_full_ring(play):
    """A ring of 4 for 40 messages: the host waits for room, its messages keep their order."""
    ran = play("ring_full", {"messages": 40})
    assert ran["tags"] == list(range(40))
    # All but what the ring and the node's queue hold have left, at a flit a cycle, when the last is posted.
    assert ran["waited"] > 8 * (40 - 4) - CONFIG.queue_packets * 8
    small = CONFIG.replace(queue_packets=2)
    ran = play("ring_full", {"messages": 40}, config=small)
    assert ran["tags"] == list(range(40)) and ran["waited"] > 8 * (40 - 4 - 2 - 2)


def test_python_stands_still(play):
    """In a stretch of the model alone messages take as long as otherwise."""
    times = play("bare", config=CONFIG.replace(ring_slots=8))
    assert len(times) == 6 and len(set(times)) == 1 and times[0] > 8


def test_mistakes_are_told(play):
    """A wrong node, a lost message and a message that cannot be sent are told in one line each."""
    with pytest.raises(
        SimulationError, match="node 2 found errors of destination in a message on VL 0, of node 0"
    ):
        play("wrong_route")
    with pytest.raises(SimulationError, match="after 2000 cycles 1 of 1 messages have not arrived"):
        play("lost")
    good = {"destination": 0, "flits": 8}
    wrong = [
        {"destination": 1},
        {"destination": 3},
        {"flits": 3},
        {"flits": 1024},
        {"vl": 2},
        {"tag": 1 << 27},
    ]
    said = play("refused", {"arguments": [good | one for one in wrong] + [good]})
    assert said == [
        "destination = 1: another of the nodes 0 to 2",
        "destination = 3: another of the nodes 0 to 2",
        "flits = 3: 4 to 1023",
        "flits = 1024: 4 to 1023",
        "vl = 2: 0 to 1",
        "tag = 134217728, service_level = 0: 0 to 2^27 - 1, and 0 to 15",
    ]


def test_a_hang_is_told(play):
    """While a flit is inside a router for its five cycles, two without movement on a link look like a hang."""
    with pytest.raises(SimulationError, match="nothing has moved for 2 cycles"):
        play("lost", {"ahead": 100}, config=CONFIG.replace(watchdog_cycles=2))


def test_rings_and_limits_are_not_in_the_model():
    """Changing them needs no other model."""
    model = CONFIG.build()
    assert CONFIG.replace(ring_slots=9, watchdog_cycles=5).build().key == model.key
    assert Path(model.executable).exists()
