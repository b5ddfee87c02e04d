"""Every file that docs/inputs.md and docs/mpi.md show is read as the page says, and every format is shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.sim.experiments.measure.named_networks import named_network
from lanikai.sim.host.mpi.trace import read_trace as read_mpi_trace
from lanikai.sim.inputs.flow_sizes import read_flow_sizes
from lanikai.sim.inputs.goal import read_goal
from lanikai.sim.inputs.traces import TRACE_FORMATS, Excerpt, read_trace
from lanikai.sim.network_files.registry import FORMATS

DOCS = Path(__file__).parents[3] / "docs"
BLOCKS = {
    kind: text
    for page in ("inputs.md", "mpi.md")
    for kind, text in re.findall(r"```([\w-]+)\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
}
NETWORKS = [suffix.removeprefix(".") for suffix in FORMATS]


@pytest.fixture
def shown(tmp_path):
    """The path of a file with what the page shows."""

    def written(kind: str) -> Path:
        path = tmp_path / f"a.{kind}"
        path.write_text(BLOCKS[kind])
        return path

    return written


def test_the_networks_are_one(shown):
    found = [named_network(str(shown(kind)), RouterConfig(link=LinkConfig(vls=2))) for kind in NETWORKS]
    assert len(found) == 3
    for network in found:
        assert network.routers == 2 and network.nodes == ((0, 0), (0, 1), (1, 0))
        assert network.links == (((0, 2), (1, 1)),)


def test_packets_sizes_schedule_and_calls(shown):
    packets = read_trace(shown("trace"), LinkConfig(), Excerpt())
    assert packets.cycle.tolist() == [100, 100, 250] and packets.traffic_class.tolist() == [0, 0, 1]
    assert read_flow_sizes(shown("cdf")).mean_bytes == 0.5 * 500 + 0.5 * 10500
    assert read_goal(shown("goal")).messages == 1
    assert [call.name for call in read_mpi_trace(shown("mpi-trace")).calls][2:5] == [
        "MPI_Recv",
        "MPI_Barrier",
        "MPI_Allreduce",
    ]


def test_the_page_names_every_end_of_a_file():
    page = (DOCS / "inputs.md").read_text()
    assert not [suffix for suffix in [*TRACE_FORMATS, *FORMATS] if f"{suffix}`" not in page]
