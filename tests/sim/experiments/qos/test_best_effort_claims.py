"""Claims of congestion and cq-config: each fails when what it says does not hold. No simulator."""

import pytest
from lanikai.hdl.config import ConfigError
from lanikai.hdl.hca.injection.registry import INJECTION
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.qos.congestion import SCHEMES, Congestion, CongestionParameters
from lanikai.sim.experiments.qos.cq_config import CqConfig, CqConfigParameters
from lanikai.sim.published import table


def outcomes(points, results):
    return [
        Outcome(point=point, results=results(point), seed=1, cycles=1, wall_seconds=1.0) for point in points
    ]


def congestion(change=lambda scheme, load, results: None):
    """Outcomes as the document has them where it has any, and one that `change` has made worse."""
    experiment, parameters = Congestion(), CongestionParameters(loads=[0.4, 0.6, 0.7, 0.9])
    published = table("congestion")["queueing_delay_us"]

    def results(point):
        scheme, load = point.parameters["scheme"], point.parameters["load"]
        place = {0.4: 0, 0.6: 2, 0.7: 3, 0.9: 5}[load]
        row = published[scheme]
        delay = row[min(place, len(row) - 1)]
        controls = scheme in ("alo", "self_tuned")
        found = {
            "queueing_delay_us": delay,
            "latency_from_birth_us": delay + (200 if controls else 10),
            "throughput": load * (0.7 if controls else 1),
            "waited": 10_000 // point.parameters["credits"]
            if point.parameters["credits"] and load > 0.8
            else 0,
            "failed": 0,
        }
        change(scheme, load, found)
        return found

    points = experiment.points(parameters, "quick")
    return [claim.holds for claim in experiment.claims(parameters, outcomes(points, results))]


def worse(scheme, load, name, value):
    def change(this, at, results):
        if (this, at) == (scheme, load):
            results[name] = value

    return change


def test_what_is_published_holds():
    assert congestion() == [True] * 8


@pytest.mark.parametrize(
    ("claim", "change"),
    [
        (0, worse("none", 0.6, "queueing_delay_us", 2.273 * 1.31)),
        (0, worse("credit_300", 0.4, "queueing_delay_us", 1.116 * 0.69)),
        (1, worse("credit_300", 0.7, "queueing_delay_us", 5.098 * 1.31)),
        (2, worse("credit_200", 0.9, "latency_from_birth_us", 1e5)),
        (2, worse("alo", 0.4, "latency_from_birth_us", 1.0)),
        (3, worse("credit_600", 0.9, "throughput", 0.6)),
        (4, worse("none", 0.9, "throughput", 0.58)),
        (5, worse("credit_600", 0.9, "waited", 0)),
        (5, worse("credit_200", 0.9, "waited", 100)),
        (6, worse("credit_200", 0.9, "queueing_delay_us", 900)),
        (7, worse("alo", 0.6, "failed", 1)),
    ],
)
def test_a_claim_of_congestion_fails_for_what_it_denies(claim, change):
    assert congestion(change)[claim] is False


def cq_config(**changes):
    experiment, parameters = CqConfig(), CqConfigParameters(loads=changes.get("loads", []))
    values = {
        ("global", "latency_from_birth_us"): 500.0,
        ("separate", "latency_from_birth_us"): 200.0,
        ("quadrant", "latency_from_birth_us"): 190.0,
    } | changes.get("values", {})

    def results(point):
        queues = point.parameters["queues"]
        return {
            "latency_from_birth_us": values[queues, "latency_from_birth_us"],
            "waited": values.get((queues, "waited"), 100),
            "power_w": values.get((queues, "power_w"), 10.0),
            "failed": values.get((queues, "failed"), 0),
            "throughput": 0.5,
        }

    points = experiment.points(parameters, "quick")
    return [claim.holds for claim in experiment.claims(parameters, outcomes(points, results))]


def test_what_is_published_of_queues_holds():
    assert cq_config() == [True] * 5


def test_queues_are_not_compared_below_saturation():
    assert cq_config(loads=[0.5]) == [None] * 3 + [True] * 2


def test_credits_are_in_proportion_to_the_length_of_the_run():
    experiment = CqConfig()
    for settings, quick, full in [
        ({}, 20, 200),
        ({"credits": 33}, 33, 33),
        ({"network": "mesh8x8"}, 63, 200),
    ]:
        specs = [
            experiment.points(CqConfigParameters(**settings), size)[0].spec for size in ("quick", "full")
        ]
        assert [spec["credit_count"] for spec in specs] == [quick, full]
    assert specs[0]["window_cycles"] * 10 == specs[1]["window_cycles"]


@pytest.mark.parametrize(
    ("claim", "place", "value"),
    [
        (0, ("quadrant", "waited"), 0),
        (1, ("separate", "latency_from_birth_us"), 410.0),
        (2, ("quadrant", "latency_from_birth_us"), 211.0),
        (3, ("quadrant", "power_w"), 10.6),
        (4, ("global", "failed"), 1),
    ],
)
def test_a_claim_on_queues_fails_for_what_it_denies(claim, place, value):
    assert cq_config(values={place: value})[claim] is False


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schemes": ["x"]}, "schemes: 'x': one of none, credit_200, credit_300, credit_400, "),
        ({"loads": [1.5]}, "loads: 1.5: above 0 and at most 1"),
        ({"network": "router8"}, "network = 'router8': a mesh, mesh2x2 to mesh32x32"),
        ({"network": "meshh4x4"}, "network = 'meshh4x4': a mesh, mesh2x2 to mesh32x32"),
        ({"network": "mesh1x4"}, "network = 'mesh1x4': a mesh, mesh2x2 to mesh32x32"),
        ({"network": "mesh4x33"}, "network = 'mesh4x33': a mesh, mesh2x2 to mesh32x32"),
    ],
)
def test_what_cannot_be_run_is_refused(changes, message):
    with pytest.raises(ConfigError) as error:
        CongestionParameters(**changes)
    assert message in str(error.value)


def test_too_few_credits_for_a_mesh_are_refused_before_anything_is_built():
    with pytest.raises(
        ConfigError,
        match=r"^CqConfigParameters: credits = 62: at least 63, one for each queue of credits \(mesh8x8, separate "
        r"queues\)$",
    ):
        CqConfigParameters(network="mesh8x8", credits=62)
    assert CqConfigParameters(network="mesh8x8", credits=63).credits == 63


def test_every_injection_control_is_a_scheme():
    for name in INJECTION:
        assert SCHEMES[name] == (name, "none", 0)
