"""Files of networks: each format gives the network that it says, and the same one whatever an editor leaves in it."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import jsonschema
import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig
from lanikai.sim.experiments.framework.schemas import SCHEMAS, schema_of
from lanikai.sim.experiments.measure.named_networks import named_network
from lanikai.sim.experiments.registry import EXPERIMENTS
from lanikai.sim.network_files.format import NetworkFormat, Shape
from lanikai.sim.network_files.registry import FILES, FORMATS, read_shape
from support.sim.decorated import decorated

ROUTER = RouterConfig(link=LinkConfig(vls=2))
ANYNET = "router 0 node 0 node 1 router 1\nrouter 1 node 2 router 2\nrouter 2 router 0\nnode 3 router 2\n"
JSON = {
    "routers": 3,
    "nodes": [[0, 0], [0, 1], [1, 0], [2, 0]],
    "links": [[[0, 2], [1, 1]], [[1, 2], [2, 1]], [[0, 3], [2, 2]]],
}


def graphml(path: Path) -> None:
    """The same network, written by networkx."""
    graph = networkx.Graph()
    graph.add_node("a", nodes=2)
    graph.add_node("b")
    graph.add_node("c")
    graph.add_edges_from([("a", "b"), ("b", "c"), ("a", "c")])
    networkx.write_graphml(graph, path)


def test_one_network_in_every_format(tmp_path):
    (tmp_path / "n.anynet").write_text(ANYNET)
    (tmp_path / "n.json").write_text(json.dumps(JSON))
    graphml(tmp_path / "n.graphml")
    assert {path.suffix for path in tmp_path.iterdir()} == FORMATS.keys()
    found = [named_network(str(path), ROUTER) for path in sorted(tmp_path.iterdir())]
    for network in found:
        assert network.routers == 3 and network.nodes == tuple(map(tuple, JSON["nodes"]))
        ends = {frozenset(router for router, _ in link) for link in network.links}
        assert ends == {frozenset(pair) for pair in ((0, 1), (1, 2), (0, 2))}
        assert network.path(0, 3)[-1] == (2, 0)


def test_latencies_of_an_anynet_file_are_delays(tmp_path):
    path = tmp_path / "n.anynet"
    path.write_text("router 0 node 0 4 router 1 4\nrouter 1 node 1 4 router 0 4")
    assert named_network(str(path), ROUTER).router.link.delay_cycles == 3
    path.write_text("router 0 node 0 router 1\nrouter 1 node 1")
    assert named_network(str(path), ROUTER).router.link.delay_cycles == 0


def test_nodes_and_links_leave_the_management_port_free(tmp_path):
    path = tmp_path / "n.anynet"
    path.write_text(ANYNET)
    network = named_network(str(path), RouterConfig(link=LinkConfig(vls=16), management=True))
    assert min(port for _, port in [*network.nodes, *network.neighbours]) == 1


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_marks_of_editors_change_nothing(data):
    with tempfile.TemporaryDirectory() as folder:
        plain, other = Path(folder) / "a.anynet", Path(folder) / "b.anynet"
        plain.write_text(ANYNET)
        other.write_bytes(data.draw(decorated(ANYNET)))
        first, second = read_shape(plain), read_shape(other)
        assert (first.nodes, first.links) == (second.nodes, second.links)
        for suffix, text in ((".json", json.dumps(JSON, indent=1)), (".graphml", GRAPHML)):
            plain, other = Path(folder) / f"a{suffix}", Path(folder) / f"b{suffix}"
            plain.write_text(text)
            other.write_bytes(data.draw(decorated(text, comment=None)))
            first, second = read_shape(plain), read_shape(other)
            assert (first.nodes, first.links) == (second.nodes, second.links)


GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="nodes" attr.type="long"/>
  <graph edgedefault="undirected">
    <!-- größer -->
    <node id="a"><data key="d0">2</data></node>
    <node id="b"/>
    <edge source="a" target="b"/>
  </graph>
</graphml>
"""


def graph_with(**changes: str) -> str:
    """`GRAPHML` with texts replaced."""
    return GRAPHML.replace(changes["old"], changes["new"])


WRONG = {
    # anynet
    "a01.anynet": ("nod 1", "1: 'nod': `router` or `node`, and its number"),
    "a02.anynet": ("router", "1: router without a number: a router's number, 0 to 4095"),
    "a03.anynet": ("router 4096 node 0", "1: router '4096': a router's number, 0 to 4095"),
    "a04.anynet": ("router 0 node x", "1: node 'x': a node's number, 0 to 1023"),
    "a05.anynet": ("router 0", "1: router 0 alone: neighbours follow, as in `router 0 node 0`"),
    "a06.anynet": ("router 0 3 node 0", "1: '3': `router` or `node`"),
    "a07.anynet": ("router 0 node 0 0", "1: '0': the latency of a link in cycles, 1 to 65"),
    "a08.anynet": ("router 0 node 0 1.5", "1: '1.5': the latency of a link in cycles, 1 to 65"),
    "a09.anynet": ("\nrouter 0 router 0", "2: router 0 is joined to itself: name another router"),
    "a10.anynet": ("node 0 node 1", "1: node 0 is joined to node 1: a node has a router"),
    "a11.anynet": (
        "router 0 node 0\nrouter 1 node 0",
        "2: node 0 at router 1: it is at router 0 by line 1, and a node has one router",
    ),
    "a12.anynet": (
        "router 0 node 0 2\nrouter 0 router 1",
        "2: router 1 with latency 1 (none is written): line 1 has node 0 with latency 2; all links here have the same "
        "one, those to nodes too",
    ),
    "a13.anynet": (
        "router 0 router 1 2\nrouter 1 router 0 3",
        "2: latency 3 from router 1 to router 0: line 1 has 2, and a link has one",
    ),
    "a14.anynet": (
        "router 0 node 0\nrouter 2 node 1 router 0",
        "2: router 2, and no line has router 1: routers have the numbers from 0 on, without a gap",
    ),
    "a15.anynet": (
        "router 0 node 0\nrouter 0 nöde 1",
        "2: 'router 0 nöde 1': data is in ASCII; other letters",
    ),
    # JSON
    "j01.json": (
        '{\n"routers": 1,\n"routers": 2}',
        "3: key 'routers' is given twice in one object: give it once",
    ),
    "j02.json": ('{\n"rooters": 1}', "2: unknown key 'rooters'; valid keys: routers, nodes, tables, links"),
    "j03.json": ('{\n"routers": "two"}', "2: routers = 'two': must be a valid integer"),
    "j04.json": ('{"routers":\n 0}', "1: routers = 0: must be greater than or equal to 1"),
    "j05.json": ('{"nodes": [\n[0, 0],\n[0]]}', "3: nodes[1] = [0]: must have at least 2 values"),
    "j06.json": ('{"nodes": [\n[0, 0],\n[0, "1"]]}', "3: nodes[1][1] = '1': must be a valid integer"),
    "j07.json": ('{"nodes": [\n[0, 0],\n[0, 0]]}', "3: node 1: port 0 of router 0 is taken by node 0"),
    "j08.json": ("[]", "1: []: an object, { ... }"),
    "j09.json": (
        '{"links": [[[0, 1],\n[1, -1]]]}',
        "2: links[0][1][1] = -1: must be greater than or equal to 0",
    ),
    # GraphML
    "g01.graphml": (
        graph_with(old='"b"/', new='"a"/'),
        "7: node 'a' for the second time: an `id` of its own; line 6",
    ),
    "g02.graphml": (
        graph_with(old='target="b"', new='target="c"'),
        "8: edge to 'c': the `id` of a node of the file",
    ),
    "g03.graphml": (
        graph_with(old='target="b"', new='target="a"'),
        "8: an edge from 'a' to itself: an edge joins two",
    ),
    "g04.graphml": (graph_with(old="undirected", new="directed"), "8: a directed edge: edgedefault="),
    "g05.graphml": (graph_with(old="</graph>", new=""), "10: mismatched tag: XML that is well formed"),
    "g06.graphml": (
        graph_with(old=">2<", new=">-1<"),
        "6: nodes = '-1' of node 'a': a whole number from 0 to 64",
    ),
    "g07.graphml": (graph_with(old="<graphml", new="<!DOCTYPE a><graphml"), "2: a document type: none"),
    "g08.graphml": (graph_with(old=' id="b"', new=""), "7: a node without `id`: each node has one"),
    "g09.graphml": ("<a/>", "1: no element `graph`: a file in GraphML has one"),
    "g10.graphml": (
        graph_with(old="<edge", new="<hyperedge/><edge"),
        "8: element `hyperedge`: nodes and edges",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_refused_in_a_line_that_names_its_line(name, tmp_path):
    text, fault = WRONG[name]
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        named_network(str(path), ROUTER)
    said = str(caught.value)
    assert said.startswith(f"{path}:{fault}") and "\n" not in said


def test_the_published_schema_takes_what_the_program_takes(tmp_path):
    """Files of `WRONG` that are wrong by themselves, and not by the network that they describe, are refused by it."""
    schema = schema_of("network", EXPERIMENTS)
    jsonschema.validate(JSON | {"$schema": "lanikai"}, schema)
    for name in ("j02.json", "j03.json", "j04.json", "j05.json", "j06.json", "j08.json", "j09.json"):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(json.loads(WRONG[name][0]), schema)


@pytest.mark.parametrize("name", [*SCHEMAS, *EXPERIMENTS])
def test_schemas_are_schemas(name):
    schema = schema_of(name, EXPERIMENTS)
    jsonschema.Draft202012Validator.check_schema(schema)
    if name in EXPERIMENTS:
        assert schema["additionalProperties"] is False
        assert schema["properties"].keys() == EXPERIMENTS[name].Parameters.model_fields.keys()


def test_a_format_is_one_class_and_one_line(tmp_path, monkeypatch):
    """A reader of files that hold the number of routers in a row."""

    class Row(NetworkFormat):
        suffix, title = ".row", "a row"

        def read(self, path, *, first_port):
            count = int(path.read_text())
            links = tuple(((i, first_port + 1), (i + 1, first_port + 2)) for i in range(count - 1))
            return Shape(routers=count, nodes=tuple((i, first_port) for i in range(count)), links=links)

    path = tmp_path / "a.row"
    path.write_text("3")
    with pytest.raises(ConfigError, match=FILES):
        named_network(str(path), ROUTER)
    monkeypatch.setitem(FORMATS, Row.suffix, Row())
    assert named_network(str(path), ROUTER).path(0, 2) == [(0, 1), (1, 1), (2, 0)]
