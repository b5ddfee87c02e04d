"""Own graphs whose source routes do not fit into a header: routers have tables, which are written at the start."""

import json

import pytest
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.network import Network
from lanikai.sim.experiments.measure.named_networks import named_network
from lanikai.sim.run import run
from lanikai.sim.systems.cluster import cluster_preset
from lanikai.sim.systems.message_config import MessageNetworkConfig
from lanikai.sim.systems.traffic_config import TrafficNetworkConfig

pytestmark = pytest.mark.full
ROUTER = RouterConfig(
    link=LinkConfig(flit_bits=32, vls=2, rate_num=1, rate_den=1), input_buffer_flits=4, output_buffer_flits=4
)


def ring(count):
    """`count` routers in a ring with a node each: shortest paths could deadlock."""
    links = [[[i, 1], [(i + 1) % count, 2]] for i in range(count)]
    return {"routers": count, "nodes": [[i, 0] for i in range(count)], "links": links}


def from_file(tmp_path):
    """A file's ring of 18."""
    file = tmp_path / "ring.json"
    file.write_text(json.dumps(ring(18)))
    network = named_network(str(file), ROUTER)
    assert network.router.routing == "table" and "up*/down*" in network.by_destination
    return network


def play(tmp_path, config, entry, spec):
    folder = tmp_path / f"{config.composed}"
    value = run(config.build(), *config.job(f"support.sim.{entry}", spec), out_dir=folder, seed=4).value
    assert "ways go up*/down*" in (folder / "simulation.log").read_text()
    return value


def test_messages(tmp_path):
    """Each message comes to its host, in the same cycles composed and as one model."""
    config = MessageNetworkConfig(network=from_file(tmp_path))
    spec = {"messages": 8, "gap_cycles": 150, "disturb": 0, "check": True}
    found = play(tmp_path, config, "hosts_points:workload", spec)["found"]
    assert len(found) == 18 * 8
    spec["check"] = False
    plain = play(tmp_path, config.replace(composed=False), "hosts_points:workload", spec)["found"]
    # Those of one cycle come in any order.
    assert sorted(plain) == sorted(found)


def test_traffic(tmp_path):
    """Load is accepted, and every packet is as it was sent."""
    config = TrafficNetworkConfig(network=from_file(tmp_path), queue_packets=4, histogram_sub_bits=0)
    spec = {
        "classes": [{"load": 0.05, "packet_flits": 8, "vl_count": 2}],
        "trace": None,
        "check": True,
    }
    first, _ = play(tmp_path, config, "parts_points:measured", spec)["measured"]
    accepted = sum(one["accepted_flits"] for node in first["counts"] for one in node)
    assert not first["saturated"] and 0.04 < accepted / 3000 / 18 < 0.06


def test_clusters(tmp_path):
    """Cards whose ways have up to 15 routers send messages."""
    base = cluster_preset("lanai4", memory_bytes=1 << 20)
    config = base.on(Network(router=base.router, **ring(16)))
    assert config.router.routing == "table"
    spec = {"pairs": 2, "messages": 2, "bytes": 3000}
    assert play(tmp_path, config, "skip_points:few_of_many", spec)["received"] == 4
