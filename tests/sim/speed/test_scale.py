"""The cost of a cycle grows with the flits that move, not with the routers that exist."""

import statistics

import pytest
from lanikai.sim.run import run
from lanikai.sim.speed.cases import BenchCase

SMALL, LARGE = "mesh4x4", "mesh32x32"
LOAD = 0.3
LEAST = 0.7
TURNS = 5


def routers_on_a_way(side):
    """Mean routers that a packet passes in a mesh of `side` x `side`, to any node but its own."""
    nodes = side * side
    return 1 + 2 * (nodes - 1) / (3 * side) * nodes / (nodes - 1)


def measure(case, folder, seed):
    """Measure the model alone: cycles times routers a second of processor time, and flits a router and cycle."""
    system = case.system()
    entry, spec = system.job(*case.job(3))
    done = run(system.build(), entry, spec, out_dir=folder, seed=seed).value
    side = int(case.model.rpartition("x")[2])
    return (
        statistics.median(pair[1] for pair in done["samples"]) * side * side,
        done["traffic"]["accepted"] * routers_on_a_way(side),
    )


@pytest.mark.full
def test_a_router_of_a_thousand_costs_little_more_than_one_of_sixteen(tmp_path):
    """At equal accepted flits a router, cycles times routers a second on 32 x 32 is at least 0.7 of that on 4 x 4.

    Both run in turns. The load is that of the small mesh; of the large one it is less, as its ways are longer.
    """
    small = BenchCase(model=SMALL, load=LOAD, cycles=4000)
    less = LOAD * routers_on_a_way(4) / routers_on_a_way(32)
    large = BenchCase(model=LARGE, load=less, cycles=100)
    ratios = []
    for turn in range(TURNS):
        speed, flits = measure(small, tmp_path / f"small{turn}", 1 + turn)
        other, others = measure(large, tmp_path / f"large{turn}", 1 + turn)
        print(f"turn {turn}: {speed:.0f} {flits:.4f}, {other:.0f} {others:.4f}, ratio {other / speed:.3f}")
        assert others == pytest.approx(flits, rel=0.1)
        ratios.append(other / speed)
    assert statistics.median(ratios) >= LEAST
