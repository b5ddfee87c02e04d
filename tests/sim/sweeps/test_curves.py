"""Plots of sweeps: a line a parameter value, means over seeds with their intervals, nothing of saturated points."""

import pytest
from lanikai.sim.experiments.framework.base import Curve, Outcome, Point
from lanikai.sim.experiments.framework.plots import save_figure
from lanikai.sim.experiments.framework.repetitions import half_width
from lanikai.sim.experiments.network_load import NetworkLoad
from lanikai.sim.experiments.share_senders import ShareSenders
from lanikai.sim.sweeps.curves import MOST_LINES, Run, curves_of, lines_of, sweep_plots

CURVE = Curve(by="load", x="offered", y="latency")


def run(load, latency, *, seed=1, vls=2, offered=None, **more):
    """A point of a sweep over the VLs and the seed, with several loads."""
    point = Point(label="", parameters={"load": load, "vls": vls, **more}, spec={})
    results = {"offered": load if offered is None else offered, "latency": latency}
    outcome = Outcome(point=point, results=results, seed=seed, cycles=1, wall_seconds=1.0)
    return Run(settings={"vls": vls, "loads": [0.1, 0.2], "seed": seed}, outcome=outcome)


def test_a_line_a_value_in_the_order_of_x():
    lines = lines_of(CURVE, [run(0.2, 30), run(0.1, 20), run(0.1, 25, vls=4)])
    assert list(lines) == ["vls = 2", "vls = 4"]
    assert [(x, y) for x, y, _ in lines["vls = 2"]] == [(0.1, 20), (0.2, 30)]


def test_what_varies_among_the_points_of_a_run_is_a_line_too():
    lines = lines_of(CURVE, [run(0.1, 20, allocator="separable"), run(0.1, 25, allocator="wavefront")])
    assert list(lines) == ["allocator = separable", "allocator = wavefront"]


def test_seeds_are_averaged_with_an_interval():
    runs = [
        run(0.1, latency, seed=seed, offered=0.09 + seed / 100)
        for seed, latency in ((0, 20), (1, 22), (2, 27))
    ]
    ((line, ((x, y, spread),)),) = lines_of(CURVE, runs).items()
    assert (line, x, y) == ("", pytest.approx(0.1), 23)
    assert spread == half_width([20, 22, 27]) > 0


def test_a_point_that_is_saturated_with_one_seed_has_no_place():
    lines = lines_of(CURVE, [run(0.1, 20), run(0.1, 22, seed=2), run(0.2, None), run(0.2, 50, seed=2)])
    assert [len(values) for values in lines.values()] == [1]


def test_network_load_has_load_curves_and_others_the_first_number_of_the_grid():
    assert [curve.y for curve in curves_of(NetworkLoad(), [run(0.1, 1)])] == [
        *("latency_mean_cycles", "latency_p99_cycles", "accepted_flits_per_node_per_cycle")
    ]
    generic = curves_of(ShareSenders(), [run(0.1, 20), run(0.1, 25, vls=4)])
    assert [(curve.by, curve.y) for curve in generic] == [("vls", "offered"), ("vls", "latency")]
    assert curves_of(ShareSenders(), [run(0.1, 20), run(0.1, 25, seed=2)]) == ()


def test_results_for_each_flow_are_a_line_each():
    lines = lines_of(Curve(by="vls", x="vls", y="latency"), [run(0.1, [1, 2]), run(0.1, [3, 4], vls=4)])
    assert {line: [y for _, y, _ in values] for line, values in lines.items()} == {
        "[0]": [1, 3],
        "[1]": [2, 4],
    }


def test_plots_are_drawn(tmp_path):
    runs = [
        run(0.1 * vls, 20 + vls + seed, vls=vls, seed=seed)
        for vls in range(MOST_LINES + 3)
        for seed in (1, 2)
    ]
    plots = sweep_plots(ShareSenders(), runs)
    assert list(plots) == ["offered", "latency"]
    for name, draw in plots.items():
        save_figure(tmp_path / f"{name}.png", draw)
        assert (tmp_path / f"{name}.png").stat().st_size > 5000
