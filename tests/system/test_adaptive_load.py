"""Adaptive routing: what a mesh accepts under patterns that dimension order serves badly, in ranges."""

import pytest
from lanikai.sim.experiments.measure.traffic_results import ACCEPTED, MEASURE, traffic_results
from lanikai.sim.experiments.network_load import NetworkLoadParameters
from lanikai.sim.run import run

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("traffic network")]


@pytest.fixture(scope="module")
def accepted(tmp_path_factory):
    """Flits a node and cycle that a 4 x 4 mesh accepts at full load, with seed 1; each is measured once."""
    known = {}

    def measured(routing, pattern):
        if (routing, pattern) not in known:
            parameters = NetworkLoadParameters(
                routing=routing,
                vl_selection="same" if routing == "dimension_order" else "routing",
                pattern=pattern,
                allocator="separable",
                vls=4,
                packet_flits=10,
                flit_bits=64,
            )
            spec = {
                "classes": [setup.model_dump(mode="json") for setup in parameters.classes(1.0)],
                "warmup_cycles": 10_000,
                "window_cycles": 10_000,
                "limit_cycles": 1,
            }
            system = parameters.system("separable")
            entry, whole = system.job(MEASURE, spec)
            folder = tmp_path_factory.mktemp(f"{routing}-{pattern}")
            known[routing, pattern] = traffic_results(
                run(system.build(), entry, whole, out_dir=folder, seed=1).value
            )[ACCEPTED]
            print(routing, pattern, known[routing, pattern])
        return known[routing, pattern]

    return measured


@pytest.mark.parametrize("routing", ["odd_even", "duato"])
def test_a_choice_of_ways_carries_more_of_a_transpose(accepted, routing):
    """Dimension order sends all packets of a row round one corner. A tenth more was asked for before it was run."""
    assert accepted(routing, "transpose") >= 1.1 * accepted("dimension_order", "transpose")


def test_valiant_makes_patterns_alike(accepted):
    """A quarter apart at most, whichever the pattern; `ugal` may lose a twentieth beside it."""
    transpose, tornado = accepted("valiant", "transpose"), accepted("valiant", "tornado")
    assert 0.75 <= transpose / tornado <= 1.33
    assert accepted("ugal", "tornado") >= 0.95 * tornado
