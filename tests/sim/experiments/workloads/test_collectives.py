"""Collective operations: right at any number of nodes, over a network in simulation, and told when they are wrong."""

from __future__ import annotations

import asyncio
import math

import numpy as np
import pytest
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.framework.points import points_of
from lanikai.sim.experiments.registry import find
from lanikai.sim.experiments.workloads.algorithms import OPERATIONS, Port, expected
from lanikai.sim.experiments.workloads.collectives import _judged
from lanikai.sim.run import run

EXPERIMENT = find("collectives")


class PlainPort(Port):
    """Nodes in one Python process."""

    def __init__(self, rank, size, queues):
        self.rank, self.size, self._queues = rank, size, queues

    async def send(self, to, values):
        assert to != self.rank
        self._queues[self.rank, to].put_nowait(values.copy())

    async def receive(self, source, count):
        values = await asyncio.wait_for(self._queues[source, self.rank].get(), 5)
        assert len(values) == count
        return values

    async def flush(self):
        pass


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("nodes", [2, 3, 4, 5, 6, 7, 8, 12, 16])
def test_operations_at_any_number_of_nodes(operation, nodes):
    inputs = [np.arange(2 * nodes) * 1000 + rank for rank in range(nodes)]

    async def play():
        queues = {(a, b): asyncio.Queue() for a in range(nodes) for b in range(nodes)}
        ports = [PlainPort(rank, nodes, queues) for rank in range(nodes)]
        found = await asyncio.gather(*(OPERATIONS[operation](port, inputs[port.rank]) for port in ports))
        assert all(queue.empty() for queue in queues.values())
        return found

    outputs = asyncio.run(play())
    assert _judged(operation, inputs, outputs) == {"wrong_values": 0, "checked_values": 2 * nodes * nodes}
    outputs[1] = outputs[1].copy()
    outputs[1][3] += 1
    assert _judged(operation, inputs, outputs)["wrong_values"] == 1
    assert _judged(operation, inputs, [outputs[0][:-1], *outputs[2:]])["wrong_values"] > 0


def test_what_is_expected():
    inputs = [np.array([1, 2]), np.array([30, 40])]
    assert expected("all_to_all", 1, inputs).tolist() == [2, 40]
    assert (
        expected("incast", 0, inputs).tolist() == expected("all_reduce_ring", 1, inputs).tolist() == [31, 42]
    )


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations_over_a_network(operation, tmp_path):
    parameters = parse(
        EXPERIMENT,
        ["network=router3", "vls=2", "elements=33", "packet_flits=5", f'operations=["{operation}"]'],
    )
    (point,) = EXPERIMENT.points(parameters, "quick")
    config = EXPERIMENT.system(parameters, point)
    entry, job = config.job(EXPERIMENT.entry, point.spec)
    measured = run(config.build(), entry, job, out_dir=tmp_path, seed=1).value
    results = EXPERIMENT.results(parameters, point, measured)
    assert results["wrong_values"] == 0 and results["checked_values"] == 99
    assert results["completion_cycles"] > results["bound_cycles"] > 0
    if operation == "incast":
        # 33 numbers of 8 bytes from each of two nodes, in packets of 4 flits of 16 bytes and a header.
        assert results["node_received_flits"] == [2 * (17 + 5), 0, 0]
        assert results["node_received_bytes"] == [2 * 33 * 8, 0, 0]


MPI_BYTES = {
    "incast": ([0, 512, 512, 512], [1536, 0, 0, 0]),
    "all_reduce_ring": ([768] * 4, [768] * 4),
    "all_reduce_doubling": ([1024] * 4, [1024] * 4),
    "all_to_all": ([384] * 4, [384] * 4),
}
"""Bytes that each of 4 nodes sends and receives when it has 64 numbers of 8 bytes (Thakur et al., 2005, for p = 4)."""


@pytest.mark.xdist_group("lanai4 cluster")
@pytest.mark.parametrize(
    "operation",
    [
        "incast",
        "all_reduce_ring",
        pytest.param("all_reduce_doubling", marks=pytest.mark.full),
        pytest.param("all_to_all", marks=pytest.mark.full),
    ],
)
def test_operations_over_mpi(operation, tmp_path):
    parameters = parse(EXPERIMENT, ["over=mpi", "elements=64", f'operations=["{operation}"]'])
    (point,) = EXPERIMENT.points(parameters, "quick")
    config = EXPERIMENT.system(parameters, point)
    entry, job = config.job(EXPERIMENT.entry, point.spec)
    measured = run(config.build(), entry, job, out_dir=tmp_path, seed=1).value
    results = EXPERIMENT.results(parameters, point, measured)
    assert results["wrong_values"] == 0 and results["checked_values"] == 4 * 64
    sent, received = MPI_BYTES[operation]
    assert (results["node_sent_bytes"], results["node_received_bytes"]) == (sent, received)
    # The link carries 20 flits of 8 bytes in 33 cycles.
    assert results["bound_cycles"] == math.ceil(max(sent + received) * 33 / 160)
    assert results["completion_cycles"] == max(results["node_cycles"]) > results["bound_cycles"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (['operations=["ring"]'], "unknown operation 'ring'"),
        (['operations=["incast", "incast"]'], "one is named twice"),
        (["elements=3"], "elements = 3: at least 4, a number for each node"),
        (["elements=6"], "elements = 6: a multiple of 4 nodes, as all_to_all gives each as many"),
        (["packet_flits=2", "flit_bits=32"], "packet_flits = 2: more than the header's 4"),
        (["over=mpi", "vls=2"], "vls: is not used with over = mpi: leave it out"),
    ],
)
def test_wrong_settings(settings, text):
    with pytest.raises(UserError) as caught:
        points_of(EXPERIMENT, parse(EXPERIMENT, settings), "quick")
    assert text in str(caught.value)
